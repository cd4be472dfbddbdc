"""Another reader finds every document of a snapshot in its Megatron-LM dataset."""

import struct
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.export.export import export
from pipeline.store.snapshot import Snapshot


def documents_of(snapshot: Snapshot, split: str) -> list[list[int]]:
    tables = [snapshot.store.read(source.rows).table("tokens.parquet") for source in snapshot.sources]
    rows = pa.concat_tables(tables).select(["split", "input_ids"]).to_pylist()
    return [row["input_ids"] for row in rows if row["split"] == split]


def read_dataset(prefix: Path) -> list[list[int]]:
    """Megatron's layout, read from its description alone."""
    index = prefix.with_suffix(".idx").read_bytes()
    assert index[:9] == b"MMIDIDX\0\0"
    version, code, num_sequences, num_documents = struct.unpack("<QBQQ", index[9:34])
    assert (version, code, num_documents) == (1, 8, num_sequences + 1)
    sizes = struct.unpack(f"<{num_sequences}i", index[34 : 34 + 4 * num_sequences])
    pointers = struct.unpack(f"<{num_sequences}q", index[34 + 4 * num_sequences : 34 + 12 * num_sequences])
    content = prefix.with_suffix(".bin").read_bytes()
    return [
        list(struct.unpack(f"<{size}H", content[start : start + 2 * size]))
        for size, start in zip(sizes, pointers, strict=True)
    ]


@pytest.mark.parametrize("split", ["train", "held_out"])
def test_megatron_gets_every_document_with_its_end(snapshot: Snapshot, tmp_path: Path, split: str) -> None:
    answer = export(snapshot, "megatron", tmp_path / "out")
    found, wanted = read_dataset(tmp_path / "out" / split), documents_of(snapshot, split)

    assert wanted
    assert found == [[*ids, snapshot.vocabulary["specials"]["<|eos|>"]] for ids in wanted]
    assert answer["written"][split] == {"num_tokens": sum(map(len, found)), "num_documents": len(found)}
