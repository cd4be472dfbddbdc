"""Documents that are commits of files: packed in runs of one file, and counted by the proof where they are not."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.contracts.training_row import NUM_SENTINELS
from pipeline.core.records import EnrichedDocument, Split
from pipeline.core.schema import table_of_records
from pipeline.stages.tokenize.columns.list_column import ListColumn
from pipeline.stages.tokenize.params import TokenizeParams
from pipeline.stages.tokenize.rows.pack import Documents, pack
from pipeline.stages.tokenize.stage import pack_split, tokenize
from pipeline.stages.tokenize.vocabulary import Vocabulary
from pipeline.stages.verify.packed_rows import count_commit_order_violations
from pipeline.stages.verify.training_rows import count_training_rows_that_differ

Commit = tuple[str | None, int, int]
"""File, index and number of tokens."""
COMMITS = st.lists(
    st.tuples(st.sampled_from([None, "f", "g"]), st.integers(0, 6), st.integers(0, 90)),
    max_size=16,
    unique_by=lambda commit: commit[:2] if commit[0] else object(),
)
PARAMS = TokenizeParams(vocabulary="tiny-1024", row_length=64, with_structure=True)


def rows_of(commits: list[Commit], row_length: int) -> list[list[tuple[int, int, int]]]:
    """Document, first and last token of each piece of each row."""
    none = ListColumn.of([[] for _ in commits], np.dtype(np.uint32))
    lengths = np.array([length for _, _, length in commits], dtype=np.int64)
    names = [f"{number:02d}" for number in range(len(commits))]
    files = [file for file, _, _ in commits]
    indices = np.array([index if file else -1 for file, index, _ in commits], dtype=np.int64)
    documents = Documents(names, lengths, none, none, np.arange(len(commits)), files, indices)
    rows = pack(documents, TokenizeParams(row_length=row_length))
    return [[(piece.document, piece.start, piece.end) for piece in row] for row in rows]


@given(COMMITS, st.integers(16, 80))
@settings(max_examples=100)
def test_a_row_mixes_only_consecutive_commits_of_one_file(commits: list[Commit], row_length: int) -> None:
    rows = rows_of(commits, row_length)
    for row in rows:
        assert len({commits[document][0] for document, _, _ in row}) == 1
        if commits[row[0][0]][0] is not None:
            steps = np.diff([commits[document][1] for document, _, _ in row])
            assert np.isin(steps, (0, 1)).all()
        assert sum(end - start + 1 + NUM_SENTINELS for _, start, end in row) <= row_length
    tokens = sorted((document, token) for row in rows for document, start, end in row for token in range(start, end))
    assert tokens == [(number, token) for number, (_, _, length) in enumerate(commits) for token in range(length)]


@pytest.fixture(scope="module")
def tables(vocabulary: Vocabulary, make_document: Callable[..., EnrichedDocument]) -> dict[str, pa.Table]:
    """Twelve short documents: two histories of four commits each, in any order, and four without chronology."""
    documents = []
    for number in range(12):
        document = make_document(number, [f"int value_{number};\n", "int other;\n"])
        if number < 8:
            document = replace(document, filepath_stable_id="fg"[number % 2], file_local_commit_index=3 - number // 2)
        documents.append(document)
    enriched = table_of_records(EnrichedDocument, documents)
    tokens = tokenize(enriched, vocabulary)
    return {"tokens": tokens, **pack_split(tokens, enriched, Split.TRAIN, (PARAMS, vocabulary))}


def test_commits_reach_the_hot_surface(tables: dict[str, pa.Table]) -> None:
    packed, hot = tables["packed_train.parquet"], tables["rows_train.arrow"]
    found = list(zip(*(packed[name].to_pylist() for name in COLUMNS), strict=True))
    dated = [row for row in found if row != (None, None)]
    assert {file: [index for name, indices in dated if name == file for index in indices] for file in "fg"} == {
        "f": [0, 1, 2, 3],
        "g": [0, 1, 2, 3],
    }
    assert hot["first_commit_index"].to_pylist() == [indices and indices[0] for _, indices in found]
    assert count_commit_order_violations(tables["tokens"], packed) == 0
    assert count_training_rows_that_differ(packed, hot) == 0


COLUMNS = ("filepath_stable_id", "file_local_commit_indices")


def planted(table: pa.Table, column: str, row: int, value: Any) -> pa.Table:
    values = table[column].to_pylist()
    values[row] = value
    place = table.column_names.index(column)
    return table.set_column(place, table.schema.field(column), pa.array(values, table.schema.field(column).type))


@pytest.mark.parametrize(
    ("column", "value"), [(COLUMNS[0], None), (COLUMNS[0], "h"), (COLUMNS[1], [1, 0]), (COLUMNS[1], None)]
)
def test_a_row_with_another_history_than_its_documents_is_counted(
    column: str, value: Any, tables: dict[str, pa.Table]
) -> None:
    packed = tables["packed_train.parquet"]
    row = next(row for row, file in enumerate(packed[COLUMNS[0]].to_pylist()) if file is not None)
    assert count_commit_order_violations(tables["tokens"], planted(packed, column, row, value)) == 1


def test_structure_in_the_hot_surface_is_that_of_the_tokens(tables: dict[str, pa.Table]) -> None:
    packed, hot, tokens = tables["packed_train.parquet"], tables["rows_train.arrow"], tables["tokens"]
    names = tokens["document_id"].to_pylist()
    for column in ("structure_kinds", "structure_levels"):
        of_document = dict(zip(names, tokens[column].to_pylist(), strict=True))
        for documents, lengths, slots in zip(
            packed["source_doc_ids"].to_pylist(),
            packed["source_doc_token_lengths"].to_pylist(),
            hot[column].to_pylist(),
            strict=True,
        ):
            expected = [value for name in documents for value in (0, *of_document[name], 0)]
            assert sum(lengths) == len(expected)
            assert slots == expected + [0] * (64 - len(expected))


def test_structure_is_not_written_unless_it_is_requested(vocabulary: Vocabulary, enriched: pa.Table) -> None:
    tokens = tokenize(enriched, vocabulary)
    hot = pack_split(tokens, enriched, Split.TRAIN, (TokenizeParams(vocabulary="tiny-1024"), vocabulary))
    assert hot["rows_train.arrow"]["structure_kinds"].null_count == hot["rows_train.arrow"].num_rows
