"""The tables of rows have no offense that the proofs of verify count, and every offense planted in them is counted."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from pipeline.core.records import Split
from pipeline.stages.tokenize.columns.list_column import ListColumn
from pipeline.stages.tokenize.params import TokenizeParams
from pipeline.stages.tokenize.stage import pack_split, tokenize
from pipeline.stages.tokenize.vocabulary import Vocabulary, load_vocabulary
from pipeline.stages.verify.packed_rows import count_boundary_mismatches, count_documents_not_rebuilt
from pipeline.stages.verify.tokens import count_ids_out_of_range, count_misaligned_columns, count_special_ids
from pipeline.stages.verify.training_rows import count_chunk_starts_that_differ, count_training_rows_that_differ

PARAMS = TokenizeParams(vocabulary="tiny-1024", row_length=128)
BOS, EOS = 1, 2
Edit = Callable[[list[list[int]]], None]


@pytest.fixture(scope="module")
def tokens(enriched: pa.Table, vocabulary: Vocabulary) -> pa.Table:
    return tokenize(enriched, vocabulary)


@pytest.fixture(scope="module")
def packed(tokens: pa.Table, enriched: pa.Table) -> pa.Table:
    return pack_split(tokens, enriched, Split.TRAIN, (PARAMS, load_vocabulary("tiny-1024")))["packed_train.parquet"]


@pytest.fixture(scope="module")
def training(tokens: pa.Table, enriched: pa.Table) -> pa.Table:
    return pack_split(tokens, enriched, Split.TRAIN, (PARAMS, load_vocabulary("tiny-1024")))["rows_train.arrow"]


def _edited(table: pa.Table, column: str, edit: Edit) -> pa.Table:
    """The table with the lists of one column changed in place by `edit`."""
    lists = table[column].to_pylist()
    edit(lists)
    place = table.schema.get_field_index(column)
    return table.set_column(place, table.schema.field(column), pa.array(lists, table.schema.field(column).type))


def _shift_boundary(lists: list[list[int]]) -> None:
    """The first piece of the first row with two pieces keeps the first slot of the second."""
    row = next(values for values in lists if 2 in values)
    row[row.index(2)] = 1


def _set(row: int, slot: int, value: int) -> Edit:
    def edit(lists: list[list[int]]) -> None:
        lists[row][slot] = value

    return edit


def test_a_sound_table_has_no_offense(
    tokens: pa.Table, packed: pa.Table, training: pa.Table, vocabulary: Vocabulary
) -> None:
    assert count_boundary_mismatches(packed, 128, vocabulary.specials) == 0
    assert count_documents_not_rebuilt(tokens, {"train": packed}, BOS, EOS) == 0
    assert count_training_rows_that_differ(packed, training) == 0
    assert count_misaligned_columns(tokens) == 0


OFFENSES: dict[str, tuple[str, Edit]] = {
    "a shifted document boundary": ("doc_ids", _shift_boundary),
    "a loss on a target of the next document": ("loss_mask", lambda lists: lists[0].__setitem__(lists[0].index(0), 1)),
    "a masked token": ("loss_mask", _set(0, 0, 0)),
    "targets that are not the shift": ("target_ids", _set(0, 0, 99)),
    "a BOS inside a document": ("input_ids", _set(0, 3, 1)),
    "a missing BOS": ("input_ids", _set(0, 0, 99)),
    "an EOS inside a document": ("input_ids", _set(0, 3, 2)),
    "a sentinel of infilling in a stored row": ("input_ids", _set(0, 3, 4)),
    "an EOS where a piece starts": ("input_ids", _set(0, 0, 2)),
    "another last target": ("target_ids", lambda lists: lists[0].__setitem__(-1, 99)),
    "a token in the padding": ("input_ids", _set(0, 127, 99)),
    "a document length that is too long": (
        "source_doc_token_lengths",
        lambda lists: lists[0].__setitem__(0, lists[0][0] + 1),
    ),
}


@pytest.mark.parametrize("offense", OFFENSES)
def test_the_boundary_oracle_catches(offense: str, packed: pa.Table, vocabulary: Vocabulary) -> None:
    column, edit = OFFENSES[offense]
    assert count_boundary_mismatches(_edited(packed, column, edit), 128, vocabulary.specials) == 1


@pytest.mark.parametrize("count", ["num_docs", "valid_token_count", "trained_token_count", "slack_tokens"])
def test_the_boundary_oracle_catches_a_wrong_count(count: str, packed: pa.Table, vocabulary: Vocabulary) -> None:
    place = packed.schema.get_field_index(count)
    values = pa.array([value + 1 for value in packed[count].to_pylist()], pa.uint32())
    wrong = packed.set_column(place, packed.schema.field(count), values)
    assert count_boundary_mismatches(wrong, 128, vocabulary.specials) == packed.num_rows


def test_a_document_with_a_changed_lost_or_repeated_token_or_in_another_split_is_counted(
    tokens: pa.Table, packed: pa.Table
) -> None:
    num_documents = tokens.num_rows
    num_pieces = sum(packed["num_docs"].to_pylist())
    changed = _edited(packed, "input_ids", _set(0, 1, 999))
    assert count_documents_not_rebuilt(tokens, {"train": changed}, BOS, EOS) == 1
    assert count_documents_not_rebuilt(tokens, {}, BOS, EOS) == num_documents
    assert count_documents_not_rebuilt(tokens, {"train": pa.concat_tables([packed, packed])}, BOS, EOS) == num_pieces
    assert count_documents_not_rebuilt(tokens.slice(1), {"train": packed}, BOS, EOS) == 1
    assert count_documents_not_rebuilt(tokens, {"held_out": packed}, BOS, EOS) == packed.num_rows + 2 * num_documents


def test_ids_of_specials_or_past_the_vocabulary_are_counted(tokens: pa.Table, vocabulary: Vocabulary) -> None:
    assert count_special_ids(_edited(tokens, "input_ids", _set(2, 0, 15)), vocabulary.specials.values()) == 1
    assert count_special_ids(_edited(tokens, "input_ids", _set(2, 0, 16)), vocabulary.specials.values()) == 0
    assert count_ids_out_of_range(_edited(tokens, "input_ids", _set(2, 0, 1024)), vocabulary.size) == 1


@pytest.mark.parametrize("column", ["structure_kinds", "structure_levels"])
def test_a_column_of_another_length_is_counted(column: str, tokens: pa.Table) -> None:
    assert count_misaligned_columns(_edited(tokens, column, lambda lists: lists[4].pop())) == 1


def test_chunk_starts_past_the_tokens_or_out_of_order_are_counted(tokens: pa.Table) -> None:
    assert count_misaligned_columns(_edited(tokens, "chunk_starts", lambda lists: lists[0].append(60_000))) == 1
    assert count_misaligned_columns(_edited(tokens, "chunk_starts", lambda lists: lists[0].reverse())) == 1


@pytest.mark.parametrize(
    ("column", "edit"),
    [
        ("input_ids", _set(0, 5, 999)),
        ("lengths", _set(0, 0, 1)),
        ("piece_ids", _set(0, 0, 7)),
    ],
)
def test_a_training_row_unlike_its_packed_row_is_counted(
    column: str, edit: Edit, packed: pa.Table, training: pa.Table
) -> None:
    assert count_training_rows_that_differ(packed, _edited(training, column, edit)) == 1
    assert count_training_rows_that_differ(packed, training.slice(1)) == training.num_rows


@pytest.mark.parametrize("column", ["chunk_starts", "chunk_counts"])
def test_a_training_row_with_other_chunks_is_counted(
    column: str, tokens: pa.Table, packed: pa.Table, training: pa.Table
) -> None:
    specials = (0, BOS, EOS)
    assert count_chunk_starts_that_differ(tokens, packed, training, specials) == 0
    changed = _edited(training, column, lambda lists: lists[0].__setitem__(0, lists[0][0] + 1))
    assert count_chunk_starts_that_differ(tokens, packed, changed, specials) == 1


def test_training_rows_in_several_chunks_read_alike(packed: pa.Table, training: pa.Table) -> None:
    halves = pa.concat_tables([training.slice(0, 3), training.slice(3)])
    assert count_training_rows_that_differ(packed, halves) == 0
    assert np.array_equal(
        ListColumn.from_arrow(halves["lengths"]).values, ListColumn.from_arrow(training["lengths"]).values
    )
