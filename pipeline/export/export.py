"""Export of a snapshot for other tools, and EXPORT_FORMATS: the one list of the formats.

Light, since the command line lists the formats: a format's writer is imported when a snapshot is exported.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.core.declared import load_declared
from pipeline.core.errors import StageError
from pipeline.core.registry import Registry
from pipeline.store.snapshot import Snapshot


@dataclass(frozen=True)
class ExportFormat:
    """A format that snapshots are exported in. `writer` is `package.module:function` of (snapshot, folder) -> what it wrote."""

    name: str
    writer: str
    description: str


def load_writer(formats: Registry[ExportFormat], name: str) -> Callable[..., Any]:
    """Import the writer of a format. Raises ParamsError naming the format if there is none."""
    writer: Callable[..., Any] = load_declared(f"{formats.kind} {name}", "writer", formats[name].writer)
    return writer


EXPORT_FORMATS: Registry[ExportFormat] = Registry(
    "export format",
    ExportFormat(
        "megatron",
        "pipeline.export.megatron_dataset:write_megatron_dataset",
        "a Megatron-LM dataset of documents for each split",
    ),
    ExportFormat(
        "huggingface",
        "pipeline.export.huggingface:write_huggingface",
        "documents and packed rows as Parquet, with a data card, for `datasets.load_dataset`",
    ),
)


def export(snapshot: Snapshot, form: str, out: Path) -> dict[str, Any]:
    """Write a snapshot into the empty folder `out`, and return what was written. Raises StageError, ParamsError."""
    write = load_writer(EXPORT_FORMATS, form)
    if out.exists() and any(out.iterdir()):
        raise StageError(f"folder {out}", "it is not empty", "an empty or a new one", "Name another with --out.")
    out.mkdir(parents=True, exist_ok=True)
    written = write(snapshot, out)
    shutil.copyfile(snapshot.tokenizer_file, out / "tokenizer.json")
    return {"snapshot_id": snapshot.snapshot_id, "format": form, "out": str(out), "written": written}
