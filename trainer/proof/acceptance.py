"""The acceptance gates of a training: each runs the command line in fresh processes, from stored checkpoints alone.

The trainings go into a store of their own, to which the snapshot is copied, so that a gate leaves nothing behind.
"""

import json
import os
import signal
import subprocess
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
from trainer.proof import planted_faults
from trainer.proof.small_snapshot import copy_snapshot, shorten
from trainer.train.determinism import ENVIRONMENT

SAME = ("certificate", "losses", "parameters_sha256", "optimizer_sha256", "checkpoint_id")
NUM_STEPS, NUM_SHORT_STEPS, SAVE_EVERY, EVALUATE_EVERY = 12, 6, 4, 5
_EPOCH_ROWS = 18
_TIMEOUT_SECONDS = 300


@dataclass(frozen=True)
class Outcome:
    """What a gate found. `detail` says what was compared, or what differs."""

    name: str
    passed: bool
    detail: str
    seconds: float


class Failed(Exception):  # noqa: N818  # a verdict, and no error of the program
    """A gate's claim does not hold."""


@dataclass
class Bench:
    """Where the gates of one acceptance train."""

    store: Store
    snapshot_id: str
    folder: Path
    num_steps: int

    @cached_property
    def short(self) -> "Bench":
        """The same over a few rows, so that an epoch ends within the run, in the middle of a batch if it can."""
        snapshot = open_snapshot(self.store, self.snapshot_id)
        num_sources = sum(source.num_rows_train > 0 for source in snapshot.sources)
        return replace(self, snapshot_id=shorten(self.store, self.snapshot_id, max(1, _EPOCH_ROWS // num_sources)))

    @cached_property
    def straight(self) -> dict[str, Any]:
        """The run that nobody interrupts."""
        return self.train("straight")

    def command(self, run: str, *more: str, steps: int | None = None, launcher: Sequence[str] = ()) -> list[str]:
        """The command line of a sitting."""
        line = [sys.executable, *launcher, "-m", *(["--"] if launcher else []), "trainer", "train"]
        line += ["--store", str(self.store.root), "--json"]
        line += ["--snapshot", self.snapshot_id, "--run", run, "--out", str(self.folder / run)]
        return [*line, "--save-every", str(SAVE_EVERY), "--stop-after", str(steps or self.num_steps), *more]

    def train(self, run: str, *more: str, steps: int | None = None, launcher: Sequence[str] = ()) -> dict[str, Any]:
        """The result of a sitting in a fresh process."""
        return self.answer(self.command(run, *more, steps=steps, launcher=launcher))

    def answer(self, line: Sequence[str]) -> dict[str, Any]:
        """What a fresh process prints as JSON."""
        done = self.process(line)
        if done.returncode:
            raise Failed(f"exit {done.returncode}: {(done.stderr.strip() or 'silent').splitlines()[-1][:200]}")
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def refused(self, run: str, *more: str) -> str:
        """The message with which a sitting is refused."""
        done = self.process(self.command(run, *more))
        if done.returncode != 1 or "Traceback" in done.stderr:
            raise Failed(f"exit {done.returncode} where a refusal was expected")
        return str(json.loads(done.stdout)["message"])

    def kill(self, run: str, is_time: Callable[[], bool], *more: str) -> None:
        """Start a sitting and kill it as soon as `is_time` says so."""
        line = self.command(run, *more)
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._words_of(run).open("wb") as words:
            child = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=words, env=_environment())
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while child.poll() is None and not is_time() and time.monotonic() < deadline:
            time.sleep(0.0005)
        if child.poll() is not None:
            raise Failed(
                f"run {run} ended with {child.returncode} before the moment to kill it: {self.told(run)[-200:]}"
            )
        os.kill(child.pid, signal.SIGKILL)
        child.wait()

    def told(self, run: str) -> str:
        """What the sitting that is killed has said so far."""
        return self._words_of(run).read_text(errors="replace")

    def has_steps(self, run: str, number: int) -> bool:
        """Whether the sitting that is killed has told of so many steps."""
        return f"] {number}/" in self.told(run)

    def _words_of(self, run: str) -> Path:
        return self.folder / f"{run}.told"

    def process(self, line: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """A fresh process, run to its end."""
        return subprocess.run(
            line, capture_output=True, text=True, check=False, env=_environment(), timeout=_TIMEOUT_SECONDS
        )


def run_gates(
    store: Store,
    snapshot_id: str,
    only: Sequence[str] = (),
    is_short: bool = False,
    on_outcome: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Run the gates in order; all of them, whatever each finds. Raises TrainingError for a gate that does not exist."""
    unknown = sorted(set(only) - GATES.keys())
    if unknown:
        raise TrainingError(f"gate {', '.join(unknown)}", "there is none of that name", f"{', '.join(GATES)}")
    names = [name for name in GATES if (name in only if only else not is_short or name in SHORT)]
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="acceptance-") as folder:
        copy = copy_snapshot(store, snapshot_id, Path(folder) / "store")
        bench = Bench(copy, snapshot_id, Path(folder) / "runs", NUM_SHORT_STEPS if is_short else NUM_STEPS)
        for name in names:
            outcomes.append(_judge(name, bench))
            on_outcome(outcomes[-1])
    return outcomes


def _judge(name: str, bench: Bench) -> Outcome:
    started = time.monotonic()
    try:
        passed, detail = True, GATES[name](bench)
    except (Failed, subprocess.TimeoutExpired) as error:
        passed, detail = False, str(error)
    return Outcome(name, passed, detail, round(time.monotonic() - started, 1))


def _equal(one: dict[str, Any], other: dict[str, Any], names: Sequence[str] = SAME) -> str:
    different = [name for name in names if one[name] != other[name]]
    if different:
        raise Failed(f"{', '.join(different)} differ")
    return f"{', '.join(names)} equal after {other['steps']} steps"


def _ranks(count: int) -> tuple[str, ...]:
    return ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count))


_LOOK = ("--evaluate-every", str(EVALUATE_EVERY))
_LOOKING = f"evaluating held-out rows after step {EVALUATE_EVERY}"


# The gates.


def two_runs_are_equal(bench: Bench) -> str:
    """The same run in two processes."""
    return _equal(bench.straight, bench.train("again"))


def two_runs_in_one_process_equal_two_processes(bench: Bench) -> str:
    """Nothing is left in a process that a second run could feel."""
    lines = [bench.command(run)[3:] for run in ("first", "second")]
    bench.answer([sys.executable, "-c", planted_faults.TWICE, json.dumps(lines)])
    results = [json.loads((bench.folder / run / "result.json").read_bytes()) for run in ("first", "second")]
    return " and ".join(_equal(bench.straight, result) for result in results)


def killed_between_saves_and_resumed(bench: Bench) -> str:
    """kill -9 before the first save, at a save and behind it, one after the other in one run."""
    steps = (1, SAVE_EVERY, SAVE_EVERY + 1)
    for step in steps:
        bench.kill("killed", lambda step=step: bench.has_steps("killed", step), "--resume", "latest")  # type: ignore[misc]
    return f"killed after steps {steps}; {_equal(bench.straight, bench.train('killed', '--resume', 'latest'))}"


def killed_at_the_end_of_an_epoch_and_resumed(bench: Bench) -> str:
    """kill -9 at the step whose batch holds the first row of the next epoch."""
    straight = bench.short.train("epochs", *_LOOK)
    num_rows, batch_rows = straight["packing"]["num_rows"], straight["config"]["batch_rows"]
    step = num_rows // batch_rows + 1
    bench.short.kill("epochs-killed", lambda: bench.has_steps("epochs-killed", step), *_LOOK)
    detail = _equal(straight, bench.short.train("epochs-killed", "--resume", "latest", *_LOOK))
    return f"{num_rows} rows an epoch, killed after step {step}; {detail}"


def killed_inside_an_evaluation_and_resumed(bench: Bench) -> str:
    """kill -9 while held-out rows are looked at; and looking changes nothing."""
    bench.kill("looking", lambda: bench.told("looking").splitlines()[-1:] == [_LOOKING], *_LOOK)
    return _equal(bench.straight, bench.train("looking", "--resume", "latest", *_LOOK))


def killed_inside_a_save_and_resumed(bench: Bench) -> str:
    """kill -9 while a checkpoint is being written: the one before or this one is left, whole."""
    scratch = bench.store.root / "tmp" / "runs" / "killed-saving"
    bench.kill("killed-saving", lambda: any(scratch.glob("step-*")))
    is_whole = bench.store.ref("runs/killed-saving", "latest") is not None
    detail = _equal(bench.straight, bench.train("killed-saving", "--resume", "latest"))
    damage = [line for line in fsck(bench.store) if not line.startswith("object") or "missing" not in line]
    if damage:
        raise Failed(damage[0])
    return f"{'the save was done' if is_whole else 'the save was cut'}; {detail}"


def any_number_of_workers(bench: Bench) -> str:
    """Loader workers change nothing."""
    for number in ("1", "4"):
        _equal(bench.straight, bench.train(f"workers-{number}", "--workers", number))
    return "0, 1 and 4 loader workers equal"


def one_micro_batch_is_no_accumulation(bench: Bench) -> str:
    """Accumulation over one micro-batch is the same as none."""
    rows = str(bench.straight["config"]["batch_rows"])
    return _equal(
        bench.straight, bench.train("whole", "--micro-batch-rows", rows), [n for n in SAME if n[:5] != "check"]
    )


def any_number_of_ranks(bench: Bench) -> str:
    """Four micro-batches on one process, two or four."""
    steps, more = 3, ("--micro-batch-rows", "1")
    alone = bench.train("ranks-1", *more, steps=steps)
    for count in (2, 4) if bench.num_steps == NUM_STEPS else (2,):
        _equal(alone, bench.train(f"ranks-{count}", *more, steps=steps, launcher=_ranks(count)))
    return f"1 x 4, 2 x 2{' and 4 x 1' if bench.num_steps == NUM_STEPS else ''} equal after {steps} steps"


def sharded_over_any_number_of_ranks(bench: Bench) -> str:
    """Parameters spread over two ranks, or four; a checkpoint of theirs goes on in one process, and one of its on them."""
    steps, more = 4, ("--micro-batch-rows", "1")
    alone = bench.train("sharded-1", *more, steps=steps)
    for count in (2, 4) if bench.num_steps == NUM_STEPS else (2,):
        sharded = (*more, "--shard")
        _equal(alone, bench.train(f"sharded-{count}", *sharded, steps=steps, launcher=_ranks(count)))
        half = bench.train(f"to-{count}", *more, steps=2)["checkpoint_id"]
        ended = bench.train(f"to-{count}", *sharded, "--resume", half, steps=steps, launcher=_ranks(count))
        _equal(alone, ended)
        half = bench.train(f"from-{count}", *sharded, steps=2, launcher=_ranks(count))["checkpoint_id"]
        _equal(alone, bench.train(f"from-{count}", *more, "--resume", half, steps=steps))
    return (
        f"2{' and 4' if bench.num_steps == NUM_STEPS else ''} ranks, to and from one process: equal after {steps} steps"
    )


def killed_while_accumulating_and_resumed(bench: Bench) -> str:
    """kill -9 in a run that accumulates."""
    more = ("--micro-batch-rows", "2")
    straight = bench.train("accumulated", *more)
    bench.kill("accumulated-killed", lambda: bench.has_steps("accumulated-killed", SAVE_EVERY + 1), *more)
    return _equal(straight, bench.train("accumulated-killed", "--resume", "latest", *more))


def a_batch_size_change_keeps_the_data_order(bench: Bench) -> str:
    """Another batch size goes on at the same logical position."""
    before = bench.train("smaller", steps=SAVE_EVERY)
    rows = 2 * int(before["config"]["batch_rows"])
    more = ("--batch-rows", str(rows))
    after = bench.train("larger", "--resume", before["checkpoint_id"], *more, steps=SAVE_EVERY + 1)
    fresh = bench.train("larger-fresh", *more, steps=SAVE_EVERY // 2 + 1)
    one, other = (load(bench.store, result["checkpoint_id"]).history.batches[-1] for result in (after, fresh))
    if one != other or not after["forks"]:
        raise Failed("the batch after the change is not the one at that position, or the fork is not recorded")
    return f"from {rows // 2} to {rows} rows at position {before['loader']['position']}: the same rows, fork recorded"


def telemetry_changes_nothing(bench: Bench) -> str:
    """With or without metrics, TensorBoard file and progress."""
    detail = _equal(bench.straight, bench.train("silent", "--telemetry", "off"))
    if (bench.folder / "silent" / "metrics.jsonl").exists():
        raise Failed("metrics were written without telemetry")
    return detail


def a_planted_race_is_caught(bench: Bench) -> str:
    """A sum in an order that nobody decides must move the certificate."""
    runs = ("racy-1", "racy-2")
    results = [
        bench.answer([sys.executable, "-c", planted_faults.RACY, json.dumps([bench.command(run, steps=3)[3:]])])
        for run in runs
    ]
    if results[0]["certificate"] == results[1]["certificate"]:
        raise Failed("two runs with a sum in random order have the same certificate")
    return "a sum in random order: the certificates differ"


def decoding_equals_the_full_pass(bench: Bench) -> str:
    """Token by token, with carried state, a checkpoint scores the first rows as it does all at once."""
    checkpoint_id, root = bench.straight["checkpoint_id"], str(bench.store.root)
    found = bench.answer([sys.executable, "-c", planted_faults.DECODED, root, checkpoint_id])
    if not found["difference"] < found["limit"]:
        raise Failed(f"scores differ by {found['difference']:.1e} of the largest")
    return f"{found['tokens']} tokens of packed rows: within {found['difference']:.0e} of the largest score"


def a_feature_that_is_off_is_never_built(bench: Bench) -> str:
    """Without its Engram branch a model has no tensor of it, and the others begin as with it."""
    found = bench.answer([sys.executable, "-c", planted_faults.WITHOUT_ENGRAM])
    if found["left"] or found["moved"]:
        raise Failed(f"left {found['left']}, moved {found['moved']}")
    return f"no tensor of the Engram branch, the other {found['count']} begin as with it"


def a_damaged_checkpoint_is_refused(bench: Bench) -> str:
    """A flipped bit, a byte less, another kind of object, another seed."""
    first = bench.train("damaged", steps=1)["checkpoint_id"]
    path = bench.store.read(first).path
    line = ["checkpoints", "show", first, "--store", str(bench.store.root)]  # reads as every resume does
    found = bench.answer([sys.executable, "-c", planted_faults.DAMAGED, str(path), json.dumps(line)])
    for file, code, words in found:
        if code != 1 or not (file in words or first[:12] in words):
            raise Failed(f"a damaged {file} was not refused by name: {words[-200:]}")
    if "it is a snapshot" not in bench.refused("damaged", "--resume", bench.snapshot_id):
        raise Failed("a snapshot was taken for a checkpoint")
    if "seed was 42, is now 43" not in bench.refused("foreign", "--seed", "43", "--resume", first):
        raise Failed("a checkpoint of another seed was not refused by that field")
    return f"{len(found) // 2} files with one bit flipped and one byte short, a snapshot, another seed: refused"


def _environment() -> dict[str, str]:
    # Threads that wait asleep: beside other ranks, and a watcher, spinning takes the cores from those who compute.
    return {**os.environ, **ENVIRONMENT, "OMP_WAIT_POLICY": "passive"}


GATES: dict[str, Callable[[Bench], str]] = {
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
