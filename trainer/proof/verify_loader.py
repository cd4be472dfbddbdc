"""The reproducibility bar as checks that run: two fresh processes see the same, and a third goes on where one stood.

The processes read with other batch sizes and worker counts, because those must not matter. The third is given nothing
but the loader's state.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pipeline.core.errors import TrainingError
from trainer.proof.read_trace import Sight

_OTHER_BATCH_ROWS = 5


@dataclass(frozen=True, slots=True)
class Check:
    """One claim: how many things were compared, how many differed, and the first of those that did."""

    name: str
    num_compared: int
    num_differing: int
    first_difference: str = ""

    @property
    def passed(self) -> bool:
        """Whether something was compared, and all of it was equal."""
        return self.num_compared > 0 and self.num_differing == 0

    def as_json(self) -> dict[str, Any]:
        """The check with its verdict."""
        return asdict(self) | {"passed": self.passed}


def verify_loader(store: Path, snapshot_id: str, sight: Sight) -> list[Check]:
    """The six checks of the bar; without steps those of the loader alone.

    Raises TrainingError with the last words of a process that failed.
    """
    first = _observe(store, snapshot_id, sight)
    second = _observe(store, snapshot_id, replace(sight, batch_rows=_OTHER_BATCH_ROWS, num_workers=_workers(sight)))
    checks = [
        compare("first rows, as split, source, row and pieces", first["triples"], second["triples"]),
        compare("hashes of the rows, stored and as the model sees them", first["rows"], second["rows"]),
        compare("infilling of each piece", first["infillings"], second["infillings"]),
    ]
    if sight.num_steps:
        checks.append(compare("hash of the initial parameters", first["parameters"], second["parameters"]))
        checks.append(compare(f"losses of {sight.num_steps} steps", first["losses"], second["losses"]))
    return [*checks, _resume(store, snapshot_id, sight, first)]


def compare(name: str, left: Sequence[Any], right: Sequence[Any]) -> Check:
    """The check that two lists are equal, one longer than the other counting as different."""
    pairs = list(zip_longest(left, right))
    differing = [place for place, (mine, theirs) in enumerate(pairs) if mine != theirs]
    words = f"number {differing[0]}: {pairs[differing[0]][0]} and {pairs[differing[0]][1]}" if differing else ""
    return Check(name, len(pairs), len(differing), words)


def _resume(store: Path, snapshot_id: str, sight: Sight, whole: Mapping[str, Any]) -> Check:
    """Go on in the middle of what the first process read; behind its last step, if it took steps and went that far."""
    start = len(whole["infillings"]) // 2
    if sight.num_steps and int(whole["state"]["position"]) < len(whole["infillings"]):
        start = int(whole["state"]["position"])
    state = whole["states"][0] | {"position": start}
    later = replace(sight, num_rows=sight.num_rows - start, num_steps=0, batch_rows=3, state=json.dumps(state))
    found = _observe(store, snapshot_id, later)
    wanted = {name: whole[name][start:] for name in ("triples", "infillings")}
    return compare(
        f"resumed at row {start}: row, source, split and infilling",
        list(zip(wanted["triples"], wanted["infillings"], strict=True)),
        list(zip(found["triples"], found["infillings"], strict=True)),
    )


def _workers(sight: Sight) -> int:
    # Workers need torch. Where no step is asked for, the checks run without it.
    return 1 if sight.num_steps else 0


def _observe(store: Path, snapshot_id: str, sight: Sight) -> dict[str, Any]:
    command = [sys.executable, "-m", "trainer", "observe", "--store", str(store), "--snapshot", snapshot_id, "--json"]
    command += ["--rows", str(sight.num_rows), "--steps", str(sight.num_steps), "--batch-rows", str(sight.batch_rows)]
    command += ["--workers", str(sight.num_workers), "--seed", str(sight.seed), "--recipe", sight.recipe]
    command += ["--state", sight.state] if sight.state else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        words = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise TrainingError("a process that reads the snapshot", f"exit {done.returncode}: {words}", "exit 0")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
