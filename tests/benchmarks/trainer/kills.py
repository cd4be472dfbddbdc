"""Kills with -9 that a training survived: SLUICE_KILLS of them, by default 200."""

import os
import tempfile
import time
from pathlib import Path

from pipeline.store.store import Store
from tests.benchmarks.figure import Figure
from tests.conftest import build_tiny
from tests.tools.kill_campaign import run_campaign


def kill_campaign() -> list[Figure]:
    """Kills, what they left that was different, and how many fell into each kind of moment."""
    num_kills = int(os.environ.get("SLUICE_KILLS", "200"))
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "built")
        build_tiny(store.root)
        started = time.monotonic()
        found = run_campaign(store, store.ref("tiny", "candidate") or "", Path(folder), num_kills)
        seconds = time.monotonic() - started
    num_bad = len(found.differences) + len(found.damage)
    beside = f"runs of 60 steps that they fell on, in {seconds:.0f} s"
    return [
        Figure("kill-campaign", found.num_kills, "kills with -9", "reported", True, beside, found.num_runs),
        Figure("kill-campaign/different", num_bad, "runs that ended otherwise, or damage", "0", num_bad == 0),
        *(
            Figure(f"kill-campaign/{moment.replace(' ', '-')}", number, "kills", "> 0", number > 0)
            for moment, number in sorted(found.moments.items())
        ),
    ]
