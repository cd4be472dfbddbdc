"""The commands about checkpoints: `compare`, and `checkpoints list|show|diff|export|import|prune`."""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.core.command_line import file_path, output_path
from pipeline.core.errors import TrainingError
from trainer.cli.arguments import add_command, add_retention, open_store, report, retention

if TYPE_CHECKING:
    from pipeline.store.store import Store


def add_commands(commands: Any) -> None:
    """Declare the commands of this group."""
    compare = add_command(commands, "compare", _compare, "name the first difference of two trainings")
    compare.add_argument("first", help="a checkpoint id, RUN@STEP, or a result.json")
    compare.add_argument("second", help="the other: a checkpoint id, RUN@STEP, or a result.json")
    compare.add_argument(
        "--rerun", action="store_true", help="train both again from their last common checkpoint, to the first tensor"
    )
    group = commands.add_parser("checkpoints", help="list, show, diff, export, import, prune")
    verbs = group.add_subparsers(required=True, metavar="VERB")
    listing = add_command(verbs, "list", _list, "every checkpoint, by step")
    listing.add_argument("--run", help="only the checkpoints of this run")
    add_command(verbs, "show", _show, "the state and files of a checkpoint").add_argument("checkpoint")
    diff = add_command(verbs, "diff", _diff, "two checkpoints, tensor by tensor")
    diff.add_argument("first")
    diff.add_argument("second")
    export = add_command(verbs, "export", _export, "one tar whose sha256 never varies")
    export.add_argument("checkpoint")
    export.add_argument("file", type=output_path, help="file to write, which is replaced")
    importing = add_command(verbs, "import", _import, "verify an exported tar, then store it")
    importing.add_argument("file", type=file_path)
    pruning = add_command(verbs, "prune", _prune, "remove checkpoints of a run that are not needed")
    pruning.add_argument("--run", required=True)
    pruning.add_argument("--rehearse", action="store_true", help="list what would be removed, and remove nothing")
    add_retention(pruning)


def _compare(options: argparse.Namespace) -> dict[str, Any]:
    store = open_store(options)
    names = [_record_name(name, store) for name in (options.first, options.second)]
    from trainer.proof import comparison, rerun  # only what is not refused waits for torch

    one, other = (comparison.read_record(name, store) for name in names)
    found = comparison.compare_trainings(one, other)
    report(found.lines)
    answer = {"equal": found.is_equal, **asdict(found), "exit_code": int(not found.is_equal)}
    if options.rerun and not found.is_equal:
        if one.checkpoint is None or other.checkpoint is None:
            raise TrainingError("re-run", "a checkpoint is not in the store", "a store that has both, by --store")
        again = rerun.rerun(store, one.checkpoint, other.checkpoint)
        report(again.lines)
        answer["rerun"] = asdict(again)
    return answer


def _record_name(name: str, store: "Store") -> str:
    """Return the path of a result.json, or the id of a checkpoint. Raises MissingError."""
    from trainer.checkpoint.stored_state import checkpoint_id

    return name if Path(name).is_file() else checkpoint_id(store, name)


def _list(options: argparse.Namespace) -> list[dict[str, Any]]:
    from pipeline.store.store_layout import refuse_no_store
    from trainer.checkpoint.retention import list_checkpoints

    refuse_no_store(options.store)
    entries = list_checkpoints(_store_with(options), options.run)
    if not entries:
        print(f"no checkpoint is in the store {options.store}", file=sys.stderr)
    report(
        f"{entry.checkpoint_id[:12]}  step {entry.step:>7}  loss {entry.recent_loss:.4f}  {entry.num_bytes / 1e6:8.1f} MB, "
        f"{entry.num_own_bytes / 1e6:.1f} not shared  {', '.join(entry.refs)}"
        for entry in entries
    )
    return [asdict(entry) for entry in entries]


def _store_with(options: argparse.Namespace) -> "Store":
    """Open the store of a command. Raises MissingError where it has not the run that `--run` names."""
    from pipeline.store.named_objects import missing_corpus
    from pipeline.store.store_layout import RUNS

    store = open_store(options)
    if options.run is not None and not store.history(f"{RUNS}/{options.run}"):
        raise missing_corpus(store, f"{RUNS}/{options.run}")
    return store


def _show(options: argparse.Namespace) -> dict[str, Any]:
    from trainer.checkpoint import stored_state

    store = open_store(options)
    stored = stored_state.open_stored(store, stored_state.checkpoint_id(store, options.checkpoint))
    from trainer.checkpoint import checkpoint

    checkpoint.load(store, stored.object_id)  # which verifies it
    state = stored_state.read_state(stored)
    files = {entry.name: entry.num_bytes for entry in stored.manifest.files}
    report(f"{name}: {value}" for name, value in state.items())
    snapshots = stored_state.training_place(stored).snapshots
    report(f"shaped by snapshot {snapshot}  ({role.partition('/')[0]})" for role, snapshot in snapshots.items())
    report(f"{name}  {size:,} bytes" for name, size in files.items())
    return {**state, "snapshots": snapshots, "files": files}


def _diff(options: argparse.Namespace) -> dict[str, Any]:
    """Report the largest difference of each tensor. Exit code 1 where any differs."""
    from trainer.checkpoint.stored_state import checkpoint_id

    store = open_store(options)
    ids = [checkpoint_id(store, name) for name in (options.first, options.second)]
    from trainer.checkpoint.checkpoint import load
    from trainer.proof import comparison

    rows = comparison.diff_checkpoints(load(store, ids[0]), load(store, ids[1]))
    report(f"{row.name:<60} {'equal' if row.is_equal else row.found}" for row in rows)
    return {"tensors": [asdict(row) for row in rows], "exit_code": int(not all(row.is_equal for row in rows))}


def _export(options: argparse.Namespace) -> dict[str, Any]:
    from trainer.checkpoint import checkpoint_archive, stored_state

    store = open_store(options)
    sha256 = checkpoint_archive.export_archive(
        store, stored_state.checkpoint_id(store, options.checkpoint), options.file
    )
    report([f"{options.file}: sha256 {sha256}"])
    return {"sha256": sha256}


def _import(options: argparse.Namespace) -> dict[str, Any]:
    from trainer.checkpoint import checkpoint_archive

    checkpoint_id = checkpoint_archive.import_archive(open_store(options), options.file)
    report([f"checkpoint {checkpoint_id}"])
    return {"checkpoint_id": checkpoint_id}


def _prune(options: argparse.Namespace) -> dict[str, Any]:
    from trainer.checkpoint.retention import prune

    store, keep = _store_with(options), retention(options)
    if not keep.is_limited:
        expected, remedy = "--keep-last, --keep-every or --keep-best", "`--rehearse` lists what would be removed."
        raise TrainingError("prune", "no limit is given", expected, remedy)
    with store.writer(f"runs/{options.run}", f"prune of {options.run}"):
        removed = prune(store, options.run, keep, options.rehearse)
    verb = "would remove" if options.rehearse else "removed"
    report(f"{verb} {entry.checkpoint_id[:12]}  step {entry.step}" for entry in removed)
    return {"removed": [entry.checkpoint_id for entry in removed], "rehearsal": options.rehearse}
