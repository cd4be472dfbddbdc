"""Megatron-LM datasets of a snapshot, one for each split: one document a sequence, in the order of the sources."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline.core.errors import StageError
from pipeline.core.records import Split
from pipeline.core.table_names import TOKENS
from pipeline.formats.megatron import Ids, read_megatron, write_megatron
from pipeline.stages.tokenize.columns.list_column import ListColumn
from pipeline.store.snapshot import Snapshot


def write_megatron_dataset(snapshot: Snapshot, out: Path) -> dict[str, Any]:
    """Write `train.bin` and `train.idx`, and the same for `held_out`; read each back, and return its counts by split."""
    eos = snapshot.vocabulary["specials"]["<|eos|>"]
    written: dict[str, Any] = {}
    for split in Split:
        num_tokens = write_megatron(out / split, _documents(snapshot, split), eos)
        written[split] = {"num_tokens": num_tokens, "num_documents": _read_back(snapshot, split, out / split, eos)}
    return written


def _read_back(snapshot: Snapshot, split: Split, prefix: Path, eos: int) -> int:
    """Return the number of documents in a dataset. Raises StageError unless they are the snapshot's, token for token."""
    number = 0
    pairs = zip(read_megatron(prefix), _documents(snapshot, split), strict=True)
    for number, (found, ids) in enumerate(pairs, start=1):
        if found.tobytes() != ids.tobytes() + eos.to_bytes(2, "little"):
            raise StageError(
                f"{prefix}.bin", f"document {number} came back changed", "its ids and EOS", "Export again."
            )
    return number


def _documents(snapshot: Snapshot, split: Split) -> Iterator[Ids]:
    """Iterate over the ids of the documents of a split, with one source in memory at a time."""
    for source in snapshot.sources:
        table = snapshot.store.read(source.rows).table(TOKENS, ["split", "input_ids"])
        splits, ids = table["split"].to_pylist(), ListColumn.from_arrow(table["input_ids"])
        for index, found in enumerate(splits):
            if found == split:
                yield ids[index]
