"""What a part or a stage says about the records it was given: how many went on, how many were dropped and why."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol


class HasReason(Protocol):
    """A record that left: a DroppedRecord, or a DuplicateRecord."""

    @property
    def reason(self) -> str: ...


@dataclass(frozen=True)
class StageReport:
    """Counts of one part or one stage. Measures are what gates look at; they hold counts and shares, never text or times."""

    rows_in: int
    rows_out: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    num_bytes_in: int = 0
    num_bytes_out: int = 0
    measures: Mapping[str, float] = field(default_factory=dict)

    @property
    def num_rows_unaccounted(self) -> int:
        """Rows that neither went out nor were dropped. The gate on every stage: nothing is lost silently."""
        return self.rows_in - self.rows_out - sum(self.dropped.values())


def count_reasons(dropped: Iterable[HasReason]) -> dict[str, int]:
    """How many records left by each rule, sorted by its name."""
    return dict(sorted(Counter(str(record.reason) for record in dropped).items()))


def total(reports: Iterable[StageReport]) -> StageReport:
    """The sum of the reports of a stage's parts. Measures add up: parts report counts, the stage derives shares."""
    reports = list(reports)
    dropped: Counter[str] = Counter()
    measures: Counter[str] = Counter()
    for report in reports:
        dropped.update(report.dropped)
        measures.update(report.measures)
    return StageReport(
        rows_in=sum(report.rows_in for report in reports),
        rows_out=sum(report.rows_out for report in reports),
        dropped=dict(sorted(dropped.items())),
        num_bytes_in=sum(report.num_bytes_in for report in reports),
        num_bytes_out=sum(report.num_bytes_out for report in reports),
        measures=dict(sorted(measures.items())),
    )
