"""Campaign of kills: kill -9 at random moments, inside a save, inside the move of a ref, inside an evaluation, at an epoch's end.

A run of 60 steps is started, killed and started again until it is nearly done; then a fresh process ends it. Its rows are the first
of a snapshot, so that an epoch ends twice on the way.
"""

import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.store.fsck import fsck
from pipeline.store.store import Store
from tests.tools.fork_server import ForkServer
from trainer.data.small_snapshot import copy_snapshot, shorten
from trainer.proof.acceptance import AcceptanceRun
from trainer.train.child_session import SAME

STEPS, SAVE_EVERY, EVALUATE_EVERY, EPOCH_ROWS = 60, 3, 5, 96
_MORE = ("--recipe", "tiny", "--save-every", str(SAVE_EVERY))
_MORE += ("--evaluate-every", str(EVALUATE_EVERY), "--evaluate-rows", "16")


@dataclass
class KillCampaign:
    """Outcome of all kills. `differences` is empty if each run ended as the one that was not killed."""

    num_runs: int = 0
    moments: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)

    @property
    def num_kills(self) -> int:
        return sum(self.moments.values())


def run_campaign(store: Store, snapshot_id: str, folder: Path, num_kills: int, seed: int = 6) -> KillCampaign:
    """Kill `num_kills` sessions, and compare the result of each run with that of a run that was not killed."""
    copy = copy_snapshot(store, snapshot_id, folder / "store")
    short_id = shorten(copy, snapshot_id, EPOCH_ROWS // 3)
    acceptance = AcceptanceRun(copy, short_id, folder / "runs", STEPS)
    straight = acceptance.train("straight", *_MORE)
    num_rows, batch_rows = straight["packing"]["num_rows"], straight["config"]["batch_rows"]
    boundaries = [-(-num_rows * epoch // batch_rows) for epoch in range(1, STEPS)]
    chance, found = random.Random(seed), KillCampaign()
    with ForkServer("trainer") as server:
        while found.num_kills < num_kills:
            found.num_runs += 1
            _one_run(acceptance, server, f"killed-{found.num_runs}", (chance, boundaries, num_kills), found)
            ended = acceptance.train(f"killed-{found.num_runs}", *_MORE, "--resume", "latest")
            _compare(ended, straight, found)
    found.damage = [line for line in fsck(acceptance.store) if "missing" not in line]
    return found


def _one_run(
    acceptance: AcceptanceRun,
    server: ForkServer,
    run: str,
    plan: tuple[random.Random, list[int], int],
    found: KillCampaign,
) -> None:
    """Kill one run again and again until it is near its end or all kills are done."""
    chance, boundaries, num_kills = plan
    log = acceptance.folder / f"{run}.log"
    line = acceptance.command(run, *_MORE, "--resume", "latest")[3:]
    reached = 0
    while found.num_kills < num_kills and reached < STEPS - SAVE_EVERY:
        moment, is_time = chance.choice(_moments(acceptance, run, log, reached, (chance, boundaries)))
        if server.kill(line, log, is_time):
            found.moments[moment] += 1
        reached = max(reached, _step_logged(log))


def _moments(
    acceptance: AcceptanceRun, run: str, log: Path, reached: int, how: tuple[random.Random, list[int]]
) -> list[tuple[str, Callable[[], bool]]]:
    """Return the moments at which to kill the session that is about to start."""
    chance, boundaries = how
    scratch, refs = (acceptance.store.root / kind / "runs" / run for kind in ("tmp", "refs"))
    boundary = next((step for step in boundaries if step > reached), STEPS)
    step = min(STEPS - 1, reached + chance.randint(1, 8))
    return [
        ("between steps", _later(lambda: _step_logged(log) >= step, chance)),
        ("at an epoch's end", lambda: _step_logged(log) >= boundary),
        ("inside a save", _later(lambda: _has_files(scratch, "step-"), chance, 0.03)),
        ("inside the move of a ref", lambda: _has_files(refs, ".")),
        ("inside an evaluation", lambda: _last_line(log).startswith("evaluating")),
        ("while it starts", _later(scratch.exists, chance)),
    ]


def _later(is_time: Callable[[], bool], chance: random.Random, seconds: float = 0.2) -> Callable[[], bool]:
    """The same moment, a little later."""
    pause, seen = chance.random() * seconds, []

    def is_later() -> bool:
        if not seen and is_time():
            seen.append(time.monotonic())
        return bool(seen) and time.monotonic() >= seen[0] + pause

    return is_later


def _last_line(log: Path) -> str:
    return "".join(log.read_text().splitlines()[-1:])


def _has_files(folder: Path, start: str) -> bool:
    try:
        return any(name.startswith(start) for name in os.listdir(folder))
    except FileNotFoundError:
        return False


def _step_logged(log: Path) -> int:
    """Return the last step that the session has logged."""
    steps = re.findall(r"^train \[.*\] (\d+)/", log.read_text(), re.MULTILINE)
    return int(steps[-1]) if steps else 0


def _compare(ended: dict[str, Any], straight: dict[str, Any], found: KillCampaign) -> None:
    different = [name for name in SAME if ended[name] != straight[name]]
    if different:
        found.differences.append(f"{ended['run']}: {', '.join(different)}")
