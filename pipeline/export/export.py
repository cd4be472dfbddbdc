"""A snapshot for other tools: a Megatron-LM dataset, or a folder that Hugging Face's loaders read as it is."""

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pipeline.core.errors import StageError
from pipeline.core.records import Split
from pipeline.export.card import facts_of, markdown_card
from pipeline.export.croissant import croissant
from pipeline.export.huggingface import TOKENS, view_files
from pipeline.export.spdx import bill_of_materials
from pipeline.formats.megatron import Ids, read_megatron, write_megatron
from pipeline.store.snapshot import Snapshot
from pipeline.tokenize.columns.list_column import ListColumn


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
    """`documents/` and `packed/SPLIT/` of the cold Parquet files, copied as they are, and what describes them."""
    files = view_files(snapshot)
    for file in files:
        (out / file.folder).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file.stored, out / file.path)
    facts = facts_of(snapshot)
    folders = list(dict.fromkeys(file.folder for file in files))
    (out / "README.md").write_text(_configs(folders) + markdown_card(facts), encoding="utf-8")
    for name, content in (("croissant.json", croissant(facts)), ("sbom.spdx.json", bill_of_materials(facts))):
        (out / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return dict(Counter(file.folder for file in files))


def _configs(folders: Iterable[str]) -> str:
    """What tells `datasets.load_dataset(DIR)` where the splits lie; one without rows has no folder."""
    packed = [folder for folder in folders if folder.startswith("packed/")]
    splits = [f"      - split: {folder.removeprefix('packed/')}\n        path: {folder}/*.parquet" for folder in packed]
    lines = ["---", "configs:"]
    lines += ["  - config_name: packed", "    default: true", "    data_files:", *splits] if splits else []
    return "\n".join([*lines, "  - config_name: documents", "    data_files: documents/*.parquet", "---", "", ""])
