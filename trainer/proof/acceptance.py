"""Acceptance gates of training: each runs the command line in fresh processes, which share stored checkpoints alone.

The runs are stored in a temporary copy of the snapshot's store.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pipeline.core.errors import TrainingError
from pipeline.store.fsck import fsck
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from trainer.checkpoint.checkpoint import load
from trainer.data.small_snapshot import copy_snapshot, shorten
from trainer.train.child_session import SAME, SAVE_EVERY, ChildSessions, SessionFailed

NUM_STEPS, NUM_SHORT_STEPS, EVALUATE_EVERY = 12, 6, 5
_EPOCH_ROWS = 18


@dataclass(frozen=True)
class GateOutcome:
    """Result of a gate. `detail` names what was compared, or what differs."""

    name: str
    passed: bool
    detail: str
    seconds: float


class GateFailed(SessionFailed):
    """Raised where a gate's claim does not hold."""


@dataclass
class AcceptanceRun(ChildSessions):
    """Store and folder in which the gates of one acceptance run train."""

    @cached_property
    def short(self) -> "AcceptanceRun":
        """The same over a few rows, so that an epoch ends within the run, if possible in the middle of a batch."""
        snapshot = open_snapshot(self.store, self.snapshot_id)
        num_sources = sum(source.num_rows_train > 0 for source in snapshot.sources)
        return replace(self, snapshot_id=shorten(self.store, self.snapshot_id, max(1, _EPOCH_ROWS // num_sources)))

    @cached_property
    def straight(self) -> dict[str, Any]:
        """Result of an uninterrupted run."""
        return self.train("straight")

    def program(self, name: str, *arguments: str) -> Any:
        """Run a program of `trainer.proof.gate_programs` and return what it prints as JSON."""
        return self.answer([sys.executable, "-m", "trainer.proof.gate_programs", name, *arguments])


def run_gates(
    store: Store,
    snapshot_id: str,
    only: Sequence[str] = (),
    is_short: bool = False,
    on_outcome: Callable[[GateOutcome], None] = lambda outcome: None,
) -> list[GateOutcome]:
    """Run all gates in order, also after a failure. Raises TrainingError for an unknown gate."""
    unknown = sorted(set(only) - GATES.keys())
    if unknown:
        raise TrainingError(f"gate {', '.join(unknown)}", "it is not known", f"{', '.join(GATES)}")
    names = [name for name in GATES if (name in only if only else not is_short or name in SHORT)]
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="acceptance-") as folder:
        copy = copy_snapshot(store, snapshot_id, Path(folder) / "store")
        acceptance = AcceptanceRun(copy, snapshot_id, Path(folder) / "runs", NUM_SHORT_STEPS if is_short else NUM_STEPS)
        for name in names:
            outcomes.append(_judge(name, acceptance))
            on_outcome(outcomes[-1])
    return outcomes


def _judge(name: str, acceptance: AcceptanceRun) -> GateOutcome:
    started = time.monotonic()
    try:
        passed, detail = True, GATES[name](acceptance)
    except SessionFailed as error:
        passed, detail = False, str(error)
    return GateOutcome(name, passed, detail, round(time.monotonic() - started, 1))


def _equal(one: dict[str, Any], other: dict[str, Any], names: Sequence[str] = SAME) -> str:
    different = [name for name in names if one[name] != other[name]]
    if different:
        raise GateFailed(f"{', '.join(different)} differ")
    return f"{', '.join(names)} equal after {other['steps']} steps"


def _ranks(count: int) -> tuple[str, ...]:
    return ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count))


_LOOK = ("--evaluate-every", str(EVALUATE_EVERY))
_LOOKING = f"evaluating held-out rows after step {EVALUATE_EVERY}"


# The gates.


def two_runs_are_equal(acceptance: AcceptanceRun) -> str:
    """Compare the same run in two processes."""
    return _equal(acceptance.straight, acceptance.train("again"))


def two_runs_in_one_process_equal_two_processes(acceptance: AcceptanceRun) -> str:
    """Compare two runs in one process with one of its own: no state of the first reaches the second."""
    lines = [acceptance.command(run)[3:] for run in ("first", "second")]
    acceptance.program("run_in_one_process", json.dumps(lines))
    results = [json.loads((acceptance.folder / run / "result.json").read_bytes()) for run in ("first", "second")]
    return " and ".join(_equal(acceptance.straight, result) for result in results)


def killed_between_saves_and_resumed(acceptance: AcceptanceRun) -> str:
    """Kill one run before its first save, at a save and after it, and resume each time."""
    steps = (1, SAVE_EVERY, SAVE_EVERY + 1)
    for step in steps:
        acceptance.kill("killed", lambda step=step: acceptance.has_steps("killed", step), "--resume", "latest")  # type: ignore[misc]
    return (
        f"killed after steps {steps}; {_equal(acceptance.straight, acceptance.train('killed', '--resume', 'latest'))}"
    )


