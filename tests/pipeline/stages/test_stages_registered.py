"""A stage and a gate that are registered at run time appear wherever the declared ones do, and nothing else is edited."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.promotion import judge_again
from pipeline.build.recipes import TINY, CorpusParams, pins_of
from pipeline.build.run_stage import StageResult, run_stages
from pipeline.cli.main import main
from pipeline.contracts.gates import GATES
from pipeline.core.errors import BlockedError, MissingError, ParamsError
from pipeline.core.params import fingerprint
from pipeline.lineage.report import report_corpus
from pipeline.lineage.report_page import render_page
from pipeline.lineage.why import why
from pipeline.stages.stages import STAGES
from pipeline.store.store import Store
from tests.support.shorten_stage import FEW_ARE_LONG, NO_ROW_LOST, NOTES, REASON, SHORTEN, ShortenParams


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    with STAGES.registered(SHORTEN, before="enrich"), GATES.registered(FEW_ARE_LONG), GATES.registered(NO_ROW_LOST):
        yield


def build(store: Store, params: CorpusParams = TINY.params, until: str = "enrich") -> list[StageResult]:
    with open_build(BuildRequest("tiny", params, pins_of(TINY), "a test"), store) as opened:
        return list(run_stages(opened, until))


def test_it_runs_in_its_place_with_its_defaults_and_what_it_drops_is_in_why_and_the_report(copied: Store) -> None:
    results = build(copied)
    before = STAGES.names[: STAGES.names.index("shorten")]
    assert [result.stage for result in results] == [*before, "shorten", "enrich"]
    assert [result.unchanged for result in results[:-2]] == [True] * len(before)
    *_, shortened, _ = results
    assert FEW_ARE_LONG.name in {verdict.gate for verdict in shortened.verdicts}

    report = report_corpus(copied, "tiny")
    (rule,) = (rule for rule in report.rules if rule["stage"] == "shorten")
    assert (rule["reason"], rule["num_files"]) == (REASON, shortened.report.dropped[REASON])
    assert rule["samples"][0]["first_lines"]
    steps = [step for stage in (*before, "shorten") for step in STAGES[stage].steps]
    assert [step["stage"] for step in report.stages][: len(steps)] == steps
    for source in report.sources:
        lost = sum(drop["num_files"] for drop in source["drops"] if drop["stage"] != "collect")
        assert source["num_files_in"] == source["num_files_kept"] + lost
    assert "shorten" in render_page(report)

    sample = rule["samples"][0]
    step = why(copied, "tiny", sample["source"], sample["path"]).steps[-1]
    assert (step.stage, step.verdict, step.reason) == ("shorten", "dropped", REASON)
    assert step.evidence["detail"] == sample["detail"]
    assert step.evidence["limit"] == f"num_bytes is {step.evidence['num_bytes']}, shorten.max_num_bytes is 2000"
    note = copied.read(shortened.parts["heron"]).table(NOTES).to_pylist()[0]
    (step,) = (step for step in why(copied, "tiny", note["source"], note["path"]).steps if step.stage == "shorten")
    assert step.evidence == {"num_bytes": int(note["note"].removeprefix("short: ")), "note": note["note"]}


def test_its_gate_blocks_by_a_limit_of_its_params(copied: Store) -> None:
    params = CorpusParams.model_validate({**dict(TINY.params), "shorten": {"max_num_long": 0}})
    result = build(copied, params)[-1]

    assert result.stage == "shorten"
    with pytest.raises(BlockedError, match="few_documents_are_long BLOCKED"):
        result.refuse_blocked("tiny")
    assert copied.ref("tiny", "shorten") is None


def test_a_snapshot_without_its_evidence_is_not_judged(copied: Store) -> None:
    made = ", ".join(name for name in STAGES.names if name != "shorten")
    with pytest.raises(MissingError, match=f"the stages {made} made it; expected {', '.join(STAGES.names)}"):
        judge_again(copied, copied.ref("tiny", "candidate") or "")


def test_the_commands_list_it_with_its_gate_and_params(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["gates", "--store", str(tmp_path), "--json"]) == 0
    assert FEW_ARE_LONG.name in {row["name"] for row in json.loads(capsys.readouterr().out)}
    assert main(["config", "--recipe", "tiny", "--store", str(tmp_path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["params"]["shorten"] == ShortenParams().model_dump(mode="json")
    assert answer["stages"]["shorten"] == fingerprint(ShortenParams())


def test_params_of_a_stage_that_is_not_declared_are_refused() -> None:
    with pytest.raises(ParamsError, match="stage lengthen: it is not registered"):
        CorpusParams.model_validate({"lengthen": {}})
