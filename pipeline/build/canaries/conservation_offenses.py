"""Offenses of conservation, for each stage: rows lost, stored twice or in reverse, dropped and not listed, with details of nothing.

They follow from what STAGES declares, so that a new stage is seen red without an offense of its own. A stage that lists no files
loses and doubles rows of what it passes on, which its audit is given altered.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.build.canaries.memory_build import Alteration, Changes, MemoryObject
from pipeline.build.canaries.offense import (
    IN_BOTH,
    NUM_PLACES,
    SOURCES,
    Offense,
    after,
    altered,
    at_places,
    both_altered,
    column,
    drop_without_cause,
    every,
    fields,
    in_audit,
    in_both,
    one_each,
    places,
    rows_added,
    rows_doubled,
    rows_lost,
    table_changed,
)
from pipeline.build.canaries.sound_sources import NUM_SOUND_DOCUMENTS, NUM_SOUND_FILES
from pipeline.contracts.gates import CONSERVED, GATES
from pipeline.contracts.part import PartOutput
from pipeline.contracts.stage import Stage
from pipeline.contracts.stage_report import StageReport
from pipeline.core.records import LicenseEvidence, SourceFile
from pipeline.core.schema import table_of_records
from pipeline.core.table_names import DOCUMENTS, DROPPED, FILES
from pipeline.stages.stages import STAGES, kinds_with

_FILES, _DOCUMENTS = NUM_SOUND_FILES - len(SOURCES), NUM_SOUND_DOCUMENTS - len(SOURCES)
_NUM_REVERSED = {
    "collect": _FILES,
    # Of the documents, then of what is kept of all, and the copies.
    "normalize": _FILES + NUM_SOUND_FILES - len(SOURCES),
    "enrich": _DOCUMENTS,
    "tokenize": _DOCUMENTS + IN_BOTH - len(SOURCES),
}
"""Rows of the sound build that follow one which they should precede when each table is stored in reverse.

