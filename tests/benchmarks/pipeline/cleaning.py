"""Collect and normalize over the full slice, archives in the store: all of it, one source more, and the question about one file."""

import shutil
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

from pipeline.build.recipes import ROOT
from pipeline.build.stage_objects import parts_of
from pipeline.store.store import Store
from tests.benchmarks.figure import Figure
from tests.benchmarks.pipeline.large_sources.process_memory import ProcessMemory
from tests.benchmarks.pipeline.slices import build, collected, copy_blobs, scratch

REACH_MB_PER_SECOND, REACH_GIBIBYTES = 7.0, 3.0
REACH_FRACTION, REACH_WHY_SECONDS = 0.15, 1.0
ONE_MORE = "osmium"
REQUESTED_FILE = ("vowpalwabbit", "vowpalwabbit/core/src/parser.cc")


def collect_normalize_full() -> list[Figure]:
    """MB/s of C and C++ with two workers, memory of all their processes, and what `why` takes on the built store."""
    _, answer, gibibytes = _cleaned()
    num_bytes = next(stage["num_bytes_in"] for stage in answer["stages"] if stage["name"] == "normalize")
    speed = num_bytes / 1e6 / answer["seconds"]
    name = "collect-normalize-full"
    seconds = _why_seconds()
    return [
        Figure(name, round(speed, 2), "MB/s, 2 workers", ">= 7 MB/s", speed >= REACH_MB_PER_SECOND),
        Figure(
            f"{name}/peak-memory", round(gibibytes, 2), "GiB, all processes", "<= 3 GiB", gibibytes <= REACH_GIBIBYTES
        ),
        Figure(f"{name}/why", round(seconds, 2), "s, whole process", "< 1 s", seconds < REACH_WHY_SECONDS),
    ]


def one_more_source() -> list[Figure]:
    """The full slice built without one source of 2 MB; then with it, as a share of what all of it took."""
    root, whole, _ = _cleaned()
    without = scratch() / "without-one"
    shutil.copytree(root, without)
    _forget(Store(without), ONE_MORE)
    more = build(without, "full", "--until", "normalize", "--offline")
    fraction = more["seconds"] / whole["seconds"]
    again = build(without, "full", "--until", "normalize", "--offline")
    name = "one-more-source"
    return [
        Figure(name, round(fraction, 4), f"of all, {ONE_MORE} added", "<= 0.15", fraction <= REACH_FRACTION),
        Figure(f"{name}/seconds", round(more["seconds"], 2), "s", "reported", True, "all of it, s", whole["seconds"]),
        Figure(f"{name}/none", round(again["seconds"], 2), "s, nothing added", "reported", True),
    ]


@cache
def _cleaned() -> tuple[Path, dict[str, Any], float]:
    """A store built to normalize from its archives alone, the report of the build, and its peak of memory."""
    root = scratch() / "cleaned"
    copy_blobs(collected("full"), root)
    memory = ProcessMemory()
    answer = build(root, "full", "--until", "normalize", "--offline", watch=memory.watch)
    return root, answer, memory.peak / 2**30


def _forget(store: Store, source: str) -> None:
    """Remove what was made of a source, and the comparison that it took part in."""
    for stage, names in (("collect", [source]), ("normalize", [source, "duplicates"])):
        ref = store.ref("full", stage)
        assert ref is not None
        parts = parts_of(store.read(ref))
        for name in names:
            path = store.locate(parts[name])
            assert path is not None
            shutil.rmtree(path)


def _why_seconds() -> float:
    """The fastest of three, on the file of the largest source: whether it was dropped there or what keeps it."""
    root, _, _ = _cleaned()
    command = [sys.executable, "-m", "pipeline", "why", *REQUESTED_FILE, "--corpus", "full", "--store", str(root)]
    times = []
    for _ in range(3):
        started = time.perf_counter()
        subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
        times.append(time.perf_counter() - started)
    return min(times)