def killed_at_the_end_of_an_epoch_and_resumed(acceptance: AcceptanceRun) -> str:
    """Kill a run at the step whose batch holds the first row of the next epoch."""
    straight = acceptance.short.train("epochs", *_LOOK)
    num_rows, batch_rows = straight["packing"]["num_rows"], straight["config"]["batch_rows"]
    step = num_rows // batch_rows + 1
    acceptance.short.kill("epochs-killed", lambda: acceptance.has_steps("epochs-killed", step), *_LOOK)
    detail = _equal(straight, acceptance.short.train("epochs-killed", "--resume", "latest", *_LOOK))
    return f"{num_rows} rows an epoch, killed after step {step}; {detail}"


def killed_inside_an_evaluation_and_resumed(acceptance: AcceptanceRun) -> str:
    """Kill a run during an evaluation; an evaluation changes nothing."""
    acceptance.kill("looking", lambda: acceptance.log("looking").splitlines()[-1:] == [_LOOKING], *_LOOK)
    return _equal(acceptance.straight, acceptance.train("looking", "--resume", "latest", *_LOOK))


def killed_inside_a_save_and_resumed(acceptance: AcceptanceRun) -> str:
    """Kill a run while it writes a checkpoint: this one or the one before is left, complete."""
    scratch = acceptance.store.root / "tmp" / "runs" / "killed-saving"
    acceptance.kill("killed-saving", lambda: any(scratch.glob("step-*")))
    is_whole = acceptance.store.ref("runs/killed-saving", "latest") is not None
    detail = _equal(acceptance.straight, acceptance.train("killed-saving", "--resume", "latest"))
    damage = [line for line in fsck(acceptance.store) if not line.startswith("object") or "missing" not in line]
    if damage:
        raise GateFailed(damage[0])
    return f"the save was {'complete' if is_whole else 'interrupted'}; {detail}"


def any_number_of_workers(acceptance: AcceptanceRun) -> str:
    """Compare runs with different numbers of loader workers."""
    for number in ("1", "4"):
        _equal(acceptance.straight, acceptance.train(f"workers-{number}", "--workers", number))
    return "0, 1 and 4 loader workers equal"


def one_micro_batch_is_no_accumulation(acceptance: AcceptanceRun) -> str:
    """Compare accumulation over one micro-batch with none."""
    rows = str(acceptance.straight["config"]["batch_rows"])
    return _equal(
        acceptance.straight,
        acceptance.train("whole", "--micro-batch-rows", rows),
        [n for n in SAME if n[:5] != "check"],
    )


def any_number_of_ranks(acceptance: AcceptanceRun) -> str:
    """Compare four micro-batches on one, two and four processes."""
    steps, more = 3, ("--micro-batch-rows", "1")
    alone = acceptance.train("ranks-1", *more, steps=steps)
    for count in (2, 4) if acceptance.num_steps == NUM_STEPS else (2,):
        _equal(alone, acceptance.train(f"ranks-{count}", *more, steps=steps, launcher=_ranks(count)))
    return f"1 x 4, 2 x 2{' and 4 x 1' if acceptance.num_steps == NUM_STEPS else ''} equal after {steps} steps"


def sharded_over_any_number_of_ranks(acceptance: AcceptanceRun) -> str:
    """Compare parameters sharded over two and four ranks with one process, and resume from each on the other."""
    steps, more = 4, ("--micro-batch-rows", "1")
    alone = acceptance.train("sharded-1", *more, steps=steps)
    for count in (2, 4) if acceptance.num_steps == NUM_STEPS else (2,):
        sharded = (*more, "--shard")
        _equal(alone, acceptance.train(f"sharded-{count}", *sharded, steps=steps, launcher=_ranks(count)))
        half = acceptance.train(f"to-{count}", *more, steps=2)["checkpoint_id"]
        ended = acceptance.train(f"to-{count}", *sharded, "--resume", half, steps=steps, launcher=_ranks(count))
        _equal(alone, ended)
        half = acceptance.train(f"from-{count}", *sharded, steps=2, launcher=_ranks(count))["checkpoint_id"]
        _equal(alone, acceptance.train(f"from-{count}", *more, "--resume", half, steps=steps))
    return f"2{' and 4' if acceptance.num_steps == NUM_STEPS else ''} ranks, to and from one process: equal after {steps} steps"


def killed_while_accumulating_and_resumed(acceptance: AcceptanceRun) -> str:
    """Kill a run that accumulates gradients."""
    more = ("--micro-batch-rows", "2")
    straight = acceptance.train("accumulated", *more)
    acceptance.kill("accumulated-killed", lambda: acceptance.has_steps("accumulated-killed", SAVE_EVERY + 1), *more)
    return _equal(straight, acceptance.train("accumulated-killed", "--resume", "latest", *more))


