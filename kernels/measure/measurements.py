"""Measurement rows: JSON lines that name GPU and versions, and a run that measures the missing ones within a budget."""

import json
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from kernels.framework.backend import HAS_TRITON, triton

Row = dict[str, Any]
COMMITTED = Path(__file__).parents[2] / "docs" / "benchmarks"
"""Folder of the rows of GPUs; rows of a dry run must not be written to it."""


def timing_environment() -> dict[str, Any]:
    """Return what a timing depends on besides the code. A row without a GPU is marked as dry: its timings mean nothing."""
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
    """Return the version of NVIDIA's driver, or None if the system does not report it."""
    try:
        return Path("/sys/module/nvidia/version").read_text(encoding="utf-8").strip()
    except OSError:
        return None


class Measurement(NamedTuple):
    """A row to be measured: the fields that identify it, and a function that returns its other fields.

    The function is given the seconds left; None means that they did not suffice.
    """

    key: Row
    measure: Callable[[float], Row | None]


def measure_missing(
    measurements: Iterable[Measurement], output: Path | None, rows: Sequence[Row], budget_seconds: float
) -> Generator[Row, None, bool]:
    """Measure what `rows` lack until the budget is spent; append each row to the file and yield it.

    All keys have the same fields. Returns whether all were measured; if not, the same call continues at the first missing row.
    """
    start, known = time.monotonic(), set()
    for number, (key, measure) in enumerate(measurements):
        left = budget_seconds - (time.monotonic() - start)
        if left <= 0:
            return False
        if not number:
            known = {tuple(map(row.get, key)) for row in rows}
        if tuple(key.values()) in known:
            continue
        measured = measure(left)
        if measured is None:
            return False
        if output:
            append(output, key | measured)
        yield key | measured
    return True


def read_rows(path: Path, place: Mapping[str, Any]) -> list[Row]:
    """Return the rows of a file that were measured at a place; no rows if there is no file. Ignores a torn last line."""
    lines, last = _lines(path)
    lines += [last] if last and not _is_torn(last) else []
    return [row for row in map(json.loads, lines) if place.items() <= row.items()]


def first_bad_line(path: Path, fields: Collection[str]) -> int | None:
    """Return the number, from 1, of the first line of a file that is no row with these fields and a GPU; None if there is none.

    A last line that is torn may follow rows.
    """
    lines, last = _lines(path)
    lines += [last] if last and not (lines and _is_torn(last)) else []
    wanted = (*fields, "gpu", "torch", "triton")
    for number, row in enumerate(map(_parsed, lines), start=1):
        if row is None or not all(isinstance(row.get(name), str | int) for name in wanted):
            return number
    return None


def can_be_file(path: Path) -> bool:
    """Return whether a path is a file, or may become one: it is no folder, no pipe, and not below a file."""
    return path.is_file() or not (path.exists() or any(each.exists() and not each.is_dir() for each in path.parents))


def append(path: Path, row: Mapping[str, Any]) -> None:
    """Add a row at the end of a file, which is created if missing, in place of a torn last line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        file.seek(0)
        content = file.read()
        start = content.rfind(b"\n") + 1
        is_whole = start < len(content) and _parsed(content[start:].decode("utf-8", "replace")) is not None
        file.truncate(len(content) if is_whole else start)
        file.write(b"\n" * is_whole + (json.dumps(row, sort_keys=True) + "\n").encode())


def _lines(path: Path) -> tuple[list[str], str]:
    """Return the lines of a file that have an end, and what stands after the last of them; nothing if there is no file."""
    text = path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""
    *lines, last = text.split("\n")
    return lines, last


def _is_torn(last: str) -> bool:
    """Return whether a line without an end is the beginning of a row and no more: it holds nothing whole."""
    if not last.startswith('{"'):
        return False
    try:
        json.JSONDecoder().raw_decode(last)
    except json.JSONDecodeError:
        return True
    except (ValueError, RecursionError):  # what is whole, and more than can be read
        return False
    return False


def _parsed(line: str) -> Row | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None
