"""The report counts every file once, and shows on what evidence it left."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.contracts.gates import GATES
from pipeline.core.change_text import Hunk, change_path, compose_change
from pipeline.core.errors import MissingError
from pipeline.lexing.languages import LANGUAGES, language_of
from pipeline.lineage.report import Report, _first_lines, report_corpus
from pipeline.lineage.report_page import render_page
from pipeline.stages.normalize.params import NormalizeParams
from pipeline.stages.normalize.scrub.shown_text import shown_scrubber
from pipeline.store.store import Store
from tests.pipeline.build.made_corpus.test_made_corpus import EXPECTED

OUTCOMES = Counter(EXPECTED.values())


def test_each_rule_dropped_what_the_corpus_expects_and_the_rest_is_kept(tiny: Report) -> None:
    counted = {rule["reason"]: rule["num_files"] for rule in tiny.rules}
    assert counted | {"kept": sum(source["num_files_kept"] for source in tiny.sources)} == {**counted, **OUTCOMES}
    assert {reason: count for reason, count in OUTCOMES.items() if reason != "kept"}.items() <= counted.items()


def test_every_source_and_every_step_adds_up(tiny: Report) -> None:
    for source in tiny.sources:
        dropped = sum(drop["num_files"] for drop in source["drops"] if drop["stage"] != "collect")
        assert source["num_files_in"] == source["num_files_kept"] + dropped
    for step in tiny.stages:
        assert step["rows_in"] == step["rows_out"] + sum(step["dropped"].values())
    for step, following in pairwise(tiny.stages):
        assert step["rows_out"] - step["num_evidence_files"] == following["rows_in"]
        assert step["num_bytes_out"] - step["num_evidence_bytes"] == following["num_bytes_in"]
    assert sum(step["num_evidence_files"] for step in tiny.stages) > 0
    for source in tiny.sources:
        found = source["num_evidence_files"] + source["num_files_in"]
        skipped = sum(drop["num_files"] for drop in source["drops"] if drop["stage"] == "collect")
        assert source["num_files_found"] == found + skipped
    assert "are license evidence: they become no documents" in render_page(tiny)
    kept = sum(row["num_files"] for row in tiny.licenses if row["outcome"] == "kept")
    assert kept == sum(source["num_files_kept"] for source in tiny.sources)


def test_it_answers_what_was_dropped_for_the_license_and_on_what_evidence(tiny: Report) -> None:
    refused = [row for row in tiny.refusals if row["source"] == "quarry" and "src/merge_runs.c" in row["paths"]]
    assert "GPL" in refused[0]["license"]
    assert "this file:3" in refused[0]["evidence"]
    assert sum(row["num_files"] for row in tiny.refusals) == sum(
        rule["num_files"] for rule in tiny.rules if rule["reason"].startswith("license")
    )


def test_kept_files_are_counted_by_language_and_redactions_by_detector(tiny: Report) -> None:
    assert sum(row["num_files"] for row in tiny.languages) == OUTCOMES["kept"]
    kept = (path for (_, path), outcome in EXPECTED.items() if outcome == "kept")
    by_language = Counter(language.name for path in kept if (language := language_of(path)) is not None)
    assert {row["language"]: row["num_files"] for row in tiny.languages} == {
        name: by_language[name] for name in LANGUAGES.names
    }
    assert tiny.redactions["email"] > 0
    assert "email" in render_page(tiny)


def test_every_gate_is_listed_with_the_offenses_that_turned_it_red(tiny: Report) -> None:
    assert [row["gate"] for row in tiny.gates] == list(GATES.names)
    assert all(row["offenses"] for row in tiny.gates)
    page = render_page(tiny)
    assert f"{len(GATES)} of {len(GATES)} gates were turned red" in page
    assert "torn chunk" in page


def test_samples_are_few_and_show_the_measured_value_and_the_first_lines(tiny_store: Store, tiny: Report) -> None:
    assert all(0 < len(rule["samples"]) <= 5 for rule in tiny.rules)
    (sample, *_) = next(rule for rule in tiny.rules if rule["reason"] == "long_line")["samples"]
    assert any(letter.isdigit() for letter in sample["detail"])
    assert sample["first_lines"]
    fewer = report_corpus(tiny_store, "tiny", 1)
    assert all(len(rule["samples"]) == 1 for rule in fewer.rules)
    for few, many in zip(fewer.rules, tiny.rules, strict=True):
        assert few["samples"][0] in many["samples"]


def test_of_a_change_no_line_of_its_hunks_is_shown_as_one_may_begin_within_a_key() -> None:
    lines = [b"%064x\n" % (number * 0x9E3779B97F4A7C15) for number in range(8)]
    path = change_path("5" * 40, "key.c")
    content = compose_change("Rotate it", "key.c", [Hunk(b"".join(lines[:4]), b"".join(lines[4:]))])

    shown = _first_lines(path, content, shown_scrubber(NormalizeParams().scrub))

    assert shown == ["// commit: Rotate it", "// path: key.c"]


def test_a_cluster_names_its_keeper_and_how_alike_each_loser_is(tiny: Report) -> None:
    losers = [loser for cluster in tiny.clusters for loser in cluster["losers"]]
    assert len(losers) == OUTCOMES["exact_duplicate"] + OUTCOMES["near_duplicate"] + OUTCOMES["copyleft_copy"]
    near = [loser for loser in losers if loser["reason"] == "near_duplicate"]
    assert all(loser["jaccard"] == 1 for loser in losers if loser not in near)
    assert {loser["path"]: 0.7 <= loser["jaccard"] < 1 for loser in near} == {
        loser["path"]: loser["source"] != "loom"  # whose two changes have equal hunks
        for loser in near
    }


def test_a_corpus_that_was_not_built_is_named(store: Store) -> None:
    with pytest.raises(MissingError, match="corpus nowhere: stage normalize has no output"):
        report_corpus(store, "nowhere")


def test_the_command_prints_json_or_writes_the_page(
    tiny_store: Store, tiny: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["report", "--corpus", "tiny", "--store", str(tiny_store.root)]
    assert main([*where, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(tiny.as_json()))
    assert main([*where, "--out", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").read_text() == render_page(tiny)
    assert main([*where, "--out", str(tmp_path / "misspelt" / "page.html")]) == 1
    assert not (tmp_path / "misspelt").exists()
