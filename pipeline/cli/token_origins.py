"""The command `which`: the file that a token is from, and where the tokens of a file went."""

import argparse
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pipeline.cli.console import PersonConsole
from pipeline.cli.declaration import Answer, add_build, command, say_what_blocks
from pipeline.core.command_line import STEPS_ARGUMENT, place_number, whole_number
from pipeline.store.store import Store

if TYPE_CHECKING:
    from pipeline.lineage.origins.rows_of_file import FileRows
    from pipeline.lineage.origins.which import TokenOrigin

_PLACES = ("step", "row", "slot")
_MAX_READS = 8
"""Reads of a run that are printed; `--json` has all."""


def _add_which_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", help="a packed row, as SOURCE/SPLIT/PACK_ID; or a source")
    parser.add_argument(
        "place", nargs="?", help="a slot of the row; or a file of the source, whose rows and readers are listed"
    )
    add_build(parser)
    parser.add_argument("--checkpoint", help="instead of a row: the id of a checkpoint, or RUN@STEP")
    place = whole_number(0, 2**31)
    types = (STEPS_ARGUMENT, place, place)
    texts = ("a step of its run, from 1", "a row of that batch, from 0", "a slot of it")
    for name, type_, text in zip(_PLACES, types, texts, strict=True):
        parser.add_argument(f"--{name}", type=type_, help=f"with --checkpoint: {text}")


@command(
    "which", "name the file and the bytes that a token is from, or the rows and runs of a file", _add_which_arguments
)
def _which(options: argparse.Namespace, store: Store, person: PersonConsole) -> Answer:
    given = [name for name in ("checkpoint", *_PLACES) if getattr(options, name) is not None]
    if given and (len(given) < 1 + len(_PLACES) or options.what is not None or options.of is not None):
        options.refuse(
            "found some of them; expected --checkpoint, --step, --row and --slot, and neither a row nor --of"
        )
    if not given and options.place is None:
        options.refuse("found no SLOT and no PATH; expected SOURCE/SPLIT/PACK_ID SLOT, SOURCE PATH, or --checkpoint")
    if given:
        return _which_read(options, store, person)
    from pipeline.lineage.stored_build import stored_build

    say_what_blocks(person, store, options)
    build = stored_build(store, options.corpus, options.of)
    if "/" not in options.what:
        from pipeline.lineage.origins.rows_of_file import rows_of_file

        rows = rows_of_file(build, options.what, options.place)
        person.answer("\n".join(_lines_of_rows(rows)), markup=False)
        return 0, asdict(rows)
    from pipeline.lineage.origins.token_places import row_name
    from pipeline.lineage.origins.which import TokenOrigins

    row, slot = row_name(options.what), place_number(options.place)
    if slot is None:
        raise options.refuse(
            f"found slot {options.place[:80]!r}; expected a whole number, in digits without leading zeros"
        )
    origin = TokenOrigins(build).of(row, slot)
    person.answer("\n".join(_lines_of_origin(origin)), markup=False)
    return 0, asdict(origin)


def _which_read(options: argparse.Namespace, store: Store, person: PersonConsole) -> Answer:
    """Print the origin of a token that a run has read: the trainer names its row, and undoes infilling."""
    from pipeline.lineage.origins.trainer_answer import trainer_answer

    places = [f"--{name}={getattr(options, name)}" for name in _PLACES]
    with ThreadPoolExecutor(1) as waiting:  # modules are loaded while the process of the trainer answers
        asked = waiting.submit(trainer_answer, store, "which", f"--checkpoint={options.checkpoint}", *places)
        from pipeline.lineage.origins.token_places import row_name
        from pipeline.lineage.origins.which import TokenOrigins
        from pipeline.lineage.stored_build import stored_build

        read = asked.result()
    build = stored_build(store, options.corpus, read["snapshot_id"])
    origin = TokenOrigins(build).of(row_name(read["row"]), read["slot"])
    place = f"checkpoint {read['checkpoint_id'][:12]}, step {read['step']}: row {options.row} of the batch, slot {options.slot}"
    person.answer(f"{place}, epoch {read['epoch']}, {read['infilling']}", markup=False)
    person.answer("\n".join(_lines_of_origin(origin)), markup=False)
    return 0, asdict(origin) | {"read": read}


