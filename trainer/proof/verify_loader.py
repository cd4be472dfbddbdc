"""Loader checks, each in fresh processes: two read and compute the same, and a third resumes where the first was stopped.

The processes read with other batch sizes and worker counts, which must not change anything. The third gets nothing but the
loader state.
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
from trainer.proof.read_trace import TraceOptions

_OTHER_BATCH_ROWS = 5


@dataclass(frozen=True, slots=True)
class LoaderCheck:
    """Result of one check: how many values were compared, how many differed, and the first that did."""

    name: str
    num_compared: int
    num_differing: int
    first_difference: str = ""

    @property
    def passed(self) -> bool:
        """True where values were compared, and all were equal."""
        return self.num_compared > 0 and self.num_differing == 0

    def as_json(self) -> dict[str, Any]:
        """Return the check and whether it passed, for JSON."""
        return asdict(self) | {"passed": self.passed}


def verify_loader(store: Path, snapshot_id: str, options: TraceOptions) -> list[LoaderCheck]:
    """Run the six checks; without steps, the four of the loader alone.

    Raises TrainingError with the last line of a process that failed.
    """
    first = _observe(store, snapshot_id, options)
    second = _observe(store, snapshot_id, replace(options, batch_rows=_OTHER_BATCH_ROWS, num_workers=_workers(options)))
    checks = [
        check_equal("first rows, as split, source, row and pieces", first["triples"], second["triples"]),
        check_equal("hashes of the rows, stored and as the model sees them", first["rows"], second["rows"]),
        check_equal("infilling of each piece", first["infillings"], second["infillings"]),
    ]
    if options.num_steps:
        checks.append(check_equal("hash of the initial parameters", first["parameters"], second["parameters"]))
        checks.append(check_equal(f"losses of {options.num_steps} steps", first["losses"], second["losses"]))
    return [*checks, _resume(store, snapshot_id, options, first)]


def check_equal(name: str, left: Sequence[Any], right: Sequence[Any]) -> LoaderCheck:
    """Check that two lists are equal; elements that only one of them has differ."""
    pairs = list(zip_longest(left, right))
    differing = [place for place, (mine, theirs) in enumerate(pairs) if mine != theirs]
    difference = f"number {differing[0]}: {pairs[differing[0]][0]} and {pairs[differing[0]][1]}" if differing else ""
    return LoaderCheck(name, len(pairs), len(differing), difference)


def _resume(store: Path, snapshot_id: str, options: TraceOptions, whole: Mapping[str, Any]) -> LoaderCheck:
    """Resume in the middle of the rows of the first process, or after its last step if that is earlier."""
    start = len(whole["infillings"]) // 2
    if options.num_steps and int(whole["state"]["position"]) < len(whole["infillings"]):
        start = int(whole["state"]["position"])
    state = whole["states"][0] | {"position": start}
    later = replace(options, num_rows=options.num_rows - start, num_steps=0, batch_rows=3, state=json.dumps(state))
    found = _observe(store, snapshot_id, later)
    wanted = {name: whole[name][start:] for name in ("triples", "infillings")}
    return check_equal(
        f"resumed at row {start}: row, source, split and infilling",
        list(zip(wanted["triples"], wanted["infillings"], strict=True)),
        list(zip(found["triples"], found["infillings"], strict=True)),
    )


def _workers(options: TraceOptions) -> int:
    # Workers need torch. Without steps, the checks run without it.
    return 1 if options.num_steps else 0


def _observe(store: Path, snapshot_id: str, options: TraceOptions) -> dict[str, Any]:
    command = [sys.executable, "-m", "trainer", "observe", "--store", str(store), "--snapshot", snapshot_id, "--json"]
    command += [
        "--rows",
        str(options.num_rows),
        "--steps",
        str(options.num_steps),
        "--batch-rows",
        str(options.batch_rows),
    ]
    command += ["--workers", str(options.num_workers), "--seed", str(options.seed), "--recipe", options.recipe]
    command += ["--state", options.state] if options.state else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last_line = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise TrainingError("a process that reads the snapshot", f"exit {done.returncode}: {last_line}", "exit 0")
    trace: dict[str, Any] = json.loads(done.stdout)
    return trace
