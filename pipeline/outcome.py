"""What a step says about each record it was given: kept, or dropped and why. Nothing is lost silently."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class Kept(Generic[Record]):
    """A record that goes on, possibly changed."""

    record: Record


@dataclass(frozen=True, slots=True)
class Dropped:
    """A record that leaves. `reason` names the rule, `detail` its evidence or measured value."""

    record_id: str
    reason: str
    detail: str = ""


Outcome = Kept[Record] | Dropped


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
