"""Decisions that no person made turn the gate of their stage red; those of the request do not."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.build.build_context import BuildContext
from pipeline.build.oracles.audited_decisions import ITEMS, covers, uncompared_items, undecided_files
from pipeline.contracts.part import PartJob, PartOutput
from pipeline.pins.decisions import Decision
from pipeline.stages.normalize import clean_source
from tests.pipeline.stages.normalize.conftest import CODE, UNCLEAR, Normalize, decision, normalize_in
from tests.support.made.whole_part import WholePart

FILES = {"mine": {"src/a.c": UNCLEAR, "src/b.c": UNCLEAR.replace("int f", "long g"), "src/c.c": CODE.upper()}}
GATE = "no_row_lost_in_normalize"


@pytest.fixture
def normalize(tmp_path: Any) -> Normalize:
    def run(*given: Any, **named: Any) -> Any:
        return normalize_in(tmp_path, *given, **named)

    return run


def plant_decisions(monkeypatch: pytest.MonkeyPatch, *invented: Decision) -> None:
    """Have the process that builds decide by itself."""
    initialize = BuildContext.__init__

    def with_more(context: BuildContext, *given: Any) -> None:
        initialize(context, *given)
        context.decisions = (*context.decisions, *invented)

    monkeypatch.setattr(BuildContext, "__init__", with_more)


def plant_column(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """Have the rules store another value in a column of the first document."""
    function = clean_source.clean_source

    def planted(job: PartJob) -> PartOutput:
        output = function(job)
        table = output.tables["documents.parquet"]
        values = pa.array([value, *table[name].to_pylist()[1:]], table.schema.field(name).type)
        changed = table.set_column(table.schema.get_field_index(name), table.schema.field(name), values)
        return replace(output, tables={**output.tables, "documents.parquet": changed})

    monkeypatch.setattr(clean_source, "clean_source", planted)


def red(result: Any) -> set[str]:
    return {verdict.gate for verdict in result.verdicts if not verdict.passed}


@pytest.mark.parametrize(
    "made",
    [
        decision("src/*.c", license="ISC"),
        decision("**/b.c", release=("license_quarantined",)),
        decision("src/c.c", waive="secret", line=1),
        decision("nowhere.c", license="MIT"),
    ],
)
def test_decisions_of_the_request_are_no_flaws(made: Decision, normalize: Normalize) -> None:
    assert red(normalize(FILES, decisions=(made,)).result) == set()


@pytest.mark.parametrize(
    "invented",
    [
        decision("src/a.c", license="MIT"),
        decision("src/a.c", release=("license_quarantined",)),
        decision("src/c.c", waive="secret", line=1),
        decision("src/c.c", release=("generated",)),
    ],
    ids=["license", "release", "waiver", "release of a filter"],
)
def test_a_decision_that_nobody_made_blocks(
    invented: Decision, normalize: Normalize, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant_decisions(monkeypatch, invented)

    result = normalize(FILES, decisions=(decision("src/b.c", license="MIT"),)).result

    assert red(result) == {GATE}
    assert f"mine/{invented.path}" in " ".join(note.text for note in result.notes)


@pytest.mark.parametrize(
    ("column", "value"), [("license_evidence", "decision"), ("license", "Zlib"), ("blob_sha256", "0" * 64)]
)
def test_a_document_that_no_decision_covers_blocks(
    column: str, value: str, normalize: Normalize, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = () if column == "license_evidence" else (decision("src/a.c", license="MIT", sha256=_digest(UNCLEAR)),)
    assert red(normalize(FILES, decisions=made).result) == set()
    plant_column(monkeypatch, column, value)
    files = {"mine": {**FILES["mine"], "src/d.c": CODE.lower().replace("int", "char")}}

    assert GATE in red(normalize(files, decisions=made).result)


def test_a_decision_that_is_not_carried_out_is_counted(normalize: Normalize, monkeypatch: pytest.MonkeyPatch) -> None:
    initialize = BuildContext.__init__

    def without(context: BuildContext, *given: Any) -> None:
        initialize(context, *given)
        context.decisions = ()

    monkeypatch.setattr(BuildContext, "__init__", without)

    assert red(normalize(FILES, decisions=(decision("src/b.c", license="MIT"),)).result) == {GATE}


_NAMES = st.lists(st.text("ab.[*?", min_size=1, max_size=4), min_size=1, max_size=4).map("/".join)
_GLOBS = st.lists(st.one_of(st.just("**"), st.text("ab.[*?", min_size=1, max_size=4)), min_size=1, max_size=4)


@given(_GLOBS.map("/".join), _NAMES)
def test_the_audit_matches_the_paths_that_decisions_match(glob: str, path: str) -> None:
    assert covers(glob, path) == (glob == path or decision(glob, license="MIT").matches(path))


@given(_NAMES)
def test_a_path_covers_itself(path: str) -> None:
    assert covers(path, path) or re.search(r"\*\*", path)


def _digest(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class CleanedPart(WholePart):
    """A part of one document under a license by decision, and the decisions that it was made by."""

    decisions: list[dict[str, Any]]
    object_id: str = "0" * 64
    kind: str = "normalize/rules"
    items: str = ""

    @property
    def identity(self) -> dict[str, Any]:
        return {"decisions": self.decisions, "evaluation_sha256": self.items}

    def table(self, name: str, columns: Any = None) -> pa.Table:
        row = {"path": "src/a.c", "blob_sha256": "a" * 64, "license": "MIT", "license_evidence": "decision"}
        return pa.table({column: [row[column]] for column in columns})

    def has(self, name: str) -> bool:
        return False

    def json(self, name: str) -> Any:
        raise KeyError(name)

    def file(self, name: str) -> Path:
        raise KeyError(name)


@pytest.mark.parametrize(
    ("fields", "is_covered"),
    [
        ({"license": "MIT"}, True),
        ({"license": "MIT", "sha256": "a" * 64}, True),
        ({"license": "MIT", "sha256": "b" * 64}, False),
        ({"license": "ISC"}, False),
        ({"license": "MIT", "path": "src/*.h"}, False),
        ({"release": ["license_quarantined"]}, True),
        ({"release": ["generated"]}, False),
        ({"waive": "secret", "line": 1}, False),
        ({"license": "MIT", "source": "other"}, False),
        ({"license": "MIT", "reason": "So said the author.", "person": "A. Reader", "date": "2026-05-03"}, True),
    ],
)
def test_a_license_by_decision_is_covered_by_one_about_that_file_and_its_bytes(
    fields: dict[str, Any], is_covered: bool
) -> None:
    asked = {"source": "mine", "path": "src/a.c", **fields}
    made_by = {name: value for name, value in asked.items() if name not in ("reason", "person", "date")}
    part = CleanedPart([made_by] if asked["source"] == "mine" else [])

    assert list(undecided_files("mine", part, [asked])) == ([] if is_covered else [("mine", "src/a.c")])


def test_a_part_that_was_compared_with_other_evaluation_items_is_a_flaw() -> None:
    part = CleanedPart([])

    assert list(uncompared_items("mine", part, "0" * 64)) == [("mine", ITEMS)]
    assert list(uncompared_items("mine", replace(part, items="0" * 64), "0" * 64)) == []
