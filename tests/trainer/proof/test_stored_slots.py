"""Slots of a row are judged by its stored pieces: boundaries, targets, mask, padding, and infilling undone."""

from typing import Any

import numpy as np
import pytest

from trainer.proof.stored_rows import AS_STORED
from trainer.proof.stored_slots import ROWS_OF_SOURCE, are_judged, judge_slots

SPECIALS = {"<|pad|>": 0, "<|bos|>": 1, "<|eos|>": 2, "<|fim_prefix|>": 3, "<|fim_middle|>": 4, "<|fim_suffix|>": 5}
STORED = np.array([1, 10, 11, 12, 13, 2, 1, 20, 21, 0, 0, 0, 0, 0, 0], np.uint16)
LENGTHS = np.array([6, 3], np.uint32)
PLAIN = [1, 10, 11, 12, 13, 2]
PSM = [1, 3, 10, 5, 13, 4, 11, 12, 2]
SPM = [1, 3, 5, 13, 4, 10, 11, 12, 2]
NO_PREFIX = [1, 3, 5, 12, 13, 4, 10, 11, 2]
SWAPPED = [1, 3, 13, 5, 10, 4, 11, 12, 2]


def arrays(first: list[int], second: tuple[int, ...] = (1, 20, 21)) -> list[Any]:
    """Inputs, targets, mask and document ids of a row of two documents."""
    num_pads = len(STORED) - len(first) - len(second)
    ids = np.array([*first, *second, *[0] * num_pads], np.int64)
    docs = np.array([1] * len(first) + [2] * len(second) + [-1] * num_pads, np.int32)
    mask = docs > 0
    mask[[len(first) - 1, len(first) + len(second) - 1]] = False
    return [ids, np.append(ids[1:], 0), mask, docs]


@pytest.mark.parametrize("first", [PLAIN, PSM, SPM, NO_PREFIX])
def test_a_row_is_as_stored_in_every_form(first: list[int]) -> None:
    assert judge_slots(STORED, LENGTHS, arrays(first), SPECIALS) == AS_STORED
    assert judge_slots(STORED, LENGTHS, arrays(first, (1, 3, 5, 21, 4, 20)), SPECIALS) == AS_STORED


@pytest.mark.parametrize(
    "first", [SWAPPED, [1, 3, 10, 4, 13, 5, 11, 12, 2], [1, 10, 3, 5, 13, 4, 11, 12, 2], PLAIN[::-1]]
)
def test_a_document_that_does_not_come_back_is_named(first: list[int]) -> None:
    assert judge_slots(STORED, LENGTHS, arrays(first), SPECIALS).startswith("document 1 is not as stored")


@pytest.mark.parametrize(
    ("column", "slot", "value", "fault"),
    [
        (1, 3, 12, "targets are not"),
        (2, 5, True, "the mask is not"),
        (2, 14, True, "the mask is not"),
        (2, 0, False, "the mask is not"),
        (3, 6, 1, "document 1 has not"),
        (3, 14, 2, "document 2 has not"),
        (3, 14, 3, "what follows"),
        (0, 14, 7, "what follows"),
    ],
)
def test_a_slot_that_differs_is_named(column: int, slot: int, value: int, fault: str) -> None:
    row = arrays(PLAIN)
    row[column][slot] = value

    assert judge_slots(STORED, LENGTHS, row, SPECIALS).startswith(fault)


def test_the_first_rows_of_every_source_are_judged() -> None:
    found = list(are_judged([*["a"] * 20, "b"]))

    assert found == [True] * ROWS_OF_SOURCE + [False] * (20 - ROWS_OF_SOURCE) + [True]
