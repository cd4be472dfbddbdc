"""Judges that read only the first: for each gate its measure over the first row, list entry or source alone."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from pipeline.contracts.gates import Gate
from pipeline.contracts.part import PartJob, PartOutput
from pipeline.contracts.stage_report import StageReport
from tests.mutations import plant

COUNTS: dict[str, dict[str, tuple[int, ...]]] = {
    "num_boundary_mismatches": {"count_boundary_mismatches": (0,)},
    "num_commit_order_violations": {"count_commit_order_violations": (1,)},
    "num_documents_encoded_otherwise": {"count_documents_encoded_otherwise": (0,)},
    "num_documents_with_other_columns": {"count_documents_with_other_columns": (0,)},
    "num_fractions_that_differ": {"count_fractions_that_differ": (1,)},
    "num_ids_out_of_range": {"count_ids_out_of_range": (0,)},
    "num_misaligned_columns": {"count_misaligned_columns": (0,)},
    "num_pieces_packed_otherwise": {"count_pieces_cut_otherwise": (1,), "count_rows_not_filled": (1,)},
    "num_round_trip_failures": {"count_round_trip_failures": (0, 1)},
    "num_special_ids_in_text": {"count_special_ids": (0,)},
}
"""Measure of verify -> the functions that count it, and which of their arguments are the tables that they count."""
OF_ALL = frozenset({"bytes_per_token", "trained_fraction", "unused_vocabulary_fraction", "num_texts_in_two_splits"})
"""Measures that verify makes of all sources at once."""
REDACTED = "max_redacted_fraction"
"""Measure that an audit makes of each source."""
SHARES = frozenset({"broken_fraction", "bytes_per_token", "trained_fraction", "unused_vocabulary_fraction"})


def judge_first_row(gate: Gate) -> None:
    """Have the measure of a gate judge the first row of each table, or the first entry of each list, alone.

    A count that no function makes of tables alone is one at most.
    """
    if gate.measure == REDACTED:
        plant.wrap("pipeline.build.oracles.audited_redactions:add_redactions", _of_first_document)
    elif gate.measure in COUNTS:
        for name, at in COUNTS[gate.measure].items():
            plant.wrap(f"pipeline.stages.verify.stage:{name}", _of_first_rows(at))
    elif gate.measure in SHARES:
        _judge_first_rows_of_parts(gate, every_measure=True)
        plant.wrap("pipeline.stages.verify.stage:_measures_of_all", _of_first_proof)
    else:
        _judge_first_rows_of_parts(gate)
        _count_once(gate)


def judge_first_source(gate: Gate) -> None:
    """Have the measure of a gate judge the part of the first source alone; where no parts are added up, count one at most."""
    if gate.measure == REDACTED:
        plant.change_result("pipeline.build.audit:_redactions", lambda found: found[:1])
        return
    if gate.measure in OF_ALL:
        plant.wrap("pipeline.stages.verify.stage:_measures_of_all", _of_first_proof)
        return
    plant.wrap("pipeline.contracts.stage_report:total", lambda total: lambda reports: _of_first(total, reports, gate))
    if gate.measure not in SHARES | COUNTS.keys():
        _count_once(gate)


def _judge_first_rows_of_parts(gate: Gate, every_measure: bool = False) -> None:
    """Report of every part the measure of its output cut to the first rows."""

    def make(measured: Callable[..., PartOutput]) -> Callable[..., PartOutput]:
        def judged(job: PartJob, output: PartOutput, measure: str | None) -> PartOutput:
            whole = measured(job, output, measure)
            if measure is None:
                return whole
            few = measured(job, _first_rows(output), measure).report
            if every_measure:
                return replace(whole, report=few)
            if gate.measure in few.measures:
                measures = {**whole.report.measures, gate.measure: few.measures[gate.measure]}
                return replace(whole, report=replace(whole.report, measures=measures))
            known = {gate.measure: getattr(few, gate.measure)} if hasattr(few, gate.measure) else {}
            return replace(whole, report=replace(whole.report, **known))

        return judged

    plant.wrap("pipeline.build.engines.part_task:measured", make)


def _first_rows(output: PartOutput) -> PartOutput:
    """Return an output of which only the first of everything is left: rows, entries of answers and of JSON files."""
    answer = output.answer
    if isinstance(answer, dict):
        answer = {name: value[:1] if isinstance(value, list) else value for name, value in answer.items()}
    tables = {name: table.slice(0, 1) for name, table in output.tables.items()}
    files = {name: _first_entry(name, content) for name, content in output.files.items()}
    return replace(output, tables=tables, answer=answer, files=files)


def _first_entry(name: str, content: bytes) -> bytes:
    found = json.loads(content) if name == "canaries.json" else None
    return json.dumps(dict(list(found.items())[:1])).encode() if isinstance(found, dict) else content


def _of_first_rows(at: tuple[int, ...]) -> Callable[[Any], Any]:
    def make(count: Any) -> Any:
        return lambda *given: count(*(each.slice(0, 1) if index in at else each for index, each in enumerate(given)))

    return make


def _of_first_document(add_redactions: Any) -> Any:
    def made(found: Any, cleaned: Any, *given: Any) -> Any:
        first = SimpleNamespace(table=lambda name, columns: cleaned.table(name, columns).slice(0, 1))
        return add_redactions(found, first, *given)

    return made


def _of_first_proof(measures_of_all: Any) -> Any:
    return lambda context, proofs, *more: measures_of_all(context, dict(list(proofs.items())[:1]), *more)


def _of_first(total: Any, reports: Iterable[StageReport], gate: Gate) -> StageReport:
    """Add up reports, but for the measure of a gate, which is that of the first report of something."""
    reports = list(reports)
    added: StageReport = total(reports)
    first = next((each for each in reports if each.rows_in or each.rows_out), added)
    if gate.measure in SHARES and "num_documents_degraded" in first.measures:
        return first
    if gate.measure in first.measures:
        return replace(added, measures={**added.measures, gate.measure: first.measures[gate.measure]})
    return added


def _count_once(gate: Gate) -> None:
    """Have a gate read one at most, of a count."""

    def make(judge: Any) -> Any:
        def judged(self: Gate, measures: Any, *given: Any) -> Any:
            is_concerned = self.name == gate.name and gate.measure in measures
            few = {**measures, gate.measure: min(1, measures[gate.measure])} if is_concerned else measures
            return judge(self, few, *given)

        return judged

    plant.wrap("pipeline.contracts.gates:Gate.judge", make)
