"""Speed of bundles beside `tar` of the same files, and whether two builds that share nothing give the same bytes."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pipeline.core.digests import file_sha256
from pipeline.store.bundles.export_bundle import export_bundle
from pipeline.store.bundles.import_bundle import import_bundle
from pipeline.store.snapshot import Snapshot, open_snapshot
from pipeline.store.store import Store
from tests.benchmarks.figure import Figure
from tests.benchmarks.pipeline.slices import build, collected
from tests.support.made.made_snapshot import commit_made
from tests.support.paths import ROOT

NUM_RUNS = 9
NUM_COPIES = 20_000
"""Copies of the made rows: 0.2 GB."""
REACH_RATIO = 0.5
CARD = "# A card\n"


def bundle() -> list[Figure]:
    """Export the quick slice and import it into an empty store, in turn with tar, each ending on the disk; build tiny twice."""
    root = collected("quick")
    build(root, "quick", "--promote")
    store = Store(root)
    figures = _speeds(open_snapshot(store, store.ref("quick", "live") or ""), "quick")
    with tempfile.TemporaryDirectory(dir=root.parent) as name:
        large = Store(Path(name))
        figures += _speeds(open_snapshot(large, commit_made(large, NUM_COPIES)), "large")
    num_builds = _num_different_bundles()
    equal = Figure(
        "bundle/machines", num_builds, "bundles of 2 builds of tiny that share nothing", "1", num_builds == 1
    )
    return [*figures, equal]


def _speeds(snapshot: Snapshot, what: str) -> list[Figure]:
    is_rows_only = snapshot.store.verified_by(snapshot.snapshot_id) is None
    with tempfile.TemporaryDirectory(dir=snapshot.store.root.parent) as name:
        folder = Path(name)
        export_bundle(snapshot, folder / "first.bundle", CARD, is_rows_only)
        num_bytes = (folder / "first.bundle").stat().st_size
        files = _files_in(folder / "first.bundle", snapshot.store)
        steps: dict[str, Callable[[], object]] = {
            "bundle": lambda: export_bundle(snapshot, folder / "again.bundle", CARD, is_rows_only),
            "tar": lambda: _tar(["-cf", "again.tar", "-C", str(snapshot.store.root), *files], folder, "again.tar"),
            "bundle/import": lambda: import_bundle(Store(_emptied(folder / "store")), folder / "first.bundle"),
            "tar/import": lambda: _tar(["-xf", "again.tar", "-C", str(_emptied(folder / "files"))], folder, "files"),
        }
        speeds = {name: num_bytes / 1e6 / seconds for name, seconds in _fastest(steps).items()}
    size = f"MB/s, {what}, {num_bytes / 1e6:.0f} MB"
    return [
        _figure(f"bundle/{what}", size, speeds["bundle"], speeds["tar"], "tar -c of the same files, then sync"),
        _figure(
            f"bundle/{what}/import", size, speeds["bundle/import"], speeds["tar/import"], "tar -x of them, then sync"
        ),
    ]


def _figure(name: str, unit: str, speed: float, peer_speed: float, peer: str) -> Figure:
    ratio = speed / peer_speed
    is_bound = name != "bundle/quick/import"  # its refs and logs are of one size, however small a snapshot is
    reach, holds = (f">= {REACH_RATIO} of tar", ratio >= REACH_RATIO) if is_bound else ("reported", True)
    return Figure(name, round(speed, 1), unit, reach, holds, peer, round(peer_speed, 1), round(ratio, 2))


def _files_in(path: Path, store: Store) -> list[str]:
    """Return the folders of the objects of a bundle, below the root of the store."""
    listed = subprocess.run(["tar", "-tf", path], capture_output=True, text=True, check=True).stdout.split()
    names = sorted({each.partition("/")[0] for each in listed if "/" in each})
    return [str(store.read(name).path.relative_to(store.root)) for name in names]


def _tar(arguments: list[str], folder: Path, made: str) -> None:
    subprocess.run(["tar", *arguments], cwd=folder, check=True)
    subprocess.run(["sync", *(["-f"] if (folder / made).is_dir() else []), made], cwd=folder, check=True)


def _emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def _fastest(steps: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the fastest of some runs of each, in turn: others take the machine from them."""
    seconds = dict.fromkeys(steps, float("inf"))
    for _ in range(NUM_RUNS):
        for name, step in steps.items():
            started = time.perf_counter()
            step()
            seconds[name] = min(seconds[name], time.perf_counter() - started)
    return seconds


def _num_different_bundles() -> int:
    """Build tiny twice, with other workers, hashes, folders and hours, and count the bundles that differ."""
    found = set()
    with tempfile.TemporaryDirectory() as name:
        for workers, seed in ((1, "0"), (2, "77")):
            root = Path(name) / seed
            line = ["build", "--recipe", "tiny", "--promote", "--workers", str(workers), "--quiet"]
            for arguments in (line, ["snapshot", "export", str(root / "tiny.bundle"), "--corpus", "tiny"]):
                command = [sys.executable, "-m", "pipeline", *arguments, "--store", str(root)]
                environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": f"UTC{int(seed) % 12}"}
                subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True)
            found.add(file_sha256(root / "tiny.bundle"))
    return len(found)
