"""Acceptance gates of training: each trains in fresh processes, which share stored checkpoints alone.

The runs are stored in a temporary copy of the snapshot's store.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pipeline.core.errors import SluiceError
from pipeline.core.registry import Registry
from pipeline.store.fsck import fsck
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from trainer.checkpoint.checkpoint import load
from trainer.data.small_snapshot import copy_snapshot, shorten
from trainer.proof.model_checks import changes_without_engram, decoding_error
from trainer.train.child_session import SAME, SAVE_EVERY, ChildSessions, SessionFailed

NUM_LONG_STEPS, NUM_SHORT_STEPS, EVALUATE_EVERY = 12, 6, 5
MAX_DECODING_ERROR = 1e-6
"""In float64; rotary angles are float32."""
RANK_COUNTS = (2, 4)
"""Numbers of processes that are compared with one."""
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

    def resume_killed(self, run: str, is_time: Callable[[], bool], *more: str) -> dict[str, Any]:
        """Kill a training session as soon as `is_time` returns True, and return the result of the one that resumes it."""
        self.kill(run, is_time, *more)
        return self.train(run, "--resume", "latest", *more)

    def repeat_straight(self, how: str, *runs: str) -> list[dict[str, Any]]:
        """Train the straight run again under other names, in one process, `as-it-is` or `with-race`."""
        straight = (self.straight["checkpoint_id"], str(self.num_steps))
        line = [sys.executable, "-m", "trainer.proof.repeat_training", how, str(self.store.root), *straight]
        found: list[dict[str, Any]] = self.answer([*line, *(str(self.folder / run) for run in runs)])
        return found


Judge = Callable[[AcceptanceRun], str]
"""Function that returns what it compared, or raises SessionFailed."""


@dataclass(frozen=True)
class AcceptanceGate:
    """Claim about training, and whether a short run judges it."""

    name: str
    judge: Judge
    is_short: bool = False


ACCEPTANCE_GATES = Registry[AcceptanceGate]("acceptance gate")


def run_gates(
    store: Store,
    snapshot_id: str,
    only: Sequence[str] = (),
    is_short: bool = False,
    on_outcome: Callable[[GateOutcome], None] = lambda outcome: None,
) -> list[GateOutcome]:
    """Run all gates in order, also after a failure. Raises ParamsError for an unknown gate."""
    gates = [ACCEPTANCE_GATES[name] for name in only] or [
        gate for gate in ACCEPTANCE_GATES if gate.is_short or not is_short
    ]
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="acceptance-") as folder:
        copy = copy_snapshot(store, snapshot_id, Path(folder) / "store")
        acceptance = AcceptanceRun(
            copy, snapshot_id, Path(folder) / "runs", NUM_SHORT_STEPS if is_short else NUM_LONG_STEPS
        )
        for gate in gates:
            outcomes.append(_judge(gate, acceptance))
            on_outcome(outcomes[-1])
    return outcomes


def _judge(gate: AcceptanceGate, acceptance: AcceptanceRun) -> GateOutcome:
    started = time.monotonic()
    try:
        passed, detail = True, gate.judge(acceptance)
    except SessionFailed as error:
        passed, detail = False, str(error)
    return GateOutcome(gate.name, passed, detail, round(time.monotonic() - started, 1))


def _gate(name: str, is_short: bool = False) -> Callable[[Judge], AcceptanceGate]:
    """Register the function that is decorated as the gate of that name."""

    def register(judge: Judge) -> AcceptanceGate:
        gate = AcceptanceGate(name, judge, is_short)
        ACCEPTANCE_GATES.register(gate)
        return gate

    return register


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


@_gate("two_runs_are_equal")
def two_runs_are_equal(acceptance: AcceptanceRun) -> str:
    """Compare the same run in two processes."""
    return _equal(acceptance.straight, acceptance.train("again"))


@_gate("two_runs_in_one_process_equal_two_processes", is_short=True)
def two_runs_in_one_process_equal_two_processes(acceptance: AcceptanceRun) -> str:
    """Compare two runs in one process with one of its own: no state of the first reaches the second."""
    results = acceptance.repeat_straight("as-it-is", "first", "second")
    return " and ".join(_equal(acceptance.straight, result) for result in results)


@_gate("killed_between_saves_and_resumed")
def killed_between_saves_and_resumed(acceptance: AcceptanceRun) -> str:
    """Kill one run before its first save, at a save and after it, and resume each time."""
    steps = (1, SAVE_EVERY, SAVE_EVERY + 1)
    for step in steps:
        acceptance.kill("killed", partial(acceptance.has_steps, "killed", step), "--resume", "latest")
    detail = _equal(acceptance.straight, acceptance.train("killed", "--resume", "latest"))
    return f"killed after steps {steps}; {detail}"


@_gate("killed_at_the_end_of_an_epoch_and_resumed")
def killed_at_the_end_of_an_epoch_and_resumed(acceptance: AcceptanceRun) -> str:
    """Kill a run at the step whose batch holds the first row of the next epoch."""
    short, run = acceptance.short, "epochs-killed"
    straight = short.train("epochs", *_LOOK)
    num_rows = straight["packing"]["num_rows"]
    step = num_rows // straight["config"]["batch_rows"] + 1
    detail = _equal(straight, short.resume_killed(run, partial(short.has_steps, run, step), *_LOOK))
    return f"{num_rows} rows an epoch, killed after step {step}; {detail}"


@_gate("killed_inside_an_evaluation_and_resumed")
def killed_inside_an_evaluation_and_resumed(acceptance: AcceptanceRun) -> str:
    """Kill a run during an evaluation; an evaluation changes nothing."""

    def is_evaluating() -> bool:
        return acceptance.log("looking").splitlines()[-1:] == [_LOOKING]

    return _equal(acceptance.straight, acceptance.resume_killed("looking", is_evaluating, *_LOOK))


@_gate("killed_inside_a_save_and_resumed")
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


@_gate("any_number_of_workers")
def any_number_of_workers(acceptance: AcceptanceRun) -> str:
    """Compare runs with different numbers of loader workers."""
    for number in ("1", "4"):
        _equal(acceptance.straight, acceptance.train(f"workers-{number}", "--workers", number))
    return "0, 1 and 4 loader workers equal"


@_gate("one_micro_batch_is_no_accumulation")
def one_micro_batch_is_no_accumulation(acceptance: AcceptanceRun) -> str:
    """Compare accumulation over one micro-batch with none. The checkpoint names its configuration, which differs."""
    rows = str(acceptance.straight["config"]["batch_rows"])
    whole = acceptance.train("whole", "--micro-batch-rows", rows)
    return _equal(acceptance.straight, whole, [name for name in SAME if name != "checkpoint_id"])


@_gate("any_number_of_ranks")
def any_number_of_ranks(acceptance: AcceptanceRun) -> str:
    """Compare four micro-batches on one process with two and four."""
    steps, more = 3, ("--micro-batch-rows", "1")
    alone = acceptance.train("ranks-1", *more, steps=steps)
    for count in RANK_COUNTS:
        _equal(alone, acceptance.train(f"ranks-{count}", *more, steps=steps, launcher=_ranks(count)))
    counts = " and ".join(f"{count} x {4 // count}" for count in (1, *RANK_COUNTS))
    return f"{counts} equal after {steps} steps"


@_gate("sharded_over_any_number_of_ranks")
def sharded_over_any_number_of_ranks(acceptance: AcceptanceRun) -> str:
    """Compare parameters sharded over ranks with one process, and resume from each on the other."""
    steps, plain = 4, ("--micro-batch-rows", "1")
    alone, sharded = acceptance.train("sharded-1", *plain, steps=steps), (*plain, "--shard")
    for count in RANK_COUNTS:
        train_sharded = partial(acceptance.train, launcher=_ranks(count))
        _equal(alone, train_sharded(f"sharded-{count}", *sharded, steps=steps))
        half = acceptance.train(f"to-{count}", *plain, steps=2)["checkpoint_id"]
        _equal(alone, train_sharded(f"to-{count}", *sharded, "--resume", half, steps=steps))
        half = train_sharded(f"from-{count}", *sharded, steps=2)["checkpoint_id"]
        _equal(alone, acceptance.train(f"from-{count}", *plain, "--resume", half, steps=steps))
    counts = " and ".join(map(str, RANK_COUNTS))
    return f"{counts} ranks, to and from one process: equal after {steps} steps"


@_gate("killed_while_accumulating_and_resumed")
def killed_while_accumulating_and_resumed(acceptance: AcceptanceRun) -> str:
    """Kill a run that accumulates gradients."""
    more, run = ("--micro-batch-rows", "2"), "accumulated-killed"
    is_time = partial(acceptance.has_steps, run, SAVE_EVERY + 1)
    return _equal(acceptance.train("accumulated", *more), acceptance.resume_killed(run, is_time, *more))


@_gate("a_batch_size_change_keeps_the_data_order")
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


@_gate("telemetry_changes_nothing")
def telemetry_changes_nothing(acceptance: AcceptanceRun) -> str:
    """Compare runs with and without metrics, TensorBoard file and progress."""
    detail = _equal(acceptance.straight, acceptance.train("silent", "--telemetry", "off"))
    if (acceptance.folder / "silent" / "metrics.jsonl").exists():
        raise GateFailed("metrics were written without telemetry")
    return detail


@_gate("a_planted_race_is_caught", is_short=True)
def a_planted_race_is_caught(acceptance: AcceptanceRun) -> str:
    """Add a sum in random order to a training: the certificate must change."""
    one, other = acceptance.repeat_straight("with-race", "racy-1", "racy-2")
    if one["certificate"] == other["certificate"]:
        raise GateFailed("two runs with a sum in random order have the same certificate")
    return "a sum in random order: the certificates differ"


@_gate("decoding_equals_the_full_pass", is_short=True)
def decoding_equals_the_full_pass(acceptance: AcceptanceRun) -> str:
    """Compare the scores of a checkpoint token by token, with carried state, to those of the full pass."""
    error, num_tokens = decoding_error(acceptance.store, acceptance.straight["checkpoint_id"])
    if not error < MAX_DECODING_ERROR:
        raise GateFailed(f"scores differ by {error:.1e} of the largest")
    return f"{num_tokens} tokens of packed rows: within {error:.0e} of the largest score"


@_gate("a_feature_that_is_off_is_never_built", is_short=True)
def a_feature_that_is_off_is_never_built(acceptance: AcceptanceRun) -> str:
    """Build a model without its Engram branch: it has no tensor of it, and the others have the same initial values."""
    left, moved, count = changes_without_engram()
    if left or moved:
        raise GateFailed(f"left {left}, moved {moved}")
    return f"no tensor of the Engram branch, the other {count} have the same initial values"


@_gate("a_damaged_checkpoint_is_refused")
def a_damaged_checkpoint_is_refused(acceptance: AcceptanceRun) -> str:
    """Refuse a flipped bit, a missing byte, another kind of object and another seed."""
    first = acceptance.train("damaged", steps=1)["checkpoint_id"]
    files = sorted(acceptance.store.read(first).path.iterdir())
    for file in files:
        _refuse_damage(acceptance.store, first, file)
    if "it is a snapshot" not in acceptance.refused("damaged", "--resume", acceptance.snapshot_id):
        raise GateFailed("a snapshot was accepted as a checkpoint")
    if "seed was 42, is now 43" not in acceptance.refused("foreign", "--seed", "43", "--resume", first):
        raise GateFailed("a checkpoint of another seed was not refused by that field")
    return f"{len(files)} files with one bit flipped and one byte short, a snapshot, another seed: refused"


def _refuse_damage(store: Store, checkpoint_id: str, file: Path) -> None:
    """Damage a file in two ways, and restore it. Raises GateFailed unless the checkpoint is refused by a name."""
    content = file.read_bytes()
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 1
    for damaged in (flipped, content[:-1]):
        file.write_bytes(damaged)
        refusal: Exception | None = None
        try:
            load(Store(store.root), checkpoint_id)
        except Exception as error:  # of any other kind, it is no refusal
            refusal = error
        if not isinstance(refusal, SluiceError) or not (
            file.name in str(refusal) or checkpoint_id[:12] in str(refusal)
        ):
            raise GateFailed(f"a damaged {file.name} was not refused by name: {refusal!r:.200}")
    file.write_bytes(content)
