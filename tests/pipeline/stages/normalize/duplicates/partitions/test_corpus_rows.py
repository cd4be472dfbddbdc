"""Corpus rows: documents by one number each, whole components in groups of a bounded size, and the order of preference."""

from pathlib import Path

import numpy as np
import pytest

from pipeline.stages.normalize.duplicates.copyleft import COPYLEFT
from pipeline.stages.normalize.duplicates.duplicates import SIGNATURES, rank_documents
from pipeline.stages.normalize.duplicates.partitions import corpus_rows
from pipeline.stages.normalize.duplicates.partitions.corpus_rows import (
    ROW_NUMBER,
    CorpusRows,
    spill_copyleft,
    spill_documents,
)
from pipeline.stages.normalize.params import VENDORED_ROOTS
from tests.pipeline.stages.normalize.duplicates.partitions.made_cleaned import MadeFile, MadeTables, cleaned
from tests.pipeline.stages.normalize.duplicates.test_duplicates import statements

TEXTS = [statements(name, 10) for name in "xyz"]
SOURCES = {
    "b": cleaned(
        "b",
        [
            MadeFile("1.cpp", TEXTS[0]),
            MadeFile("third_party/2.cpp", TEXTS[0]),
            MadeFile("zlib/3.cpp", TEXTS[1]),
            MadeFile("4.cpp", TEXTS[2], is_copyleft=True),
            MadeFile("5.cpp", TEXTS[0], "held_out"),
        ],
        2,
    ),
    "a": cleaned("a", [MadeFile("3.cpp", TEXTS[1]), MadeFile("6.cpp", TEXTS[0])]),
}
UPSTREAMS = {"b": {"zlib/**": "a"}}


def rows_of(upstreams: dict[str, dict[str, str]]) -> CorpusRows:
    sources: dict[str, MadeTables] = SOURCES
    rows = CorpusRows(sources, VENDORED_ROOTS, upstreams)  # type: ignore[arg-type]  # what is read of them
    rows.prefer(())
    return rows


def test_rows_are_counted_by_source_and_shard_documents_first() -> None:
    rows = rows_of({})
    assert [(shard.source, shard.start, shard.middle, shard.end) for shard in rows.shards] == [
        ("a", 0, 2, 2),
        ("b", 2, 4, 5),
        ("b", 5, 7, 7),
    ]
    assert [each.path for each in rows.entries()] == [
        *("3.cpp", "6.cpp", "1.cpp", "5.cpp", "third_party/2.cpp", "zlib/3.cpp")
    ]


@pytest.mark.parametrize("upstreams", [{}, UPSTREAMS], ids=["unclaimed", "upstreams"])
def test_of_one_size_the_preferred_is_last(upstreams: dict[str, dict[str, str]]) -> None:
    rows = rows_of(upstreams)
    entries = dict(zip(np.flatnonzero(rows.is_document).tolist(), rows.entries(), strict=True))
    ranked = rank_documents(entries.values(), VENDORED_ROOTS, upstreams)
    assert [entries[row] for row in rows.by_size(np.array(list(entries)))] == ranked[::-1]


def test_a_group_has_whole_components_and_their_documents_with_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of({})
    names = np.array([0, 1, 1, 3, 0, 1, 0])
    assert rows.groups(names).tolist() == [0, 0, 0, -1, 0, 0, 0]
    monkeypatch.setattr(corpus_rows, "_GROUP_BYTES", 10_000)
    groups = rows.groups(names)
    assert groups.tolist() == [0, 1, 1, -1, 0, 1, 0]

    documents, copyleft = (
        each(rows, groups, tmp_path / each.__name__).read(0) for each in (spill_documents, spill_copyleft)
    )
    assert documents is not None
    assert copyleft is not None
    assert documents[ROW_NUMBER].to_pylist() == [0, 6]
    assert documents["text"].to_pylist() == [TEXTS[1], TEXTS[1]]
    assert documents["signature"].to_pylist() == SOURCES["a"].table(SIGNATURES)["signature"].to_pylist()[:1] * 2
    assert copyleft.column_names == SOURCES["b"].table(COPYLEFT).column_names
    assert copyleft["path"].to_pylist() == ["4.cpp"]
