"""Files of JSON lines in which measurements are kept: a row names what it was measured on, and a run goes on where one ended."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from kernels.framework.backend import HAS_TRITON, triton

COMMITTED = Path(__file__).parents[2] / "docs" / "benchmarks"
"""Where the rows of GPUs lie, and none of a dry run."""


def surroundings() -> dict[str, Any]:
    """What a timing depends on besides the code. A row without a GPU is marked as dry: its timings mean nothing."""
    versions = {"torch": torch.__version__, "triton": triton.__version__ if HAS_TRITON else "not installed"}
    if not torch.cuda.is_available():
        return {"gpu": "none", "dry": True, **versions}
    return {
        "gpu": torch.cuda.get_device_name(),
        "cuda": str(torch.version.cuda),
        "driver": driver_version(),
        **versions,
    }


def driver_version() -> str | None:
    """The version of the driver of NVIDIA's GPUs, where the system tells it."""
    try:
        return Path("/sys/module/nvidia/version").read_text().strip()
    except OSError:
        return None


def read_rows(path: Path, place: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a file that hold for a place; none where there is no file. A torn last line is none."""
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    return [row for row in map(json.loads, lines) if place.items() <= row.items()]


def append(path: Path, row: Mapping[str, Any]) -> None:
    """Add a row at the end of a file, which is made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, sort_keys=True) + "\n")
