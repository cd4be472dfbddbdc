"""Stage reports: parts add up to their stage, and a row that is neither kept nor dropped is counted."""

import math

import pytest

from pipeline.contracts.stage_report import StageReport, total
from pipeline.core.errors import StageError

PARTS = (
    StageReport(10, 7, {"too_small": 2, "license": 1}, 100, 70, {"num_errors": 1}),
    StageReport(5, 3, {"too_small": 1}, 50, 30, {"num_links": 4, "num_errors": 2}),
)


def test_the_reports_of_parts_add_up() -> None:
    assert total(PARTS) == StageReport(
        15, 10, {"license": 1, "too_small": 3}, 150, 100, {"num_errors": 3, "num_links": 4}
    )
    assert total([]) == StageReport(0, 0)


def test_drops_and_measures_add_up() -> None:
    measures = total(PARTS).gate_measures

    assert measures["dropped_too_small"] == 3
    assert measures["num_links"] == 4


@pytest.mark.parametrize("value", [-1, -0.5, math.nan, math.inf])
def test_a_measure_is_a_number_from_0_on(value: float) -> None:
    with pytest.raises(StageError, match="measure num_torn"):
        StageReport(1, 1, measures={"num_lost": 0, "num_torn": value})
