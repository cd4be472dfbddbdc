"""`gc` beside a rollback, a build and a withdrawal, and killed at every call: live stays readable, and fsck raises no false alarm.

Each try begins with a copy of one store, in which nothing keeps the first snapshot: `gc` is run again and again from a moment that
is drawn, while another process rolls back to that snapshot, builds it again from its parts, or withdraws some of it; in the end
`gc` is killed wherever it is.
"""

import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from pipeline.build.promotion import promote
from pipeline.build.withdrawal import withdraw
from pipeline.core.errors import LockedError, SluiceError
from pipeline.store import garbage, kept
from pipeline.store.fsck import fsck
from pipeline.store.store import Store
from pipeline.store.verification import verify_objects
from tests.benchmarks.figure import Figure
from tests.benchmarks.store.two_snapshots import CORPUS, WITHDRAWN, TwoSnapshots, taken_back, two_snapshots
from tests.faults.injected_faults import REMOVALS, WRITES, die, in_child, inject

SEED = 19
NUM_TRIES = 100
LONGEST_DELAY = {"rollback": 1.0, "build": 2.0, "withdraw": 0.2}
"""Seconds within which `gc` begins, about as long as the work beside it takes."""


def gc_beside() -> list[Figure]:
    """Measure what 100 tries of each work, and a kill at every call, leave unreadable or falsely reported."""
    with memory() as folder:
        whole = taken_back(two_snapshots(folder / "whole"))
        figures = []
        for work in LONGEST_DELAY:
            outcomes = beside(whole, work, NUM_TRIES)
            done = f"of them were done, {outcomes['refused']} refused in words"
            figures += [
                Figure(f"gc-beside/{work}", NUM_TRIES, "tries", "reported", True, done, outcomes["done"]),
                _none(f"gc-beside/{work}/unreadable", outcomes["unreadable"], "times that live could not be read"),
                _none(f"gc-beside/{work}/false-alarms", outcomes["alarm"], "false alarms of fsck"),
            ]
        num_points, num_bad = killed(whole)
        figures.append(Figure("gc-beside/kills", num_points, "kills, one at each call", ">= 173", num_points >= 173))
        return [*figures, _none("gc-beside/kills/false-alarms", num_bad, "unreadable, unfinished or false alarms")]


@contextmanager
def memory() -> Iterator[Path]:
    """Yield a folder in memory where there is one: no power is cut here, and thousands of syncs of a disk take minutes."""
    place = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=place if place.is_dir() else None) as folder:
        yield Path(folder)


def beside(whole: TwoSnapshots, work: str, num_tries: int) -> Counter[str]:
    """Run a work beside `gc`, and count how each try ended: done or refused, and what was wrong then."""
    draw, outcomes = random.Random(SEED), Counter[str]()
    for number in range(num_tries):
        copy = _copied(whole, f"{work}-{number}")
        delay = draw.uniform(0, LONGEST_DELAY[work])
        sweeping = _forked(lambda delay=delay, copy=copy: _sweep(copy.root, delay))  # type: ignore[misc]
        code = in_child(lambda copy=copy: _work(copy, work))  # type: ignore[misc]
        os.kill(sweeping, signal.SIGKILL)
        os.waitpid(sweeping, 0)
        outcomes["done" if code == 0 else "refused" if code == _REFUSED else "broken"] += 1
        outcomes.update(_wrong(copy))
        outcomes["unreadable"] += code not in (0, _REFUSED)
        shutil.rmtree(copy.root)
    return outcomes


def killed(whole: TwoSnapshots, step: int = 1) -> tuple[int, int]:
    """Kill `gc` at every call, or each `step`th; return how many there were, and how many left something wrong."""
    number, num_kills, num_bad, code = 1 - step, 0, 0, -signal.SIGKILL
    while code == -signal.SIGKILL:
        number += step
        copy = _copied(whole, f"killed-{number}")

        def collect(root: Path = copy.root, number: int = number) -> None:
            with inject(number, die, WRITES + REMOVALS):
                _collect(root)

        code = in_child(collect)
        wrong = _wrong(copy)
        is_finished = in_child(lambda root=copy.root: _collect(root)) == 0  # type: ignore[misc]
        again = _wrong(copy)
        num_kills += code == -signal.SIGKILL
        num_bad += bool(wrong or again or not is_finished or (copy.root / "removing").exists())
        shutil.rmtree(copy.root)
    return num_kills, num_bad


_REFUSED = 7


def _work(copy: TwoSnapshots, work: str) -> None:
    store = Store(copy.root)
    try:
        if work == "rollback":
            promote(store, CORPUS, copy.first, "a rollback")
        elif work == "build":
            copy.rebuilt()
        else:
            with store.in_use():
                withdraw(store, WITHDRAWN, "a test")
    except SluiceError:
        os._exit(_REFUSED)


def _sweep(root: Path, delay: float) -> None:
    time.sleep(delay)
    while True:
        with suppress(LockedError):
            _collect(root)
        time.sleep(0.001)


def _collect(root: Path) -> None:
    """Collect garbage as if only what is live could be gone back to, so that the first snapshot is removed."""
    with patch.object(kept, "NUM_LIVE", 1), patch.object(garbage, "REMOVAL_WAIT_SECONDS", 0.0):
        garbage.reclaim(Store(root), lambda name: False)


def _wrong(copy: TwoSnapshots) -> list[str]:
    store, found = Store(copy.root), []
    try:
        live = store.ref(CORPUS, "live") or ""
        verify_objects(store, (live, store.verified_by(live) or ""))
    except SluiceError:
        found.append("unreadable")
    return [*found, *(["alarm"] if fsck(store) else [])]


def _copied(whole: TwoSnapshots, name: str) -> TwoSnapshots:
    root = whole.root.with_name(name)
    shutil.copytree(whole.root, root)
    return replace(whole, root=root)


def _forked(work: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return child


def _none(name: str, value: int, unit: str) -> Figure:
    return Figure(name, value, unit, "0", value == 0)
