"""Commands that change nothing answer what is declared and stored."""

import json
import re

import pytest

from pipeline.cli.main import main
from pipeline.contracts.gates import GATES
from pipeline.stages.stages import STAGES
from pipeline.store.store import Store
from tests.pipeline.cli.conftest import Run


def test_gates_lists_every_gate(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, answer, text = run("gates")

    assert code == 0
    assert [row["name"] for row in answer] == [gate.name for gate in GATES]
    assert set(answer[0]) == {"name", "stage", "blocking", "measure", "limit", "why"}
    assert [gate.name for gate in GATES if f" {gate.name} " not in text] == []


def test_gates_of_a_corpus_say_how_each_was_last_seen_red(
    tiny_store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gates", "--store", str(tiny_store.root), "--corpus", "tiny", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)

    assert [row["name"] for row in answer] == [gate.name for gate in GATES]
    assert "torn_chunk" in next(row for row in answer if row["name"] == "chunks_conserve_bytes")["seen_red"]["offenses"]
    assert main(["gates", "--store", str(tiny_store.root), "--corpus", "tiny"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"Gates last seen red in build {(tiny_store.ref('tiny', 'verify') or '')[:12]} with code" in text
    assert "torn_chunk" in text


def test_gates_of_a_build_that_was_blocked_before_its_canaries_say_what_was_judged(
    blocked_store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["gates", "--store", str(blocked_store.root), "--corpus", "mine", "--of", "last"]
    assert main([*line, "--json"]) == 0
    answer = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert answer["documents_are_kept"]["verdict"]["outcome"] == "failed"
    assert answer["chunks_conserve_bytes"]["verdict"] is answer["documents_are_kept"]["seen_red"] is None
    assert main(line) == 0
    text = capsys.readouterr().out
    assert "this build of mine ended at normalize: " in text
    assert " gates were not judged, and no offenses were sent" in text
    assert re.search(r"documents_are_kept\s.*BLOCKED", text)
    assert main(["diff", "live", "last", *line[1:5]]) == 1
    assert "ref live of corpus mine: there is none yet" in " ".join(capsys.readouterr().err.split())


def test_gates_of_a_corpus_that_was_not_built_name_it(run: Run) -> None:
    code, _, text = run("gates", "--corpus", "nowhere")

    assert code == 1
    assert "corpus nowhere: stage verify has no output as there is no store" in text
    assert "--store" in text, "the remedy builds into the store that was asked"


def test_config_names_the_fingerprint_of_each_stage(run: Run) -> None:
    code, answer, _ = run("config", "--recipe", "quick")

    assert code == 0
    assert set(answer["stages"]) == set(STAGES.names)
    assert answer["params"]["tokenize"]["row_length"] == 512


def test_config_prints_what_is_set_and_what_differs_and_the_schema_of_a_recipe(run: Run) -> None:
    line = ["config", "--recipe", "tiny", "--set", "verify.min_bytes_per_token=1.25"]
    assert run(*line)[1]["params"]["verify"]["min_bytes_per_token"] == 1.25
    code, answer, _ = run(*line, "--diff", "tiny")

    assert code == 0
    assert answer["differences"] == {"verify.min_bytes_per_token": [1.5, 1.25]}
    assert (answer["made_anew"], answer["judged_again"]) == (["verify"], [])
    assert run("config", "--schema")[1]["properties"]["normalize"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("tokenize.vocabulary=nope", "vocabulary nope: it does not exist"),
        ('held_out.sources=["nope"]', "no pin is named nope"),
        ("normalize.decontamination.items_folder=/nope", "there is no *.jsonl file"),
    ],
)
@pytest.mark.parametrize("more", [(), ("--diff", "tiny")], ids=["config", "diff"])
def test_config_refuses_what_a_build_refuses(run: Run, given: str, message: str, more: tuple[str, ...]) -> None:
    code, _, said = run("config", "--recipe", "tiny", "--set", given, *more)

    assert code == 1
    assert message in said


def test_show_lists_refs_and_opens_objects(run: Run) -> None:
    run("build", "--recipe", "tiny", "--workers", "1", "--until", "collect")
    _, refs, _ = run("show", "--corpus", "tiny")
    code, stored, _ = run("show", refs["refs"]["collect"])

    assert code == 0
    assert stored["kind"] == "collect/stage"
    assert stored["report"]["rows_in"] > 0
    assert run("show", "0" * 64)[0] == 1
