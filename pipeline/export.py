"""A snapshot for other tools: a Megatron-LM dataset, or a folder that Hugging Face's loaders read as it is."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline.errors import MissingError, StageError
from pipeline.megatron import Ids, read_megatron, write_megatron
from pipeline.records import Split
from pipeline.snapshot import Snapshot
from pipeline.tokenize.columns import ListColumn

FORMATS = ("megatron", "huggingface")
TOKENS = "tokens.parquet"


def export(snapshot: Snapshot, form: str, out: Path) -> dict[str, Any]:
    """Write a snapshot into the folder `out`, which must not hold anything. Returns what was written, by split."""
    if out.exists() and any(out.iterdir()):
        raise StageError(f"folder {out}", "it is not empty", "an empty or a new one", "Name another with --out.")
    out.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(snapshot.tokenizer_file, out / "tokenizer.json")
    write = {"megatron": _export_megatron, "huggingface": _export_huggingface}[form]
    return {"snapshot_id": snapshot.snapshot_id, "format": form, "out": str(out), "written": write(snapshot, out)}


def _export_megatron(snapshot: Snapshot, out: Path) -> dict[str, Any]:
    """`train.bin` and `train.idx`, and the same for `held_out`: one document a sequence, each read back and compared."""
    eos = snapshot.vocabulary["specials"]["<|eos|>"]
    written: dict[str, Any] = {}
    for split in Split:
        num_tokens = write_megatron(out / split, _documents(snapshot, split), eos)
        written[split] = {"num_tokens": num_tokens, "num_documents": _read_back(snapshot, split, out / split, eos)}
    return written


def _read_back(snapshot: Snapshot, split: Split, prefix: Path, eos: int) -> int:
    """How many documents lie in a dataset. Raises StageError unless they are the snapshot's, token for token."""
    number = 0
    for number, (found, ids) in enumerate(
        zip(read_megatron(prefix), _documents(snapshot, split), strict=True), start=1
    ):
        if found.tobytes() != ids.tobytes() + eos.to_bytes(2, "little"):
            raise StageError(
                f"{prefix}.bin", f"document {number} came back changed", "its ids and EOS", "Export again."
            )
    return number


def _documents(snapshot: Snapshot, split: Split) -> Iterator[Ids]:
    """The ids of each document of a split, by source and in the source's order; one source is in memory at a time."""
    for source in snapshot.sources:
        table = snapshot.store.read(source.rows).table(TOKENS, ["split", "input_ids"])
        splits, ids = table["split"].to_pylist(), ListColumn.from_arrow(table["input_ids"])
        for index, found in enumerate(splits):
            if found == split:
                yield ids[index]


def _export_huggingface(snapshot: Snapshot, out: Path) -> dict[str, Any]:
    """`documents/` and `packed/SPLIT/` of the cold Parquet files, copied as they are, and a card that names them."""
    written: dict[str, Any] = {}
    names = {TOKENS: "documents"} | {f"packed_{split}.parquet": f"packed/{split}" for split in Split}
    for file, folder in names.items():
        (out / folder).mkdir(parents=True, exist_ok=True)
        paths = [
            (source.name, number, path)
            for source in snapshot.sources
            for number, path in enumerate(snapshot.store.read(source.rows).paths(file))
        ]
        if not paths:
            raise MissingError(f"snapshot {snapshot.snapshot_id[:12]}", f"it holds no {file}")
        for name, number, path in paths:
            shutil.copyfile(path, out / folder / f"{name}-{number:05d}.parquet")
        written[folder] = len(paths)
    (out / "README.md").write_text(_CARD.format(snapshot_id=snapshot.snapshot_id), encoding="utf-8")
    return written


_CARD = """---
configs:
  - config_name: packed
    default: true
    data_files:
      - split: train
        path: packed/train/*.parquet
      - split: held_out
        path: packed/held_out/*.parquet
  - config_name: documents
    data_files: documents/*.parquet
---

Snapshot `{snapshot_id}`. `tokenizers.Tokenizer.from_file("tokenizer.json")` reads the vocabulary.
"""
