"""Alignment of tokens with chunks, extents and lines."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipeline.stages.tokenize.columns.align import align_extents, align_starts, align_values, line_starts
from pipeline.stages.tokenize.encode import Encoder
from pipeline.stages.tokenize.vocabulary import Vocabulary

LENGTHS = st.lists(st.integers(0, 6), max_size=12)


def _starts(lengths: list[int]) -> np.ndarray:
    return np.cumsum([0, *lengths])[:-1].astype(np.int64) if lengths else np.empty(0, np.int64)


@given(LENGTHS, st.lists(st.integers(1, 4), min_size=1, max_size=40))
def test_a_token_has_the_value_of_the_chunk_that_owns_its_first_byte(
    chunk_lengths: list[int], token_lengths: list[int]
) -> None:
    chunk_starts, token_starts = _starts(chunk_lengths), _starts(token_lengths)
    values = np.arange(1, len(chunk_starts) + 1, dtype=np.uint8)
    owner = [number for number, length in enumerate(chunk_lengths, start=1) for _ in range(length)]
    last = max((number for number, length in enumerate(chunk_lengths, start=1)), default=0)
    expected = [owner[byte] if byte < len(owner) else last for byte in token_starts]
    assert align_values(values, chunk_starts, token_starts).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=12), st.lists(st.integers(1, 4), max_size=40))
def test_a_token_has_the_value_of_the_extent_around_its_first_byte_and_none_outside(
    extents: list[tuple[int, int]], token_lengths: list[int]
) -> None:
    by_byte: list[int] = []
    starts, ends = [], []
    for value, (gap, length) in enumerate(extents, start=1):
        starts.append(len(by_byte) + gap)
        by_byte += [0] * gap + [value] * length
        ends.append(len(by_byte))
    token_starts = _starts(token_lengths)
    values = np.arange(1, len(starts) + 1, dtype=np.uint64)
    expected = [by_byte[byte] if byte < len(by_byte) else 0 for byte in token_starts]
    found = align_extents(values, (np.array(starts, np.uint32), np.array(ends, np.uint32)), token_starts)
    assert (found.tolist(), found.dtype) == (expected, np.uint64)


@given(LENGTHS, st.lists(st.integers(1, 4), max_size=40))
def test_chunk_starts_are_the_first_tokens_at_or_after_the_chunk(
    chunk_lengths: list[int], token_lengths: list[int]
) -> None:
    chunk_starts, token_starts = _starts(chunk_lengths), _starts(token_lengths)
    expected = {
        next((index for index, start in enumerate(token_starts) if start >= chunk), None)
        for chunk in chunk_starts.tolist()
    } - {None}
    assert align_starts(chunk_starts, token_starts).tolist() == sorted(expected)


def test_a_token_across_an_edge_belongs_to_the_chunk_before() -> None:
    values = align_values(np.array([3, 7], np.uint8), np.array([0, 5]), np.array([0, 4, 8]))
    assert values.tolist() == [3, 3, 7]
    assert align_starts(np.array([0, 5]), np.array([0, 4, 8])).tolist() == [0, 2]


def test_lines_start_after_tokens_that_end_a_line(enriched: pa.Table, vocabulary: Vocabulary) -> None:
    texts = [*enriched["text"].to_pylist()[:6], "", "no end", "a\n\n  b\n", ""]
    ids = Encoder(vocabulary).encode_all(texts)
    found = line_starts(ids, vocabulary.ends_line)
    assert len(found) == len(texts)
    for index in range(len(texts)):
        values = ids[index].tolist()
        before = [vocabulary.decode_bytes(values[:place]) for place in range(len(values) + 1)]
        assert found[index].tolist() == [place for place, text in enumerate(before) if text.endswith(b"\n")]
