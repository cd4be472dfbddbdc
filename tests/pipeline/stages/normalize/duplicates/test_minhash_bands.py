"""Buckets and components, held against all pairs and a union-find in plain Python."""

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pipeline.stages.normalize.duplicates.minhash_bands import find_buckets


def rows_of(table: list[list[int]]) -> NDArray[np.uint32]:
    """Signatures whose band b repeats table[row][b]: small numbers, so that many agree. The last four are in no band."""
    bands = np.repeat(np.array(table, np.uint32).reshape(-1, 42), 6, axis=1)
    return np.hstack([bands, np.zeros((len(bands), 4), np.uint32)])


def all_pairs(signatures: NDArray[np.uint32]) -> list[tuple[int, int]]:
    return [
        (first, second)
        for first, second in combinations(range(len(signatures)), 2)
        if any((signatures[first, at : at + 6] == signatures[second, at : at + 6]).all() for at in range(0, 252, 6))
    ]


def found_pairs(signatures: NDArray[np.uint32]) -> list[tuple[int, int]]:
    partners = find_buckets(signatures).later_partners()
    return sorted((row, other) for row, others in partners for other in others.tolist())


def components(num_rows: int, pairs: list[tuple[int, int]]) -> list[list[int]]:
    names = list(range(num_rows))
    for first, second in pairs:
        old, new = sorted((names[first], names[second]), reverse=True)
        names = [new if name == old else name for name in names]
    groups = [[row for row, name in enumerate(names) if name == root] for root in range(num_rows)]
    return [group for group in groups if len(group) > 1]


# Values in few bands, the rest distinct: pairs, stars, chains and big buckets all occur.
SIGNATURES = st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), max_size=24).map(
    lambda rows: rows_of([row + [100 + index * 39 + band for band in range(39)] for index, row in enumerate(rows)])
)


@settings(max_examples=30)
@given(SIGNATURES)
def test_partners_are_the_pairs_that_agree_in_a_band_component_by_component(signatures: NDArray[np.uint32]) -> None:
    pairs = all_pairs(signatures)
    assert found_pairs(signatures) == pairs
    wanted = [row for group in components(len(signatures), pairs) for row in group]
    assert find_buckets(signatures).rows.tolist() == wanted


def test_six_equal_values_in_different_bands_do_not_make_a_candidate() -> None:
    signatures = np.arange(4 * 256, dtype=np.uint32).reshape(4, 256)
    signatures[2, 6:12] = signatures[0, 6:12]
    signatures[3, 4:10] = signatures[1, 4:10]
    assert found_pairs(signatures) == [(0, 2)]


def test_nothing_shares_nothing() -> None:
    assert found_pairs(np.empty((0, 256), np.uint32)) == []
    assert found_pairs(np.arange(512, dtype=np.uint32).reshape(2, 256)) == []


def test_a_bucket_of_many_copies_is_held_once_and_not_as_its_pairs() -> None:
    buckets = find_buckets(np.ones((20_000, 256), np.uint32))
    assert len(buckets.members) == len(buckets.rows) == 20_000


def test_a_row_that_is_out_by_its_turn_has_no_partners() -> None:
    out: set[int] = set()
    walked = []
    for row, others in find_buckets(np.ones((50, 256), np.uint32)).later_partners(out.__contains__):
        walked.append((row, len(others)))
        out.update(others.tolist()[:-1])
    assert walked == [(0, 49), (49, 0)]


def test_a_long_chain_is_one_component() -> None:
    signatures = np.arange(5_000 * 256, dtype=np.uint32).reshape(5_000, 256)
    for row in range(1, 5_000):
        band = slice(6 * (row % 2), 6 * (row % 2) + 6)
        signatures[row, band] = signatures[row - 1, band]
    assert find_buckets(signatures).rows.tolist() == list(range(5_000))
