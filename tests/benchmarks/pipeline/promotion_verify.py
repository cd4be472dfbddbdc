"""Verification at promotion: the speed at which bytes are compared, and the time of a promotion that changes nothing."""

import hashlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pipeline.build.recipes import ROOT
from pipeline.core import digests
from pipeline.store.store import Store
from pipeline.store.verification import verify_objects
from tests.benchmarks.figure import Figure
from tests.benchmarks.pipeline.slices import build, collected, scratch

REACH_MB_PER_SECOND = 1_000.0
REACH_SHARE_OF_DISK = 0.8
REACH_MORE_SECONDS = 1.0
NUM_RUNS = 5
NUM_BYTES_HASHED = 256 << 20
NUM_FILES, NUM_BYTES_OF_FILE = 32, 8 << 20
BEFORE = """
import sys
from pathlib import Path
from pipeline.build.promotion import judge_again
from pipeline.build.withdrawal import refuse_withdrawn
from pipeline.contracts.gates import refuse_blocked
from pipeline.store.store import Store
store = Store(Path(sys.argv[1]))
snapshot_id = store.ref("quick", "candidate")
refuse_withdrawn(store, snapshot_id)
refuse_blocked(judge_again(store, snapshot_id), "a promotion")
"""
"""A promotion that judges stored reports and reads no bytes for their own sake."""


def promote_verify() -> list[Figure]:
    """Verify an object of 256 MB by one thread and by all, from memory and from the disk; promote the quick slice unchanged."""
    store = Store(scratch() / "verified")
    ids = (_made_object(store),)
    megabytes = verify_objects(store, ids).num_bytes / 1e6
    one = megabytes / _seconds(lambda: _verify(store, ids, 1), clock=time.process_time)
    every = megabytes / _seconds(lambda: _verify(store, ids))
    disk = megabytes / _seconds(lambda: _read(store.root), evict=store.root)
    from_disk = megabytes / _seconds(lambda: _verify(store, ids), evict=store.root)
    return [
        Figure(
            "promote-verify",
            round(one, 1),
            "MB/s of one core's time, files in the system's cache",
            ">= 1,000 MB/s, or the disk",
            one >= REACH_MB_PER_SECOND or from_disk >= REACH_SHARE_OF_DISK * disk,
            peer="hashlib.sha256 of bytes in memory, the same",
            peer_value=round(_speed_of_hashing(), 1),
        ),
        Figure("promote-verify/all-cores", round(every, 1), "MB/s, files in the system's cache", "reported", True),
        Figure(
            "promote-verify/from-disk",
            round(from_disk, 1),
            "MB/s, files that no cache holds",
            "reported",
            True,
            peer="reading the files alone, as many threads, MB/s",
            peer_value=round(disk, 1),
            ratio=round(from_disk / disk, 3),
        ),
        *_unchanged(),
    ]


def _made_object(store: Store) -> str:
    """Commit an object of files of 8 MiB, as the rows of a large snapshot are."""
    with store.writer("verified", "a benchmark") as scratch_folder:
        (scratch_folder / "made").mkdir()
        for number in range(NUM_FILES):
            (scratch_folder / "made" / f"rows-{number:05d}.bin").write_bytes(os.urandom(NUM_BYTES_OF_FILE))
        return store.commit(scratch_folder / "made", "test/rows", {}, {})


def _unchanged() -> list[Figure]:
    root = collected("quick")
    build(root, "quick", "--promote")
    store = Store(root)
    snapshot_id = store.ref("quick", "live") or ""
    verified = verify_objects(store, (snapshot_id, store.verified_by(snapshot_id) or ""))
    command = [sys.executable, "-m", "pipeline", "promote", "--corpus", "quick", "--store", str(root), "--json"]
    times = [(_seconds_of(command), _seconds_of([sys.executable, "-c", BEFORE, str(root)])) for _ in range(NUM_RUNS)]
    seconds, before = (statistics.median(column) for column in zip(*times, strict=True))
    return [
        Figure(
            "promote-verify/unchanged",
            round(seconds, 2),
            "s, quick slice, whole process",
            "<= 1 s more",
            seconds - before <= REACH_MORE_SECONDS,
            peer="the stored reports judged and no bytes verified, whole process, s",
            peer_value=round(before, 2),
        ),
        Figure("promote-verify/bytes", round(verified.num_bytes / 1e6, 1), "MB of the quick slice", "reported", True),
    ]


def _verify(store: Store, ids: Iterable[str], num_threads: int | None = None) -> None:
    """Verify objects as a new process does: nothing has been read before."""
    digests._KNOWN.clear()
    verify_objects(store, ids, num_threads)


def _read(root: Path) -> None:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(Path.read_bytes, _files(root)))


def _files(root: Path) -> list[Path]:
    return sorted(path for path in (root / "objects").rglob("*") if path.is_file())


def _seconds(
    work: Callable[[], object], evict: Path | None = None, clock: Callable[[], float] = time.perf_counter
) -> float:
    """The shortest of some runs; before each the files below `evict` are removed from the system's cache."""
    times = []
    for _ in range(NUM_RUNS):
        for path in _files(evict) if evict else ():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        started = clock()
        work()
        times.append(clock() - started)
    return min(times)


def _seconds_of(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    return time.perf_counter() - started


def _speed_of_hashing() -> float:
    content = bytes(NUM_BYTES_HASHED)
    return NUM_BYTES_HASHED / 1e6 / _seconds(lambda: hashlib.sha256(content).hexdigest(), clock=time.process_time)
