"""The proofs about rows find what they are for: each kind of damage, planted in sound rows, is counted."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from pipeline.core.records import PackedRow, TrainingRow
from pipeline.core.schema import arrow_schema
from pipeline.verify.rows import (
    count_boundary_mismatches,
    count_hot_rows_that_differ,
    count_ids,
    count_ids_out_of_range,
)

PAD, BEGIN, END, LENGTH = 0, 1, 2, 16


def row(*pieces: list[int]) -> dict[str, Any]:
    """A row written out by hand: each piece with its BOS, the last slots empty."""
    ids: list[int] = []
    doc_ids: list[int] = []
    mask: list[int] = []
    for number, piece in enumerate(pieces, start=1):
        ids += piece
        doc_ids += [number] * len(piece)
        mask += [1] * (len(piece) - 1) + [0]
    padding = LENGTH - len(ids)
    ids += [PAD] * padding
    return {
        "pack_id": 0,
        "source": "one",
        "split": "train",
        "input_ids": ids,
        "target_ids": [*ids[1:], PAD],
        "loss_mask": mask + [0] * padding,
        "doc_ids": doc_ids + [-1] * padding,
        "valid_token_count": LENGTH - padding,
        "num_docs": len(pieces),
        "trained_token_count": sum(mask),
        "slack_tokens": padding,
        "source_doc_ids": [f"document {number}" for number in range(len(pieces))],
        "source_doc_token_lengths": [len(piece) for piece in pieces],
        "piece_indices": [0] * len(pieces),
        "build_aware_fraction": None,
        "file_local_commit_indices": None,
    }


def packed(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=arrow_schema(PackedRow))


def sound() -> dict[str, Any]:
    return row([BEGIN, 5, 6, END], [BEGIN, 7, 8, 9, END])


def set_item(name: str, index: int, value: int) -> Callable[[dict[str, Any]], None]:
    return lambda broken: broken[name].__setitem__(index, value)


def set_field(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda broken: broken.__setitem__(name, value)


DAMAGES = {
    "a boundary one slot late": set_item("doc_ids", 4, 1),
    "a document id on padding": set_item("doc_ids", 15, 3),
    "a loss over a boundary": set_item("loss_mask", 3, 1),
    "a loss on padding": set_item("loss_mask", 12, 1),
    "a token that is not trained": set_item("loss_mask", 1, 0),
    "a target that is not the next token": set_item("target_ids", 1, 9),
    "text in the padding": set_item("input_ids", 15, 7),
    "a piece without its start": set_item("input_ids", 4, 7),
    "a start inside a piece": set_item("input_ids", 2, BEGIN),
    "a wrong count of documents": set_field("num_docs", 3),
    "a wrong count of tokens": set_field("valid_token_count", 8),
    "a wrong count of trained tokens": set_field("trained_token_count", 9),
    "a wrong count of slack": set_field("slack_tokens", 6),
    "lengths that overflow the row": set_field("source_doc_token_lengths", [4, 11]),
    "a row that is too short": set_field("input_ids", [BEGIN, 5, END]),
}


def test_sound_rows_have_no_mismatch() -> None:
    assert count_boundary_mismatches(packed(sound(), row([BEGIN, 5, END])), LENGTH, BEGIN, PAD) == 0
    assert count_boundary_mismatches(packed(), LENGTH, BEGIN, PAD) == 0


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_planted_damage_is_counted(damage: Callable[[dict[str, Any]], None]) -> None:
    broken = sound()
    damage(broken)

    assert count_boundary_mismatches(packed(broken), LENGTH, BEGIN, PAD) == 1


def test_a_full_row_leaves_three_slots_a_piece() -> None:
    fits = row([BEGIN, *[5] * 12])
    crowded = row([BEGIN, *[5] * 13])

    assert count_boundary_mismatches(packed(fits), LENGTH, BEGIN, PAD) == 0
    assert count_boundary_mismatches(packed(crowded), LENGTH, BEGIN, PAD) == 1


def test_a_hot_row_that_differs_is_counted() -> None:
    hot_row = {"piece_ids": [1, 2], "chunk_counts": [0, 0], "chunk_starts": []}
    cold = sound()
    same = {**hot_row, "input_ids": cold["input_ids"], "lengths": cold["source_doc_token_lengths"]}
    other = {**same, "input_ids": [BEGIN, 6, *cold["input_ids"][2:]]}

    def hot(*rows: dict[str, Any]) -> pa.Table:
        return pa.Table.from_pylist(list(rows), schema=arrow_schema(TrainingRow))

    assert count_hot_rows_that_differ(packed(cold, cold), hot(same, same)) == 0
    assert count_hot_rows_that_differ(packed(cold, cold), hot(same, other)) == 1
    assert count_hot_rows_that_differ(packed(cold, cold), hot(same)) == 2


def test_ids_are_counted_and_those_out_of_range_found() -> None:
    table = packed(sound())

    assert count_ids_out_of_range(table, 10) == 0
    assert count_ids_out_of_range(table, 9) == 1
    assert count_ids(table, 10).tolist() == [7, 2, 2, 0, 0, 1, 1, 1, 1, 1]
