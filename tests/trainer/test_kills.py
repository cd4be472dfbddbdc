"""kill -9 at moments of chance, inside a save and inside the move of a ref: always the certificate of the run nobody killed.

SLUICE_KILLS says how many (10; `make campaign` 200).
"""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.store import Store
from trainer.acceptance import Bench, copy_snapshot

NUM_KILLS = int(os.environ.get("SLUICE_KILLS", "10"))
STEPS = 60
MORE = ("--recipe", "tiny", "--save-every", "3")


def moments(bench: Bench, run: str, chance: random.Random) -> list[tuple[str, Callable[[], bool]]]:
    """When to kill the sitting that is about to start."""
    before = steps_of(bench, run)
    scratch, refs = (bench.store.root / kind / "runs" / run for kind in ("tmp", "refs"))
    wait = before + chance.randint(1, 12)
    pause = chance.random() * 0.3
    first_seen: list[float] = []

    def after_some_steps() -> bool:
        if not bench.has_steps(run, wait):
            return False
        first_seen.append(time.monotonic())
        return time.monotonic() > first_seen[0] + pause

    return [
        ("between steps", after_some_steps),
        ("inside a save", lambda: any(scratch.glob("step-*/*"))),
        ("inside the move of a ref", lambda: any(path.name.startswith(".") for path in refs.glob(".*"))),
        ("while it starts", lambda: scratch.exists()),
    ]


def steps_of(bench: Bench, run: str) -> int:
    path = bench.folder / run / "metrics.jsonl"
    return path.read_text().count("\n") if path.exists() else 0


@pytest.mark.slow  # a training of 60 steps, started again after each kill
def test_a_run_that_is_killed_again_and_again_ends_in_the_same_certificate(tiny_store: Store, tmp_path: Path) -> None:
    snapshot_id = tiny_store.ref("tiny", "live") or ""
    bench = Bench(copy_snapshot(tiny_store, snapshot_id, tmp_path / "store"), snapshot_id, tmp_path / "runs", STEPS)
    straight = bench.train("straight", *MORE)
    chance = random.Random(6)
    done, number = 0, 0
    while done < NUM_KILLS:
        number += 1
        run = f"killed-{number}"
        while done < NUM_KILLS and steps_of(bench, run) < STEPS - 3:
            _, is_time = chance.choice(moments(bench, run, chance))
            bench.kill(run, is_time, *MORE, "--resume", "latest")
            done += 1
        ended = bench.train(run, *MORE, "--resume", "latest")
        for name in ("certificate", "checkpoint_id", "parameters_sha256", "losses"):
            assert ended[name] == straight[name], (run, name)
    assert bench.store.fsck() == [line for line in bench.store.fsck() if "missing" in line]
