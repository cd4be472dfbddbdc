"""The commands about rows that runs have read: `which` and `reads`. They load no torch."""

import argparse
from dataclasses import asdict
from typing import Any

from pipeline.core.command_line import STEPS_ARGUMENT, place_number, shell_command, whole_number
from pipeline.core.errors import MissingError
from pipeline.core.records import Split
from trainer.cli.arguments import add_command, open_store, report

_PLACE = whole_number(0, 2**31)
_ROW = f"SOURCE/{Split.TRAIN}/PACK_ID"


def add_commands(commands: Any) -> None:
    """Declare the commands of this group."""
    which = add_command(commands, "which", _which, "which row and slot of a snapshot a token of a batch was")
    which.add_argument("--checkpoint", required=True, help="a checkpoint id, or RUN@STEP")
    which.add_argument("--step", type=STEPS_ARGUMENT, required=True, help="the step, counted from 1")
    which.add_argument("--row", type=_PLACE, required=True, help="the row of its batch, counted from 0")
    which.add_argument("--slot", type=_PLACE, required=True, help="the slot of the row, counted from 0")
    reads = add_command(commands, "reads", _reads, "the steps and epochs in which runs have read training rows")
    rows = f"{_ROW}@SNAPSHOT, or {_ROW} of the snapshot that --snapshot names; rows of one source"
    reads.add_argument("rows", nargs="+", metavar="ROW", help=rows)
    reads.add_argument("--snapshot", default="", help="the id of the snapshot that rows without one are of")
    reads.add_argument("--checkpoint", action="append", required=True, help="of a run, up to its step; may be repeated")


def _which(options: argparse.Namespace) -> dict[str, Any]:
    from trainer.checkpoint.rows_read import RowsRead
    from trainer.checkpoint.stored_state import checkpoint_id

    store = open_store(options)
    found = RowsRead(store, checkpoint_id(store, options.checkpoint)).token(options.step, options.row, options.slot)
    row, of, at = (str(found.row), str(found.slot)), found.snapshot_id, options.given_store
    which = shell_command("pipeline which", *row, of=of, store=at)
    report(
        [
            f"token {found.token_id} in slot {found.slot} of row {found.row} of snapshot {found.snapshot_id}",
            f"epoch {found.epoch} of its source, its piece {found.infilling}",
            f"`{which}` finds the file",
        ]
    )
    return asdict(found)


def _reads(options: argparse.Namespace) -> list[dict[str, Any]]:
    from pipeline.store.snapshot import resolve_snapshot
    from trainer.checkpoint.rows_read import RowsRead
    from trainer.checkpoint.stored_state import checkpoint_id

    store = open_store(options)
    source, pack_ids = _rows_of_one_source(options.rows, options.snapshot)
    snapshots = {name: resolve_snapshot(store, "", name) for name in sorted(pack_ids)}
    answer = []
    for name in options.checkpoint:
        read = RowsRead(store, checkpoint_id(store, name))
        reads = [
            {"snapshot_id": snapshot_id} | each._asdict()
            for snapshot, snapshot_id in snapshots.items()
            for each in read.reads(snapshot_id, source, pack_ids[snapshot])
        ]
        reads.sort(key=lambda each: (each["step"], each["pack_id"], each["snapshot_id"]))
        entry = {"checkpoint_id": read.checkpoint_id, "first_known_step": read.first_known_step}
        answer.append(entry | {"reads": reads})
        report(
            f"{read.checkpoint_id[:12]}  step {each['step']:>7}  epoch {each['epoch']:>3}  "
            f"{source}/{Split.TRAIN}/{each['pack_id']}@{each['snapshot_id'][:12]}"
            for each in reads
        )
    return answer


def _rows_of_one_source(rows: list[str], snapshot: str) -> tuple[str, dict[str, list[int]]]:
    """Parse the names of training rows: their source, and their numbers by snapshot.

    Raises MissingError for another name, one without a snapshot, and for rows of several sources.
    """
    sources, found = set[str](), dict[str, list[int]]()
    for row in rows:
        name, _, own = row.partition("@")
        parts = name.split("/")
        number = place_number(parts[2]) if len(parts) == 3 and parts[1] == Split.TRAIN else None
        if number is None:
            raise MissingError(f"row {row[:200]!r}", "it is not the name of a training row", _ROW, "Correct it.")
        if not (own or snapshot):
            raise MissingError(
                f"row {row[:200]!r}", "it names no snapshot", f"{_ROW}@SNAPSHOT", "Or name it by --snapshot."
            )
        sources.add(parts[0])
        found.setdefault(own or snapshot, []).append(number)
    if len(sources) > 1:
        names = ", ".join(sorted(sources))
        raise MissingError("rows", f"they are of sources {names}", "rows of one source", "Ask for each.")
    return sources.pop(), found
