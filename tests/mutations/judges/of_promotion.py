"""Mutations of what a promotion proves, by rule over the fields of a snapshot, the records of a store and the reasons of drops.

snapshot/FIELD     the building process writes another value of a field into snapshot.json       its own promotion refuses
record/FILE/FORM   a log's head, a verdict or a ref of what is live is damaged or forged         its next promotion refuses
drop/REASON        the building process drops a file for a reason that does not hold             the audit, or the next process
unreplayed/TABLE   the building process forges what no gate counts, and promotes it              the promotion of another process
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.build.oracles.audited_files import COPIES
from pipeline.build.oracles.drops.drop_rules import DROP_RULES, OF_COMMENTS
from pipeline.build.recipes import TINY, pins_of
from pipeline.build.stage_objects import parts_of
from pipeline.contracts.part import PartJob, PartOutput
from pipeline.core.table_names import DOCUMENTS, DROPPED, ENRICHED
from pipeline.formats.snapshot_json import SNAPSHOT_FILE
from pipeline.stages.normalize.params import DropBands
from pipeline.stages.stages import STAGES
from tests.faults.injected_faults import flip
from tests.mutations import plant
from tests.mutations.bench import CORPUS, Bench
from tests.mutations.mutation import Kind, Mutation

_SOURCE = {
    "name": "other",
    "rows": "0" * 64,
    "weight": 7.5,
    "num_documents": 1,
    "num_tokens": 1,
    "num_text_bytes": 1,
    "num_rows_train": 1,
    "num_rows_held_out": 1,
    "licenses": {"MIT": 1},
}
"""Another value of each field of a source."""
_CONTENT: dict[str, Any] = {
    "format_version": 3,
    "held_out": [],
    "row_length": 64,
    "pins": {},
    "vocabulary": {"name": "other", "sha256": "0" * 64, "size": 7, "specials": {}},
}
_NOT_COUNTED = {DOCUMENTS: ("clean", "license_detail"), ENRICHED: ("source", "provenance_detail")}
"""Table -> the function that makes it, and a column of words that no gate counts."""
_OF_TABLES_ALONE = {*COPIES, "copyleft_copy"}
"""Reasons of drops that stand in the table of copies."""


def mutations() -> Iterator[Mutation]:
    """Return the mutations of promotion."""
    for place in _places():
        planted = f"the building process writes another {'.'.join(place)} into {SNAPSHOT_FILE}, and promotes"
        expected = ("promote", "gate:held_out_sources_are_held_out") if place == ("held_out",) else ("promote",)
        yield Mutation(f"snapshot/{'.'.join(place)}", Kind.STAGE, planted, expected, partial(_forge_snapshot, place))
    for record in _records():
        for form, damage in {"flipped": flip, "removed": Path.unlink}.items():
            planted, run = f"{record} of what is live {form}", partial(_damage_record, record, damage)
            yield Mutation(f"record/{record}/{form}", Kind.STORED, planted, ("promote",), run)
        if record.startswith("verdicts"):
            planted, run = f"{record} of what is live say another measure", partial(_forge_verdict, record)
            yield Mutation(f"record/{record}/forged", Kind.STORED, planted, ("promote",), run)
    for reason in sorted(DropBands.model_fields.keys() - _OF_TABLES_ALONE):
        # A rule that knows comments believes a text that has literals of its own kind: the replay does not.
        expected = ("gate:no_row_lost_in_normalize",) if reason in DROP_RULES else ()
        expected += ("promote",) if reason not in DROP_RULES or reason in OF_COMMENTS else ()
        planted = f"the building process drops a sound file as {reason}, and another process promotes"
        yield Mutation(f"drop/{reason}", Kind.STAGE, planted, expected, partial(_forge_drop, reason))
    for table, (function, column) in _NOT_COUNTED.items():
        planted = f"the building process forges {column} of {table} and promotes it, then another process promotes"
        run = partial(_forge_column, table, function, column)
        yield Mutation(f"unreplayed/{table}", Kind.STAGE, planted, ("promote",), run)


def _places() -> Iterator[tuple[str, ...]]:
    for name, other in _CONTENT.items():
        yield from ((name, inner) for inner in other) if name == "vocabulary" else [(name,)]
    yield from (("sources", name) for name in _SOURCE)


def _records() -> Iterator[str]:
    yield from (f"verdicts of {stage}" for stage in STAGES.names)
    yield from (f"key of the last part of {stage}" for stage in STAGES.names)
    yield from (f"refs/{CORPUS}/{name}" for name in (*STAGES.names, "candidate"))
    yield from (f"log/{name}.head" for name in ("promotions", "withdrawals", "blobs"))
    yield from ("archive", "archive name")


def _forge_snapshot(place: tuple[str, ...], bench: Bench) -> None:
    def change(job: PartJob, output: PartOutput) -> PartOutput:
        content = json.loads(output.files[SNAPSHOT_FILE])
        if place[0] == "sources":
            content["sources"][-1][place[1]] = _SOURCE[place[1]]
        elif place[0] == "vocabulary":
            content["vocabulary"][place[1]] = _CONTENT["vocabulary"][place[1]]
        else:
            content[place[0]] = _CONTENT[place[0]]
        return replace(output, files={**output.files, SNAPSHOT_FILE: json.dumps(content).encode()})

    plant.alter_output("verify", "compose", change)
    bench.build()


def _damage_record(record: str, damage: Callable[[Path], None], bench: Bench) -> None:
    kind, is_of_stage, stage = record.partition(" of ")
    stage_id = bench.store.ref(CORPUS, stage.removeprefix("the last part of ")) if is_of_stage else None
    if record.startswith("archive"):
        name = next(path for path in sorted(bench.store.root.glob("names/git/*.history")))
        blob = f"blobs/{name.read_text().partition(' ')[0]}"
        place = blob if record == "archive" else name.relative_to(bench.store.root).as_posix()
    elif stage_id is None:
        place = record
    elif kind == "key":
        part_id = max(parts_of(bench.store.read(stage_id)).items())[1]
        place = f"keys/{bench.store.read(part_id).manifest.key}"
    else:
        place = f"verdicts/{stage_id}.json"
    damage(bench.store.root / place)
    bench.promote(bench.live_id)


def _forge_verdict(record: str, bench: Bench) -> None:
    object_id = bench.store.ref(CORPUS, record.removeprefix("verdicts of ")) or ""
    first, *others = bench.store.verdicts(object_id)["verdicts"]
    bench.store.put_verdicts(object_id, [first | {"measured": first["measured"] + 1}, *others])
    bench.promote(bench.live_id)


def _forge_drop(reason: str, bench: Bench) -> None:
    bench.since = "normalize"
    plant.alter_output("normalize", "clean", lambda job, output: _dropped(output, reason) if _is_first(job) else output)
    snapshot_id = bench.build(until_live=False)
    if snapshot_id is not None:
        bench.promote_elsewhere(snapshot_id)


def _forge_column(table: str, function: str, column: str, bench: Bench) -> None:
    stage = "normalize" if table == DOCUMENTS else "enrich"
    bench.since = stage

    def change(job: PartJob, output: PartOutput) -> PartOutput:
        forged = plant.edit_column(output.tables[table], column, lambda values: ["forged", *values[1:]])
        return replace(output, tables={**output.tables, table: forged}) if _is_first(job) else output

    plant.alter_output(stage, function, change)
    snapshot_id = bench.build()
    if bench.red:
        bench.red = [f"unexpected-{line}" for line in bench.red]  # its own promotion believes it
    elif snapshot_id is not None:
        bench.promote_elsewhere(snapshot_id)


def _is_first(job: PartJob) -> bool:
    return job.name == min({pin.name for pin in pins_of(TINY)} - set(TINY.params.held_out.sources))


def _dropped(output: PartOutput, reason: str) -> PartOutput:
    """Drop the largest document, and its signature."""
    documents = output.tables[DOCUMENTS]
    row = max(documents.to_pylist(), key=lambda each: (each["text"].isascii(), each["num_bytes"]))
    names = ("source", "path", "num_bytes", "text_sha256")
    drop = {name: row[name] for name in names} | {"record_id": row["document_id"], "reason": reason, "detail": "forged"}
    dropped = output.tables[DROPPED]
    added = pa.Table.from_pylist([*dropped.to_pylist(), drop], schema=dropped.schema)
    tables = {
        name: table.filter(pa.array([value != row["document_id"] for value in table["document_id"].to_pylist()]))
        for name, table in output.tables.items()
        if "document_id" in table.column_names and name != DROPPED
    }
    return replace(output, tables={**output.tables, **tables, DROPPED: added})
