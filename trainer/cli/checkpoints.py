"""What the commands besides training and sampling do. Each returns what `--json` prints, and tells people on stderr."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from pipeline.core.errors import TrainingError
from pipeline.store.snapshot import resolve
from pipeline.store.store import Store
from trainer.checkpoint import archive, checkpoint, retention
from trainer.checkpoint.retention import Keep
from trainer.proof import acceptance, comparison, rerun
from trainer.proof import doctor as diagnosis


def compare(options: argparse.Namespace) -> dict[str, Any]:
    """Where two trainings part. Exit code 1 where they do."""
    store = Store(options.store) if options.store else None
    one, other = (comparison.read(name, store) for name in (options.first, options.second))
    found = comparison.compare(one, other)
    _say(found.lines)
    answer = {"equal": found.is_equal, **asdict(found), "exit_code": int(not found.is_equal)}
    if options.rerun and not found.is_equal:
        if store is None or one.checkpoint is None or other.checkpoint is None:
            raise TrainingError("re-run", "the checkpoints are not at hand", "--store, and both checkpoints in it")
        again = rerun.rerun(store, one.checkpoint, other.checkpoint)
        _say(again.lines)
        answer["rerun"] = asdict(again)
    return answer


def list_all(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every checkpoint of the store or of one run."""
    entries = retention.list_checkpoints(Store(options.store), options.run)
    _say(
        f"{entry.checkpoint_id[:12]}  step {entry.step:>7}  loss {entry.recent_loss:.4f}  {entry.num_bytes / 1e6:8.1f} MB, "
        f"{entry.num_own_bytes / 1e6:.1f} its own  {', '.join(entry.refs)}"
        for entry in entries
    )
    return [asdict(entry) for entry in entries]


def show(options: argparse.Namespace) -> dict[str, Any]:
    """The state of a checkpoint and its files, verified."""
    store = Store(options.store)
    checkpoint.load(store, options.checkpoint)
    stored = checkpoint.open_stored(store, options.checkpoint)
    state = checkpoint.read_state(stored)
    files = {entry.name: entry.num_bytes for entry in stored.manifest.files}
    _say([f"{name}: {value}" for name, value in state.items()])
    _say([f"{name}  {size:,} bytes" for name, size in files.items()])
    return {**state, "files": files}


def diff(options: argparse.Namespace) -> dict[str, Any]:
    """The largest difference of each tensor; exit code 1 where any differs."""
    store = Store(options.store)
    rows = comparison.diff(checkpoint.load(store, options.first), checkpoint.load(store, options.second))
    _say(f"{row.name:<60} {'equal' if row.is_equal else row.found}" for row in rows)
    return {"tensors": [asdict(row) for row in rows], "exit_code": int(not all(row.is_equal for row in rows))}


def export(options: argparse.Namespace) -> dict[str, Any]:
    """Write a checkpoint as a tar."""
    sha256 = archive.export(Store(options.store), options.checkpoint, options.file)
    _say([f"{options.file}: sha256 {sha256}"])
    return {"sha256": sha256}


def import_file(options: argparse.Namespace) -> dict[str, Any]:
    """Verify and store an exported tar."""
    checkpoint_id = archive.import_file(Store(options.store), options.file)
    _say([f"checkpoint {checkpoint_id}"])
    return {"checkpoint_id": checkpoint_id}


def prune_run(options: argparse.Namespace) -> dict[str, Any]:
    """Remove what a run has written and nothing needs."""
    store, keep = Store(options.store), Keep(options.keep_last, options.keep_every, options.keep_best)
    if not keep.is_limited:
        raise TrainingError(
            "prune", "nothing says what to keep", "--keep-last, --keep-every or --keep-best", "Set one of them."
        )
    with store.writer(f"runs/{options.run}", f"prune of {options.run}"):
        removed = retention.prune(store, options.run, keep, options.rehearse)
    word = "would remove" if options.rehearse else "removed"
    _say(f"{word} {entry.checkpoint_id[:12]}  step {entry.step}" for entry in removed)
    return {"removed": [entry.checkpoint_id for entry in removed], "rehearsal": options.rehearse}


def doctor(options: argparse.Namespace) -> dict[str, Any]:
    """What is set, what this machine can promise, what would break it. Exit code 1 where bitwise equality is not promised."""
    found = diagnosis.diagnose()
    _say(diagnosis.lines(found))
    return {**asdict(found), "exit_code": int(not found.is_promised)}


def accept(options: argparse.Namespace) -> dict[str, Any]:
    """The acceptance gates; exit code 1 unless all that ran passed."""
    store = Store(options.store)
    snapshot_id = resolve(store, options.corpus, options.snapshot)
    outcomes = acceptance.run_gates(store, snapshot_id, options.only, options.short, on_outcome=_say_outcome)
    return {
        "gates": [asdict(outcome) for outcome in outcomes],
        "exit_code": int(not all(outcome.passed for outcome in outcomes)),
    }


def _say_outcome(outcome: acceptance.Outcome) -> None:
    _say([f"{'green' if outcome.passed else 'RED  '}  {outcome.name:<44} {outcome.seconds:5.0f} s  {outcome.detail}"])


def _say(lines: Iterable[str] | Sequence[str]) -> None:
    for line in lines:
        print(line, file=sys.stderr, flush=True)
