"""Counts of canaries: the rarest kind is counted, and whatever was not caught is missed."""

import json
from typing import Any, cast

import pytest

from pipeline.contracts.gates_seen import CANARIES
from pipeline.contracts.part import PartJob, PartOutput
from pipeline.stages.verify.canary_counts import measure_canaries

CAUGHT: dict[str, Any] = {
    "canaries/secret.c": True,
    "canaries/gpl.c": True,
    "zip_slip": True,
    "bomb": True,
    "splits_are_apart/in_both": True,
}


@pytest.mark.parametrize(
    ("changed", "num_canaries", "num_missed"),
    [
        ({}, 1, 0),
        ({"canaries/gpl.c": False, "bomb": "no"}, 1, 2),
        ({"bomb": None}, 0, 1),
        ({"canaries/gpl.c": None}, 0, 1),
        ({"no_gate/in_both": True}, 1, 0),
        ({"splits_are_apart/other": "caught"}, 2, 1),
    ],
)
def test_the_rarest_kind_is_counted_and_what_was_not_caught_is_missed(
    changed: dict[str, Any], num_canaries: int, num_missed: int
) -> None:
    caught = CAUGHT | changed
    output = PartOutput({}, files={CANARIES: json.dumps(caught).encode()})
    report = measure_canaries(cast(PartJob, None), output)

    assert report.measures == {"num_canaries": num_canaries, "num_canaries_missed": num_missed}
    assert report.rows_in == len(caught)


def test_without_a_canary_of_a_kind_none_is_counted() -> None:
    output = PartOutput({}, files={CANARIES: json.dumps({"zip_slip": True, "canaries/a.c": True}).encode()})
    assert measure_canaries(cast(PartJob, None), output).measures["num_canaries"] == 0
