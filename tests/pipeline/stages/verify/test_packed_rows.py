"""The proofs about packed rows count each kind of damage that is planted in sound rows."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from pipeline.core.records import PackedRow
from pipeline.core.schema import arrow_schema
from pipeline.stages.verify.packed_rows import (
    count_boundary_mismatches,
    count_commit_order_violations,
    count_trained_tokens,
)

PAD, BEGIN, END, LENGTH = 0, 1, 2, 16
SPECIALS = {"<|pad|>": PAD, "<|bos|>": BEGIN, "<|eos|>": END, "<|fim_prefix|>": 3}


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
    numbered = [{**row, "pack_id": row["pack_id"] or index} for index, row in enumerate(rows)]
    return pa.Table.from_pylist(numbered, schema=arrow_schema(PackedRow))


def sound() -> dict[str, Any]:
    return row([BEGIN, 5, 6, END], [BEGIN, 7, 8, 9, END])


def set_item(name: str, index: int, value: int) -> Callable[[dict[str, Any]], None]:
    return lambda broken: broken[name].__setitem__(index, value)


def set_field(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda broken: broken.__setitem__(name, value)


DAMAGES = {
    "another number": lambda row: row.__setitem__("pack_id", 7),
    "a boundary one slot late": set_item("doc_ids", 4, 1),
    "a document id on padding": set_item("doc_ids", 15, 3),
    "a loss over a boundary": set_item("loss_mask", 3, 1),
    "a loss on padding": set_item("loss_mask", 12, 1),
    "a token that is not trained": set_item("loss_mask", 1, 0),
    "a target that is not the next token": set_item("target_ids", 1, 9),
    "text in the padding": set_item("input_ids", 15, 7),
    "a piece without its start": set_item("input_ids", 4, 7),
    "a start inside a piece": set_item("input_ids", 2, BEGIN),
    "an end inside a piece": set_item("input_ids", 2, END),
    "another special inside a piece": set_item("input_ids", 2, 3),
    "a target after the last slot": set_item("target_ids", 15, 9),
    "a wrong count of documents": set_field("num_docs", 3),
    "a wrong count of tokens": set_field("valid_token_count", 8),
    "a wrong count of trained tokens": set_field("trained_token_count", 9),
    "a wrong count of slack": set_field("slack_tokens", 6),
    "lengths that overflow the row": set_field("source_doc_token_lengths", [4, 11]),
    "a row that is too short": set_field("input_ids", [BEGIN, 5, END]),
}


def test_sound_rows_have_no_mismatch() -> None:
    assert count_boundary_mismatches(packed(sound(), row([BEGIN, 5, END])), LENGTH, SPECIALS) == 0
    assert count_boundary_mismatches(packed(), LENGTH, SPECIALS) == 0


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_planted_damage_is_counted(damage: Callable[[dict[str, Any]], None]) -> None:
    broken = sound()
    damage(broken)

    assert count_boundary_mismatches(packed(broken), LENGTH, SPECIALS) == 1


@pytest.mark.parametrize("number", [511, 512, 513])
def test_rows_are_numbered_and_counted_across_stretches(number: int) -> None:
    rows = [sound() for _ in range(514)]
    set_item("input_ids", 15, 7)(rows[number])

    assert count_boundary_mismatches(packed(*rows), LENGTH, SPECIALS) == 1


def test_a_full_row_leaves_three_slots_a_piece() -> None:
    fits = row([BEGIN, *[5] * 12])
    crowded = row([BEGIN, *[5] * 13])

    assert count_boundary_mismatches(packed(fits), LENGTH, SPECIALS) == 0
    assert count_boundary_mismatches(packed(crowded), LENGTH, SPECIALS) == 1


FILE, TWO_COMMITS = "a file", {"filepath_stable_id": "a file", "file_local_commit_indices": [4, 5]}
TOKENS = pa.table(
    {
        "document_id": ["document 0", "document 1"],
        "filepath_stable_id": [FILE, FILE],
        "file_local_commit_index": pa.array([4, 5], pa.int32()),
    }
)


@pytest.mark.parametrize(
    ("tokens", "change", "expected"),
    [
        (TOKENS, TWO_COMMITS, 0),
        (TOKENS, {**TWO_COMMITS, "file_local_commit_indices": [5, 4]}, 1),
        (TOKENS, {**TWO_COMMITS, "filepath_stable_id": "another file"}, 1),
        (TOKENS, {}, 1),
        (TOKENS.slice(1), TWO_COMMITS, 1),
        (TOKENS.set_column(2, "file_local_commit_index", pa.array([4, 7], pa.int32())), TWO_COMMITS, 1),
        (
            TOKENS.set_column(2, "file_local_commit_index", pa.array([4, 7], pa.int32())),
            {**TWO_COMMITS, "file_local_commit_indices": [4, 7]},
            1,
        ),
    ],
    ids=["sound", "backwards", "another file", "not written", "unknown document", "not the documents'", "a gap"],
)
def test_a_row_whose_commits_are_not_in_order_is_counted(
    tokens: pa.Table, change: dict[str, Any], expected: int
) -> None:
    assert count_commit_order_violations(tokens, packed({**sound(), **change})) == expected


def test_trained_tokens_are_those_with_a_target_inside_their_piece() -> None:
    assert count_trained_tokens([packed(sound()), packed(row([BEGIN, 5, END]), sound())]) == 7 + 2 + 7
