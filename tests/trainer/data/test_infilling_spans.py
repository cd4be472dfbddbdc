"""Splits of pieces: each comes once, in the order of a walk over a list of all of them."""

from math import gcd

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.made.made_pieces import Infillable, pieces, pieces_of, total
from trainer.data.infilling_spans import split
from trainer.data.keyed_hash import keyed

SEEDS = st.integers(0, 2**63 - 1)


def walked(piece: Infillable, numbers: list[int], seed: int, chunk_rate: float = 0.9) -> list[tuple[int, int]]:
    """The splits of these numbers, all found at once."""
    flat = pieces_of(*([value] * len(numbers) for value in piece))
    return [
        (int(start), int(end)) for start, end in zip(*split(flat, np.array(numbers), seed, chunk_rate), strict=True)
    ]


def listed(piece: Infillable, number: int, seed: int, per_mille: int) -> tuple[int, int]:
    """The same by writing every split down: those at chunks and the others, each walked with a step."""
    places = range(piece.num_tokens + 1)
    spans = [(start, end) for start in places for end in places if start < end and end - start < piece.num_tokens]
    bounds = {0, piece.num_tokens, *piece.chunk_starts.tolist()}
    at_chunks = [span for span in spans if {*span} <= bounds]
    free = [span for span in spans if not {*span} <= bounds]
    phase = keyed(seed, 2, piece.identity) % 1000

    def num_free(count: int) -> int:
        return min(max((count * per_mille + phase) // 1000, count - len(at_chunks)), len(free))

    before = num_free(number)
    is_free = num_free(number + 1) > before
    kind, index = (free, before) if is_free else (at_chunks, number - before)
    key = keyed(seed, 4 if is_free else 3, piece.identity)
    step = 1 + (key >> 32) % len(kind)
    while gcd(step, len(kind)) > 1:
        step += 1
    return kind[(index * step + key % 2**32) % len(kind)]


@given(pieces(), SEEDS)
@settings(max_examples=100)
def test_every_split_comes_once_and_then_none(piece: Infillable, seed: int) -> None:
    found = walked(piece, list(range(total(piece) + 2)), seed)
    places = range(piece.num_tokens + 1)
    possible = {(start, end) for start in places for end in places if start < end} - {(0, piece.num_tokens)}
    assert set(found[:-2]) == possible
    assert len(found) - 2 == len(possible)
    assert found[-2:] == [(-1, -1), (-1, -1)]


@given(pieces(max_tokens=16), SEEDS, st.sampled_from([0.0, 0.5, 0.9, 1.0]))
@settings(max_examples=100)
def test_the_walk_is_that_over_a_list_of_all_splits(piece: Infillable, seed: int, chunk_rate: float) -> None:
    numbers = list(range(total(piece)))
    per_mille = round(1000 * (1 - chunk_rate))
    assert walked(piece, numbers, seed, chunk_rate) == [listed(piece, number, seed, per_mille) for number in numbers]


def test_the_longest_piece_of_the_longest_row_has_distinct_splits_to_the_end() -> None:
    piece = Infillable(7, 65_532, np.arange(0, 65_532, 70))
    last = total(piece)
    assert last == 65_532 * 65_533 // 2 - 1
    found = walked(piece, [*range(2000), *range(last - 2000, last), last], 1)
    assert len(set(found)) == 4001
    assert all(0 <= start < end <= 65_532 for start, end in found[:-1])
    assert found[-1] == (-1, -1)
