"""Grouped copies: all groups in one go, or share by share, and what is left out of them."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.contracts.part import LINKS_LABEL, SCRATCH, PartJob
from pipeline.core.params import Params
from pipeline.stages.normalize.duplicates.partitions import corpus_rows
from pipeline.stages.normalize.duplicates.partitions.corpus_rows import ROW_NUMBER
from pipeline.stages.normalize.duplicates.partitions.grouped_copies import GROUP_COPIES, GroupedCopies, find_copies
from pipeline.stages.normalize.duplicates.partitions.links import link_documents
from pipeline.stages.normalize.duplicates.partitions.marks import mark_documents
from pipeline.stages.normalize.params import DuplicateParams
from tests.pipeline.stages.normalize.duplicates.partitions.made_cleaned import (
    MadeFile,
    MadeTables,
    StreamedTables,
    cleaned,
)
from tests.pipeline.stages.normalize.duplicates.test_duplicates import statements

NAMES = [f"x{number}" for number in range(8)]


def job_of(folder: Path, **identity: Any) -> PartJob:
    """Eight texts, each with a near copy in another source."""
    sources: Any = {
        source: cleaned(source, [MadeFile(f"{name}.cpp", statements(name, 60, changed)) for name in NAMES])
        for source, changed in (("a", 0), ("b", 5))
    }
    marks: Any = {
        source: MadeTables(mark_documents(PartJob("", Params(), {"rules": stored.shards[0]}, {}, {})))
        for source, stored in sources.items()
    }
    links: Any = MadeTables(link_documents(PartJob("", Params(), marks, {"range": 0, "num_ranges": 1}, {})))
    inputs = {**sources, f"{LINKS_LABEL}0": links}
    return PartJob("", DuplicateParams(), inputs, {"vendored_roots": [], **identity}, {SCRATCH: folder})


def test_shares_find_together_what_all_groups_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_rows, "_GROUP_BYTES", 40_000)
    found = []
    for share in range(3):
        part = StreamedTables(find_copies(job_of(tmp_path, share=share, num_shares=3)), tmp_path / str(share))
        tables = [part.read(path) for path in part.paths(GROUP_COPIES)]
        assert len(tables) > 1
        found += [(row["path"], row[ROW_NUMBER]) for table in tables for row in table.to_pylist()]
    assert sorted(found) == [(f"{name}.cpp", 8 + number) for number, name in enumerate(NAMES)]


def test_what_is_left_out_is_no_copy_and_has_none(tmp_path: Path) -> None:
    grouped = GroupedCopies(job_of(tmp_path), tmp_path)
    first, *_ = grouped.rows.entries()
    found = [row["path"] for table in grouped.find({first.document_id}) for row in table.to_pylist()]
    assert sorted(found) == [f"{name}.cpp" for name in NAMES[1:]]