def a_batch_size_change_keeps_the_data_order(acceptance: AcceptanceRun) -> str:
    """Resume with another batch size: the next rows are those at the same logical position."""
    before = acceptance.train("smaller", steps=SAVE_EVERY)
    rows = 2 * int(before["config"]["batch_rows"])
    more = ("--batch-rows", str(rows))
    after = acceptance.train("larger", "--resume", before["checkpoint_id"], *more, steps=SAVE_EVERY + 1)
    fresh = acceptance.train("larger-fresh", *more, steps=SAVE_EVERY // 2 + 1)
    one, other = (load(acceptance.store, result["checkpoint_id"]).history.batches[-1] for result in (after, fresh))
    if one != other or not after["forks"]:
        raise GateFailed("the batch after the change is not the one at that position, or the fork is not recorded")
    return f"from {rows // 2} to {rows} rows at position {before['loader']['position']}: the same rows, fork recorded"


def telemetry_changes_nothing(acceptance: AcceptanceRun) -> str:
    """Compare runs with and without metrics, TensorBoard file and progress."""
    detail = _equal(acceptance.straight, acceptance.train("silent", "--telemetry", "off"))
    if (acceptance.folder / "silent" / "metrics.jsonl").exists():
        raise GateFailed("metrics were written without telemetry")
    return detail


def a_planted_race_is_caught(acceptance: AcceptanceRun) -> str:
    """Add a sum in random order to a training: the certificate must change."""
    lines = [acceptance.command(run, steps=3)[3:] for run in ("racy-1", "racy-2")]
    results = [acceptance.program("train_with_race", json.dumps(line)) for line in lines]
    if results[0]["certificate"] == results[1]["certificate"]:
        raise GateFailed("two runs with a sum in random order have the same certificate")
    return "a sum in random order: the certificates differ"


def decoding_equals_the_full_pass(acceptance: AcceptanceRun) -> str:
    """Compare the scores of a checkpoint token by token, with carried state, to those of the full pass."""
    found = acceptance.answer(
        [
            sys.executable,
            "-m",
            "trainer.inference.decoding_check",
            str(acceptance.store.root),
            acceptance.straight["checkpoint_id"],
        ]
    )
    if not found["difference"] < found["limit"]:
        raise GateFailed(f"scores differ by {found['difference']:.1e} of the largest")
    return f"{found['tokens']} tokens of packed rows: within {found['difference']:.0e} of the largest score"


def a_feature_that_is_off_is_never_built(acceptance: AcceptanceRun) -> str:
    """Build a model without its Engram branch: it has no tensor of it, and the others have the same initial values."""
    found = acceptance.program("build_without_engram")
    if found["left"] or found["moved"]:
        raise GateFailed(f"left {found['left']}, moved {found['moved']}")
    return f"no tensor of the Engram branch, the other {found['count']} have the same initial values"


def a_damaged_checkpoint_is_refused(acceptance: AcceptanceRun) -> str:
    """Refuse a flipped bit, a missing byte, another kind of object and another seed."""
    first = acceptance.train("damaged", steps=1)["checkpoint_id"]
    path = acceptance.store.read(first).path
    line = ["checkpoints", "show", first, "--store", str(acceptance.store.root)]  # reads a checkpoint as a resume does
    found = acceptance.program("read_damaged", str(path), json.dumps(line))
    for file, code, message in found:
        if code != 1 or not (file in message or first[:12] in message):
            raise GateFailed(f"a damaged {file} was not refused by name: {message[-200:]}")
    if "it is a snapshot" not in acceptance.refused("damaged", "--resume", acceptance.snapshot_id):
        raise GateFailed("a snapshot was accepted as a checkpoint")
    if "seed was 42, is now 43" not in acceptance.refused("foreign", "--seed", "43", "--resume", first):
        raise GateFailed("a checkpoint of another seed was not refused by that field")
    return f"{len(found) // 2} files with one bit flipped and one byte short, a snapshot, another seed: refused"


GATES: dict[str, Callable[[AcceptanceRun], str]] = {
    gate.__name__: gate
    for gate in (
        two_runs_are_equal,
        two_runs_in_one_process_equal_two_processes,
        killed_between_saves_and_resumed,
        killed_at_the_end_of_an_epoch_and_resumed,
        killed_inside_an_evaluation_and_resumed,
        killed_inside_a_save_and_resumed,
        any_number_of_workers,
        one_micro_batch_is_no_accumulation,
        any_number_of_ranks,
        sharded_over_any_number_of_ranks,
        killed_while_accumulating_and_resumed,
        a_batch_size_change_keeps_the_data_order,
        telemetry_changes_nothing,
        a_planted_race_is_caught,
        decoding_equals_the_full_pass,
        a_feature_that_is_off_is_never_built,
        a_damaged_checkpoint_is_refused,
    )
}
SHORT = frozenset(
    gate.__name__
    for gate in (
        two_runs_in_one_process_equal_two_processes,
        any_number_of_ranks,
        one_micro_batch_is_no_accumulation,
        a_batch_size_change_keeps_the_data_order,
        telemetry_changes_nothing,
        a_planted_race_is_caught,
        decoding_equals_the_full_pass,
        a_feature_that_is_off_is_never_built,
    )
)