def _lines_of_origin(origin: "TokenOrigin") -> Iterator[str]:
    document, archive, license = origin.document, origin.archive, origin.license
    origin_text = f", {archive['origin']}" if archive["origin"] else ""
    yield f"{origin.text!r}, token {origin.token_id} in slot {origin.slot} of row {origin.row}"
    yield f"  file:      {document['source']}/{document['path']}, {document['split']}"
    yield f"  document:  {document['document_id']}, bytes {origin.text_start} to {origin.text_end}, piece {origin.piece}"
    yield f"  revision:  {document['revision']}{origin_text}"
    if archive["member"] is not None:
        yield f"  member:    {archive['member']}"
    if origin.start is not None:
        changed = f"changed: {', '.join(origin.changed)}" if origin.changed else "unchanged"
        yield f"  received:  bytes {origin.start} to {origin.end} of {archive['num_bytes']}, {changed}"
    if origin.missing:
        yield f"  missing:   {origin.missing}"
    yield f"  blob:      sha256 {document['blob_sha256']}"
    yield f"  edits:     {', '.join(_edits(origin.edits))}"
    yield f"  license:   {license['expression']} ({license['class']}), by {license['evidence']}"
    yield from (f"             {line}" for line in license["detail"].splitlines())
    yield f"  lane:      {origin.lane['provenance']} ({origin.lane['detail']})"
    yield f"  passed:    {', '.join(_rule(rule) for rule in origin.rules)}"
    yield from (f"  withdrawn: {line}" for line in origin.withdrawn)


def _edits(edits: Mapping[str, Any]) -> Iterator[str]:
    yield f"from {edits['encoding']}"
    yield from edits["edits"]
    if edits["num_redactions"]:
        yield "1 placeholder" if edits["num_redactions"] == 1 else f"{edits['num_redactions']} placeholders"


def _rule(rule: Mapping[str, Any]) -> str:
    limits = [f"{name} {value:.10g}" for name, value in rule.items() if name not in ("step", "rule", "measured")]
    return f"{rule['rule']} ({rule['measured']:g}, {limits[0]})" if limits else f"{rule['step']}: {rule['rule']}"


def _lines_of_rows(rows: "FileRows") -> Iterator[str]:
    if rows.missing:
        yield rows.missing
    for each in rows.snapshots:
        where = "" if each.snapshot_id == rows.build["snapshot_id"] else f", in snapshot {each.snapshot_id[:12]}"
        yield f"{rows.source}/{rows.path}: document {each.document_id}, {each.split}{where}"
        for row in each.rows:
            last = row.first_slot + row.num_slots - 1
            yield f"  row {row.row}, slots {row.first_slot} to {last}: piece {row.piece}, {row.num_tokens} tokens of text"
        for run in each.runs:
            yield f"  run {run.run}, checkpoint {run.checkpoint_id[:12]} of step {run.step}: {_reads(run)}"
        if not each.runs:
            yield "  no run in the store has read its snapshot"
    yield from (f"  withdrawn: {line}" for line in rows.withdrawn)
    yield from (f"  left out: {line}" for line in rows.left_out)


def _reads(run: Any) -> str:
    if run.is_by_ancestor:
        return "the weights that it began with were shaped by this snapshot"
    shown = [f"{read['row']} in step {read['step']}, epoch {read['epoch']}" for read in run.reads[:_MAX_READS]]
    more = [f"{len(run.reads) - _MAX_READS} more"] if len(run.reads) > _MAX_READS else []
    before = f"; not known before step {run.first_known_step}" if run.first_known_step > 1 else ""
    return ("; ".join([*shown, *more]) or "it has read none of these rows") + before
