"""The stage as a whole: nothing is lost, equal inputs give equal objects, and only what must is made anew."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.oracles.snapshots.held_out_documents import split_of_file
from pipeline.build.recipes import CorpusParams
from pipeline.build.run_stage import run_stage
from pipeline.contracts.gates import GATES
from pipeline.core.errors import BlockedError, SourceError, StageError
from pipeline.core.records import Document, DroppedRecord, DuplicateRecord
from pipeline.core.schema import check_table
from pipeline.core.table_names import DOCUMENTS, DROPPED, DUPLICATES, KEPT
from pipeline.pins.held_out import HeldOut
from pipeline.stages.normalize import stage
from pipeline.stages.normalize.duplicates.compare_sources import KeptDocument
from pipeline.stages.normalize.duplicates.copyleft import COPYLEFT, CopyleftRecord
from pipeline.stages.normalize.duplicates.duplicates import SIGNATURES, SignatureRecord
from pipeline.stages.normalize.params import DuplicateParams, FilterParams, NormalizeParams
from pipeline.store.store import Store
from tests.pipeline.stages.normalize.conftest import Normalize
from tests.pipeline.stages.normalize.test_clean_source import TAG, code

SOURCES = {
    "a": {"x.cpp": code("x"), "y.cpp": code("y"), "bad.cpp": b"\xff\0", "LICENSE": "MIT\n"},
    "b": {
        "x.cpp": code("x"),
        "gpl.cpp": f"// {TAG} GPL-2.0-only\n" + code("g"),
        "vendor/z.cpp": code("z"),
        "tiny.h": "int a;\n",
    },
}


def test_every_file_is_kept_or_dropped_once(normalize: Normalize) -> None:
    made = normalize(SOURCES)
    report = made.result.report
    assert report.dropped == {
        "binary": 1,
        "exact_duplicate": 1,
        "license_quarantined": 1,
        "license_refused": 1,
        "too_small": 1,
    }
    assert (report.rows_in, report.rows_out) == (7, 2)
    assert len(made.outcomes()) == report.rows_in
    assert set(made.result.parts) == {"a", "b", "duplicates"}


def test_the_tables_have_the_schema_of_their_records(normalize: Normalize) -> None:
    made = normalize(SOURCES)
    rules = {DOCUMENTS: Document, DROPPED: DroppedRecord, SIGNATURES: SignatureRecord, COPYLEFT: CopyleftRecord}
    for name in "ab":
        for table, record in rules.items():
            check_table(made.store.read(made.result.parts[name]).table(table), record, table)
    for table, record in {DUPLICATES: DuplicateRecord, KEPT: KeptDocument}.items():
        check_table(made.store.read(made.result.parts["duplicates"]).table(table), record, table)


def test_every_gate_of_the_stage_finds_its_measure(normalize: Normalize) -> None:
    wanted = {gate.measure for gate in GATES if gate.stage == "normalize"}
    assert wanted <= normalize(SOURCES).result.report.gate_measures.keys()


def test_the_same_again_is_recognized(normalize: Normalize) -> None:
    first, second = normalize(SOURCES).result, normalize(SOURCES).result
    assert (first.object_id, first.unchanged, second.unchanged) == (second.object_id, False, True)


def test_a_change_makes_only_what_depends_on_it_anew(normalize: Normalize) -> None:
    before = normalize(SOURCES).result.parts
    threshold = normalize(
        SOURCES, NormalizeParams(duplicates=DuplicateParams(min_jaccard_inside_source=0.8))
    ).result.parts
    assert (threshold["a"], threshold["b"]) == (before["a"], before["b"])
    filters = normalize(SOURCES, NormalizeParams(filters=FilterParams(min_num_bytes=3))).result.parts
    assert filters["a"] != before["a"]
    one_more = normalize({**SOURCES, "c": {"w.cpp": code("w")}}).result.parts
    assert (one_more["a"], one_more["b"]) == (before["a"], before["b"])
    assert one_more["duplicates"] != before["duplicates"]


def test_the_held_out_split_is_on_every_row_of_its_source(normalize: Normalize) -> None:
    made = normalize(SOURCES, held_out=("a",))
    assert {row["split"] for row in made.rows("a", DOCUMENTS)} == {"held_out"}
    assert {row["split"] for row in made.rows("b", DOCUMENTS)} == {"train"}
    assert made.result.report.measures["num_held_out_documents"] == 2


def test_files_are_held_out_by_glob_and_by_hash_and_only_what_a_rule_concerns_is_made_anew(
    normalize: Normalize,
) -> None:
    files = {f"{number}.cpp": code(f"f{number}") for number in range(6)}
    sources = {"a": files, "b": {f"deep/{path}": f"int b;\n{text}" for path, text in files.items()}}

    def held_out(rule: HeldOut) -> tuple[dict[str, str], set[str]]:
        made = normalize(sources, held_out=rule)
        rows = [row for name in sources for row in made.rows(name, DOCUMENTS)]
        assert all(row["split"] == split_of_file(rule.model_dump(), row["source"], row["path"]) for row in rows)
        return dict(made.result.parts), {f"{row['source']}/{row['path']}" for row in rows if row["split"] == "held_out"}

    none, names = held_out(HeldOut())
    assert names == set()
    by_glob, names = held_out(HeldOut(globs=("b/**/1.cpp", "b/*/2.*")))
    assert names == {"b/deep/1.cpp", "b/deep/2.cpp"}
    assert (by_glob["a"], by_glob["b"] != none["b"]) == (none["a"], True)
    by_hash, names = held_out(HeldOut(hash_fraction=0.4, hash_salt="one"))
    files["6.cpp"] = code("f6")
    more, again = held_out(HeldOut(hash_fraction=0.4, hash_salt="one"))
    assert 0 < len(names) < 12
    assert names == again - {"a/6.cpp"}
    assert (more["b"], more["a"] != by_hash["a"]) == (by_hash["b"], True)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (HeldOut(globs=("a/*", "a/src/**")), "'a/src/**' matches none of 7 collected files"),
        (
            HeldOut(globs=("**",)),
            "the rule holds out all of 7 collected files; expected one at least to train on. Narrow `held_out.globs`.",
        ),
        (HeldOut(hash_fraction=1e-9), "the hash of 7 files holds out none"),
        (
            HeldOut(hash_fraction=1 - 1e-9),
            "all of 7 collected files; expected one at least to train on. Lower `held_out.hash_fraction`.",
        ),
    ],
)
def test_a_rule_that_holds_out_nothing_or_everything_is_refused_and_leaves_no_ref(
    normalize: Normalize, rule: HeldOut, words: str, tmp_path: Path
) -> None:
    with pytest.raises(StageError, match=re.escape(words)):
        normalize(SOURCES, held_out=rule)
    store = Store(tmp_path / "store")
    assert list(store.corpora()) == []
    if rule.globs == ("**",):  # normalize alone, of what was collected by another rule
        collected = normalize(SOURCES).store.ref("made", "collect")
        request = BuildRequest("made", CorpusParams(held_out=rule), (), "a test")
        with open_build(request, store) as build, pytest.raises(StageError, match=re.escape(words)):
            run_stage("normalize", build, collected)


def test_a_source_without_a_document_is_a_part_like_any_other(normalize: Normalize) -> None:
    made = normalize({"a": {"x.cpp": code("x")}, "b": {"LICENSE": "MIT\n", "x.cpp": "int x;\n"}})
    assert made.outcomes()["b/x.cpp"] == "too_small"
    assert made.rows("b", DOCUMENTS) == []
    assert made.result.report.rows_out == 1


def test_what_the_rules_of_gitleaks_find_blocks_with_its_place_and_never_its_value(
    normalize: Normalize, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
    monkeypatch.setattr("pipeline.stages.normalize.scrub.scrub.Scrubber._find", lambda self, path, text, waived: [])
    result = normalize({"one": {"a.cpp": f"int b;\n// {token}\n" + code("a"), "b.cpp": code("b")}}).result

    failed = [verdict.gate for verdict in result.verdicts if not verdict.passed]
    assert failed == ["no_known_secret_is_left"]
    with pytest.raises(BlockedError, match=r"rules of gitleaks find a\.cpp:2 \(github-pat\); leave") as error:
        result.refuse_blocked("made")
    assert token not in str(error.value)


def test_a_kept_file_whose_path_holds_a_secret_blocks_and_its_path_is_not_told(
    normalize: Normalize, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
    monkeypatch.setattr("pipeline.stages.normalize.scrub.shown_text.ShownText.holds_secret", lambda self, name: False)
    result = normalize({"one": {f"{token}.cpp": code("a"), "b.cpp": code("b")}}).result

    failed = [verdict.gate for verdict in result.verdicts if not verdict.passed]
    assert failed == ["no_known_secret_is_left"]
    with pytest.raises(BlockedError, match=r"find withheld-path-sha256:[0-9a-f]{64} \(github-pat\); leave") as error:
        result.refuse_blocked("made")
    assert token not in str(error.value)


def test_a_part_of_all_sources_that_ends_stops_the_stage_and_leaves_no_source_out() -> None:
    failed = SourceError("duplicates.003", "link: its worker process died", "", "Leave the source out.")
    context: Any = SimpleNamespace(make=lambda parts: ({}, {"duplicates.003": failed}))
    with pytest.raises(
        StageError, match=r"part duplicates\.003, of all sources: link: its worker.*Run again: finished"
    ):
        stage._made(context, [])
