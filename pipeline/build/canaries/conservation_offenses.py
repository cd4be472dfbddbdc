"""Offenses of conservation, for each stage that keeps rows: rows that it loses, stores twice, or drops without listing them.

They follow from what STAGES declares, so that a new stage is seen red without an offense of its own.
"""

from collections.abc import Iterator
from dataclasses import replace

from pipeline.build.canaries.memory_build import Alteration, Changes
from pipeline.build.canaries.offense import IN_BOTH, SOURCES, Offense, in_both, rows_doubled, rows_lost
from pipeline.contracts.gates import CONSERVED, GATES
from pipeline.contracts.stage_report import StageReport
from pipeline.stages.stages import STAGES, Stage

_UNCOUNTED = {"a_of_no_row": 1, "z_of_no_row": 1}


def conservation_offenses() -> Iterator[Offense]:
    """Yield the offenses of every stage that has a table of what it keeps and a gate on conservation."""
    for stage in STAGES:
        gates = tuple(gate.name for gate in GATES if (gate.stage, gate.measure) == (stage.name, CONSERVED))
        table = next((table.name for kind in stage.parts for table in kind.tables if table.shown), None)
        if gates and table:
            yield from _of_rows(stage, gates, table)
        if gates and any(table.lists_drops for kind in stage.parts for table in kind.tables):
            yield _drop_without_row(stage.name, gates)


def _of_rows(stage: Stage, gates: tuple[str, ...], table: str) -> Iterator[Offense]:
    least = IN_BOTH * len(stage.steps)  # a row that is lost is missed by each of them
    yield in_both(f"row_lost_in_{stage.name}", gates, stage.name, rows_lost(table), least=least)
    yield in_both(f"row_from_nowhere_in_{stage.name}", gates, stage.name, rows_doubled(table), least=least)


def _drop_without_row(stage: str, gates: tuple[str, ...]) -> Offense:
    """Return the offense of reports that count drops which no table lists: the first and the last by their reasons."""

    def misreport(report: StageReport) -> StageReport:
        return replace(report, dropped={**report.dropped, **_UNCOUNTED})

    changes = Changes(tuple(Alteration(stage, source, report=misreport) for source in SOURCES))
    return Offense(f"drop_without_row_in_{stage}", gates, changes, least=len(_UNCOUNTED) * len(SOURCES))
