"""`why` says of every file where it went and on what evidence."""

import json
import tomllib

import pytest

from pipeline.cli.main import main
from pipeline.core.errors import MissingError
from pipeline.lineage.why import why
from pipeline.store.store import Store
from tests.support.paths import ROOT

TABLES = tomllib.loads((ROOT / "tests" / "pipeline" / "build" / "made_corpus.toml").read_text())
FATES = [(source, path, entry["fate"]) for source, files in TABLES.items() for path, entry in files.items()]


def example(fate: str) -> tuple[str, str]:
    return next((source, path) for source, path, found in FATES if found == fate)


def fate_of(store: Store, source: str, path: str) -> str:
    last = why(store, "tiny", source, path).steps[-1]
    return last.verdict if last.verdict == "kept" else last.reason


def test_every_file_of_the_made_corpus_is_explained_by_its_fate(tiny_store: Store) -> None:
    assert {(source, path): fate_of(tiny_store, source, path) for source, path, _ in FATES} == {
        (source, path): fate for source, path, fate in FATES
    }


def test_a_kept_file_is_followed_to_its_rows(tiny_store: Store) -> None:
    source, path = example("kept")
    trail = why(tiny_store, "tiny", source, path)

    assert trail.kept
    assert [step.stage for step in trail.steps] == ["collect", "normalize", "duplicates", "enrich", "tokenize"]
    assert trail.steps[1].evidence["license"]
    assert trail.steps[-1].evidence["rows"]


def test_a_refused_license_shows_the_expression_that_was_found(tiny_store: Store) -> None:
    step = why(tiny_store, "tiny", "quarry", "src/merge_runs.c").steps[-1]

    assert (step.stage, step.reason) == ("normalize", "license_refused")
    assert "GPL" in step.evidence["license"]
    assert "src/merge_runs.c:3" in step.evidence["detail"]


def test_a_duplicate_names_its_keeper_and_how_alike_they_are(tiny_store: Store) -> None:
    source, path = example("near_duplicate")
    step = why(tiny_store, "tiny", source, path).steps[-1]

    assert step.evidence["keeper_path"]
    assert 0.7 <= step.evidence["jaccard"] < 1


def test_a_filtered_file_shows_the_measured_value_and_the_limit(tiny_store: Store) -> None:
    source, path = example("too_small")
    step = why(tiny_store, "tiny", source, path).steps[-1]

    assert any(letter.isdigit() for letter in step.evidence["detail"])


def test_an_unknown_path_names_the_nearest_ones(tiny_store: Store) -> None:
    source, path = example("kept")

    with pytest.raises(MissingError, match=f"Did you mean .*{path}"):
        why(tiny_store, "tiny", source, path + "x")


def test_the_command_prints_the_trail_as_json(tiny_store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    source, path = example("kept")
    code = main(["why", source, path, "--corpus", "tiny", "--store", str(tiny_store.root), "--json"])

    assert code == 0
    assert json.loads(capsys.readouterr().out)["kept"] is True
