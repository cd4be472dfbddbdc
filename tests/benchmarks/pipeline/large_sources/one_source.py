"""One large source: a made file of JSON lines through every stage, how it grows, one changed file, and the same as many sources."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.benchmarks.figure import Figure
from tests.benchmarks.pipeline.large_sources.made_texts import write_lines
from tests.benchmarks.pipeline.large_sources.process_memory import ProcessMemory
from tests.benchmarks.pipeline.slices import build, scratch

NUM_BYTES = (25_000_000, 100_000_000)
NUM_SOURCES = 200
REACH_GIBIBYTES, REACH_TOGETHER, REACH_GROWTH, REACH_EXPONENT = 1.0, 2.0, 1.1, 1.05
REACH_CHANGED, REACH_MANY, REACH_UNCHANGED = 0.15, 0.6, 3.0
_RECIPE = """base = "full"
pins = "{pins}"
held_out = []
"""
_PIN = """[[pin]]
name = "{name}"
kind = "jsonl"
path = "{path}"
sha256 = "{sha256}"
license_field = "license"
declared_license = "MIT"
"""


@dataclass(frozen=True)
class _Build:
    """Seconds and memory of a build of one source."""

    seconds: float
    by_stage: Mapping[str, float]
    largest: float
    """GiB of the largest process."""
    together: float
    """GiB of all processes at once."""
    root: Path


def one_source() -> list[Figure]:
    """Seconds, the largest process and all processes of a source of 100 MB, two workers, every gate on."""
    built, name = _built(NUM_BYTES[1]), "one-source"
    is_small, are_small = built.largest <= REACH_GIBIBYTES, built.together <= REACH_TOGETHER
    return [
        Figure(name, round(NUM_BYTES[1] / 1e6 / built.seconds, 2), "MB/s, 100 MB of JSON lines", "reported", True),
        Figure(f"{name}/peak-memory", round(built.largest, 2), "GiB, largest process", "<= 1 GiB", is_small),
        Figure(f"{name}/all-memory", round(built.together, 2), "GiB, all processes", "<= 2 GiB", are_small),
    ]


def growth() -> list[Figure]:
    """Memory of the largest process, and the exponents of seconds, of four times the bytes."""
    before, after = map(_built, NUM_BYTES)
    ratio = after.largest / before.largest
    exponents = {"seconds": _exponent(before.seconds, after.seconds)}
    exponents |= {stage: _exponent(seconds, after.by_stage[stage]) for stage, seconds in before.by_stage.items()}
    unit = "exponent of seconds, 4 times the bytes"
    return [
        Figure("growth", round(ratio, 2), "times the memory, 4 times the bytes", "<= 1.1", ratio <= REACH_GROWTH),
        *(
            Figure(f"growth/{name}", round(value, 2), unit, "<= 1.05", value <= REACH_EXPONENT)
            for name, value in exponents.items()
        ),
    ]


def _exponent(before: float, after: float) -> float:
    return math.log(after / before) / math.log(NUM_BYTES[1] / NUM_BYTES[0])


def one_changed_file() -> list[Figure]:
    """The same source with one more line in one file, in the store of the first: as a share of what all of it took."""
    built = _built(NUM_BYTES[1])
    lines = _lines(NUM_BYTES[1]).read_text().splitlines()
    changed = json.loads(lines[len(lines) // 2])
    changed["text"] += "int one_more_line;\n"
    path = scratch() / "changed.jsonl"
    path.write_text("\n".join([*lines[: len(lines) // 2], json.dumps(changed), *lines[len(lines) // 2 + 1 :], ""]))
    fraction = float(build(built.root, str(write_recipe([path])))["seconds"]) / built.seconds
    return [Figure("one-changed-file", round(fraction, 3), "of all", "<= 0.15", fraction <= REACH_CHANGED)]


def many_sources() -> list[Figure]:
    """The smaller number of bytes as 200 sources, beside one source, and built again without a change."""
    lines = _lines(NUM_BYTES[0]).read_text().splitlines(keepends=True)
    each, paths = -(-len(lines) // NUM_SOURCES), []
    for start in range(0, len(lines), each):
        paths.append(scratch() / f"many-{start:06}.jsonl")
        paths[-1].write_text("".join(lines[start : start + each]))
    root, recipe = scratch() / "many", str(write_recipe(paths))
    seconds, unchanged = (float(build(root, recipe)["seconds"]) for _ in range(2))
    of_one = _built(NUM_BYTES[0]).seconds
    ratio, name, unit = seconds / of_one, "many-sources", f"s, 25 MB in {len(paths)} sources"
    peer = "the same as one source, s"
    return [
        Figure(name, round(seconds, 1), unit, "<= 0.6x", ratio <= REACH_MANY, peer, round(of_one, 1), round(ratio, 2)),
        Figure(f"{name}/unchanged", round(unchanged, 1), "s", "<= 3 s", unchanged <= REACH_UNCHANGED),
    ]


@cache
def _built(num_bytes: int) -> _Build:
    """Build one source of so many bytes, once a run."""
    root, memory = scratch() / f"one-{num_bytes}", ProcessMemory()
    answer: dict[str, Any] = build(root, str(write_recipe([_lines(num_bytes)])), watch=memory.watch)
    by_stage = {str(stage["name"]): float(stage["seconds"]) for stage in answer["stages"]}
    return _Build(float(answer["seconds"]), by_stage, memory.largest / 2**30, memory.peak / 2**30, root)


@cache
def _lines(num_bytes: int) -> Path:
    path = scratch() / f"made-{num_bytes}.jsonl"
    write_lines(path, num_bytes)
    return path


def write_recipe(sources: Sequence[Path]) -> Path:
    """Write a recipe of sources, each a file of lines, and return its path."""
    pins, recipe = sources[0].with_suffix(".pins.toml"), sources[0].with_suffix(".toml")
    texts = []
    for number, lines in enumerate(sources):
        with lines.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        name = f"made-{number:03}" if len(sources) > 1 else "made"
        texts.append(_PIN.format(name=name, path=lines, sha256=sha256))
    pins.write_text("\n".join(texts))
    recipe.write_text(_RECIPE.format(pins=pins))
    return recipe
