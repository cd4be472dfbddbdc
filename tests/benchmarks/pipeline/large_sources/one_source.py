"""One large source: a made file of JSON lines through every stage, how seconds and memory grow, and one changed file."""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from tests.benchmarks.figure import Figure
from tests.benchmarks.pipeline.large_sources.made_texts import write_lines
from tests.benchmarks.pipeline.large_sources.process_memory import ProcessMemory
from tests.benchmarks.pipeline.slices import build, scratch

NUM_BYTES = (25_000_000, 100_000_000)
REACH_GIBIBYTES, REACH_GROWTH, REACH_CHANGED = 1.0, 1.1, 0.15
_RECIPE = """base = "full"
pins = "{pins}"
held_out = []
"""
_PIN = """[[pin]]
name = "made"
kind = "jsonl"
path = "{path}"
sha256 = "{sha256}"
license_field = "license"
declared_license = "MIT"
"""


def one_source() -> list[Figure]:
    """Seconds and the largest process of a source of 100 MB, two workers, every gate on."""
    seconds, gibibytes, _ = _built(NUM_BYTES[1])
    name = "one-source"
    holds = gibibytes <= REACH_GIBIBYTES
    return [
        Figure(name, round(NUM_BYTES[1] / 1e6 / seconds, 2), "MB/s, 100 MB of JSON lines", "reported", True),
        Figure(f"{name}/peak-memory", round(gibibytes, 2), "GiB, largest process", "<= 1 GiB", holds),
    ]


def growth() -> list[Figure]:
    """Memory of the largest process and seconds, of four times the bytes."""
    (before, small, _), (after, large, _) = map(_built, NUM_BYTES)
    ratio, seconds = large / small, after / before
    return [
        Figure("growth", round(ratio, 2), "times the memory, 4 times the bytes", "<= 1.1", ratio <= REACH_GROWTH),
        Figure("growth/seconds", round(seconds, 2), "times the seconds, 4 times the bytes", "reported", True),
    ]


def one_changed_file() -> list[Figure]:
    """The same source with one more line in one file, in the store of the first: as a share of what all of it took."""
    seconds, _, root = _built(NUM_BYTES[1])
    lines = _lines(NUM_BYTES[1]).read_text().splitlines()
    changed = json.loads(lines[len(lines) // 2])
    changed["text"] += "int one_more_line;\n"
    path = scratch() / "changed.jsonl"
    path.write_text("\n".join([*lines[: len(lines) // 2], json.dumps(changed), *lines[len(lines) // 2 + 1 :], ""]))
    fraction = float(build(root, str(_recipe(path)))["seconds"]) / seconds
    return [Figure("one-changed-file", round(fraction, 3), "of all", "<= 0.15", fraction <= REACH_CHANGED)]


@cache
def _built(num_bytes: int) -> tuple[float, float, Path]:
    """Return the seconds of a build, the GiB of its largest process, and its store."""
    root, memory = scratch() / f"one-{num_bytes}", ProcessMemory()
    answer: dict[str, Any] = build(root, str(_recipe(_lines(num_bytes))), watch=memory.watch)
    return float(answer["seconds"]), memory.largest / 2**30, root


@cache
def _lines(num_bytes: int) -> Path:
    path = scratch() / f"made-{num_bytes}.jsonl"
    write_lines(path, num_bytes)
    return path


def _recipe(lines: Path) -> Path:
    """Write a recipe of one source, and return its path."""
    pins, recipe = lines.with_suffix(".pins.toml"), lines.with_suffix(".toml")
    with lines.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    pins.write_text(_PIN.format(path=lines, sha256=sha256))
    recipe.write_text(_RECIPE.format(pins=pins))
    return recipe