Of a stage that is not named, one of each source.
"""
_UNCOUNTED = {"a_of_no_row": 1, "z_of_no_row": 1}
_CLEANED = tuple(f"after/{source}" for source in SOURCES)
_REDACTED = column(DOCUMENTS, "text", at_places(lambda text: f"{text}// <redacted-name-1> <redacted-name-2>\n"))


def _as_copyleft_elsewhere(output: PartOutput) -> PartOutput:
    """Add drops of files that state copyleft, with the texts of documents."""
    documents = output.tables[DOCUMENTS].to_pylist()
    names = ("source", "path", "num_bytes", "text_sha256")
    license = "GPL-3.0-only"
    drops = [
        {name: row[name] for name in names}
        | {
            "record_id": row["document_id"],
            "reason": "license_refused",
            "license": license,
            "detail": f"{license} is refused\n{row['path']}: the header contains the notice of {license}",
        }
        for row in (documents[index] for index in places(len(documents)))
    ]
    return rows_added(DROPPED, lambda _: drops)(output)


DETAIL_OFFENSES = (
    in_both(
        "copies_of_copyleft_that_are_kept",
        ["no_row_lost_in_normalize"],
        "normalize",
        _as_copyleft_elsewhere,
        least=2 * IN_BOTH,  # as from nowhere too
    ),
    one_each(
        "details_of_nothing",
        ["no_row_lost_in_normalize"],
        "normalize",
        dict.fromkeys(SOURCES, DOCUMENTS),
        [
            fields(license_detail="x"),
            fields(license_evidence=LicenseEvidence.SIDECAR),
            fields(scores="{}"),
            fields(scores="x"),
            fields(scores=lambda scores: scores.replace('"num_bytes":', '"num_bytes":-')),
            fields(scores=lambda scores: scores.replace('"longest_line":', '"longest_line":1')),
        ],
    ),
    in_audit(
        "evaluation_items_of_another_build",
        ["no_row_lost_in_normalize"],
        "normalize",
        lambda inputs: {name: replace(inputs[name], identity={"evaluation_sha256": "0"}) for name in _CLEANED},
        least=len(SOURCES),
    ),
    in_audit(
        "more_placeholders_than_were_counted",
        ["no_row_lost_in_normalize"],
        "normalize",
        lambda inputs: {name: replace(inputs[name], output=_uncounted(inputs[name].output)) for name in _CLEANED},
    ),
    # Of each drop that gives no cause the detail counts, and what the drops alone change.
    Offense(
        "drops_without_a_detail",
        ("no_row_lost_in_normalize",),
        after(
            drop_without_cause("normalize", DOCUMENTS, ["contaminated"]).changes,
            both_altered("normalize", column(DROPPED, "detail", every(""))),
        ),
        least=2 * IN_BOTH + len(SOURCES),
    ),
)


def _uncounted(output: PartOutput) -> PartOutput:
    """Return documents with two placeholders each, of which one was counted."""
    return column(DOCUMENTS, "num_redactions", at_places(lambda _: 1))(_REDACTED(output))


def conservation_offenses() -> Iterator[Offense]:
    """Yield the offenses of every stage that has a gate on conservation: in the table of what it keeps, or in what it passes on."""
    for stage in STAGES:
        gates = tuple(gate.name for gate in GATES if (gate.stage, gate.measure) == (stage.name, CONSERVED))
        table = _table_shown(stage)
        if gates and table:
            yield from _of_rows(stage, gates, table)
        if gates and stage.passes_rows_on:
            yield from _of_rows_passed_on(stage.name, gates)
        if gates and any(table.order for kind in stage.parts for table in kind.tables):
            yield _in_reverse(stage, gates)
        if gates and any(table.lists_drops for kind in stage.parts for table in kind.tables):
            yield _drop_without_row(stage.name, gates)


def _table_shown(*stages: Stage) -> str | None:
    """Return the name of the first table of stages that lists files that were kept."""
    return next((table.name for each in stages for kind in each.parts for table in kind.tables if table.shown), None)


def _of_rows(stage: Stage, gates: tuple[str, ...], table: str) -> Iterator[Offense]:
    least = IN_BOTH * len(stage.steps)  # a row that is lost is missed by each of them
    yield in_both(f"row_lost_in_{stage.name}", gates, stage.name, rows_lost(table), least=least)
    yield in_both(f"row_from_nowhere_in_{stage.name}", gates, stage.name, rows_doubled(table), least=least)


def _of_rows_passed_on(stage: str, gates: tuple[str, ...]) -> Iterator[Offense]:
    """Yield the offenses of a stage that passes on rows of those before, if there are any."""
    before = tuple(STAGES)[: STAGES.names.index(stage)]
    table = _table_shown(*reversed(before))
    if table:
        yield in_audit(f"row_lost_in_{stage}", gates, stage, partial(_altered, table, rows_lost(table)))
    doubled = partial(_altered, table, rows_doubled(table)) if table else _from_nowhere
    yield in_audit(f"row_from_nowhere_in_{stage}", gates, stage, doubled)


def _altered(table: str, change: Callable[[PartOutput], PartOutput], inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parts of both sources that hold the table, as they are or as rows of a snapshot, with another one."""
    labels = [f"after/{prefix}{source}" for source in SOURCES for prefix in ("", "rows/")]
    parts = {label: inputs[label] for label in labels if label in inputs and table in inputs[label].output.tables}
    return {label: replace(part, output=change(part.output)) for label, part in parts.items()}


def _from_nowhere(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a part with files of both sources, for a stage before those that list any."""
    rows = [
        SourceFile(source, "", f"{number}.c", "", "", 0, False, b"")
        for source in SOURCES
        for number in range(NUM_PLACES)
    ]
    files = PartOutput({FILES: table_of_records(SourceFile, rows)})
    return {"after/nowhere": MemoryObject("nowhere", kinds_with(FILES)[0], {}, files, Path())}


def _in_reverse(stage: Stage, gates: tuple[str, ...]) -> Offense:
    """Return the offense of tables that are stored in the opposite of their order: each row but the first is out of it."""
    changes = []
    is_of_sources = any(table.order for kind in stage.parts if kind.only is None for table in kind.tables)
    least = _NUM_REVERSED.get(stage.name, len(SOURCES) if is_of_sources else 1)
    for kind in stage.parts:
        names = [table.name for table in kind.tables if table.order]
        for part in (kind.only,) if kind.only else SOURCES:
            changes += [altered((stage.name, part), table_changed(name, _reversed)) for name in names]
    return Offense(f"rows_in_reverse_in_{stage.name}", gates, after(*changes), least=least)


def _reversed(table: pa.Table) -> pa.Table:
    return table.take(pa.array(range(table.num_rows - 1, -1, -1), pa.int64()))


def _drop_without_row(stage: str, gates: tuple[str, ...]) -> Offense:
    """Return the offense of reports that count drops which no table lists: the first and the last by their reasons."""

    def misreport(report: StageReport) -> StageReport:
        return replace(report, dropped={**report.dropped, **_UNCOUNTED})

    changes = Changes(tuple(Alteration(stage, source, report=misreport) for source in SOURCES))
    return Offense(f"drop_without_row_in_{stage}", gates, changes, least=len(_UNCOUNTED) * len(SOURCES))
