"""StageReport: counts of the records that a part or a stage read, kept and dropped, by reason."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pipeline.core.errors import StageError


@dataclass(frozen=True)
class StageReport:
    """Counts of one part or one stage. Measures are counts and shares that gates judge, never text or times."""

    rows_in: int
    rows_out: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    num_bytes_in: int = 0
    num_bytes_out: int = 0
    measures: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise StageError for a measure that is not a number from 0 on: added to others, it would hide theirs."""
        for name, value in self.measures.items():
            if not 0 <= value < math.inf:
                raise StageError(f"measure {name}", str(value), "a number from 0 on", "Correct what reports it.")

    @property
    def gate_measures(self) -> dict[str, float]:
        """Everything that a gate can judge: the measures, the rows and bytes, and the drops as `dropped_<reason>`."""
        return {
            **self.measures,
            **{f"dropped_{reason}": count for reason, count in self.dropped.items()},
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "num_bytes_in": self.num_bytes_in,
            "num_bytes_out": self.num_bytes_out,
        }


def evidence_files(report: StageReport) -> tuple[int, int]:
    """Return the files of license evidence among those that a stage passes on, and their bytes: they become no documents."""
    number = int(report.measures.get("num_evidence_files", 0))
    return number, report.num_bytes_out - int(report.measures.get("source_bytes", 0)) if number else 0


def total(reports: Iterable[StageReport]) -> StageReport:
    """Add up the reports of a stage's parts. Measures add up too: parts report counts, the stage derives shares."""
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
