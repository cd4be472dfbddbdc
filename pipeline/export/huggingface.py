"""Folder of a snapshot that Hugging Face's loaders read: its Parquet files, and a card, Croissant and SPDX about them."""

import json
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from pipeline.export.card import facts_of, markdown_card
from pipeline.export.croissant import croissant
from pipeline.export.spdx import bill_of_materials
from pipeline.export.view_files import view_files
from pipeline.store.snapshot import Snapshot


def write_huggingface(snapshot: Snapshot, out: Path) -> dict[str, int]:
    """Write `documents/`, copy the rows into `packed/SPLIT/`, write their descriptions, and count files by folder."""
    facts = facts_of(snapshot)  # of rows without their documents there are none
    files = view_files(snapshot, out)
    for file in files:
        if file.stored != out / file.path:
            (out / file.folder).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.stored, out / file.path)
    folders = list(dict.fromkeys(file.folder for file in files))
    (out / "README.md").write_text(_configs(folders) + markdown_card(facts), encoding="utf-8")
    for name, content in (("croissant.json", croissant(facts, files)), ("sbom.spdx.json", bill_of_materials(facts))):
        (out / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return dict(Counter(file.folder for file in files))


def _configs(folders: Iterable[str]) -> str:
    """Return the header by which `datasets.load_dataset(DIR)` finds the splits. A split without rows has no folder."""
    packed = [folder for folder in folders if folder.startswith("packed/")]
    splits = [f"      - split: {folder.removeprefix('packed/')}\n        path: {folder}/*.parquet" for folder in packed]
    lines = ["---", "configs:"]
    lines += ["  - config_name: packed", "    default: true", "    data_files:", *splits] if splits else []
    return "\n".join([*lines, "  - config_name: documents", "    data_files: documents/*.parquet", "---", "", ""])
