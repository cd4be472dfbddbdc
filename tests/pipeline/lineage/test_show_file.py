"""The structure of a file is that of its stored document; a file without a document is refused with what became of it."""

import pytest

from pipeline.core.errors import MissingError
from pipeline.core.table_names import DROPPED, ENRICHED
from pipeline.lineage.show_file import file_structure, structure_lines
from pipeline.lineage.stored_build import stored_build
from pipeline.store.store import Store


def _sources(store: Store) -> list[str]:
    labels = sorted(stored_build(store, "tiny").stage("enrich").manifest.inputs)
    return [label.removeprefix("part/") for label in labels if label.startswith("part/")]


def test_chunks_cover_the_document_and_shares_add_up(tiny_store: Store) -> None:
    source = _sources(tiny_store)[0]
    row = stored_build(tiny_store, "tiny").part("enrich", source).table(ENRICHED).to_pylist()[0]
    structure = file_structure(tiny_store, "tiny", source, row["path"])

    assert (
        structure["num_bytes"] == len(row["text"].encode()) == sum(chunk["num_bytes"] for chunk in structure["chunks"])
    )
    assert [chunk["start"] for chunk in structure["chunks"]] == row["chunk_starts"]
    assert sum(structure["provenance_shares"].values()) == pytest.approx(1)
    lines = list(structure_lines(structure))
    assert lines[0].startswith(f"{source}/{row['path']}: ")
    assert len(lines) >= 5 + len(structure["chunks"])


def test_a_dropped_file_is_refused_with_its_stage_and_reason(tiny_store: Store) -> None:
    tables = (
        stored_build(tiny_store, "tiny").part("normalize", source).table(DROPPED) for source in _sources(tiny_store)
    )
    dropped = next(row for table in tables for row in table.to_pylist())

    with pytest.raises(MissingError, match=f"normalize dropped it: {dropped['reason']}.*pipeline why"):
        file_structure(tiny_store, "tiny", dropped["source"], dropped["path"])
