"""The mixture: samples in proportion at every position, and quotas in the smallest integers."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.data.mixture import MAX_CYCLE, Mixture, quotas

AMOUNTS = st.lists(st.fractions(min_value=Fraction(1, 4), max_value=300, max_denominator=4), min_size=1, max_size=8)


def drawn_at(mixture: Mixture, position: int) -> tuple[int, int]:
    """Return the source and the sample number at one position."""
    source, number = mixture.draw(position, 1)
    return int(source[0]), int(number[0])


@given(AMOUNTS)
@settings(max_examples=40)
def test_every_prefix_is_within_one_sample_of_its_share(amounts: list[Fraction]) -> None:
    mixture = Mixture(amounts)
    counts = np.zeros(len(amounts), dtype=np.int64)
    for position in range(mixture.cycle + 5):
        source, number = drawn_at(mixture, position)
        assert number == counts[source]
        counts[source] += 1
        # |count - share| < 1, in integers: both sides times the cycle.
        assert (np.abs(counts * mixture.cycle - (position + 1) * np.array(mixture.quotas)) < mixture.cycle).all()


@given(AMOUNTS)
def test_quotas_are_the_smallest_integers_in_proportion(amounts: list[Fraction]) -> None:
    found = quotas(amounts)
    assert np.gcd.reduce(found) == 1
    assert all(quota * amounts[0] == found[0] * amount for quota, amount in zip(found, amounts, strict=True))


def test_a_position_far_away_is_found_at_once() -> None:
    mixture = Mixture([Fraction(3), Fraction(5)])
    (source, near), (later_source, far) = drawn_at(mixture, 6), drawn_at(mixture, 6 + 8 * 10**12)
    assert (later_source, far) == (source, near + 10**12 * mixture.quotas[source])


def test_a_cycle_too_long_to_lay_out_is_rounded_and_no_source_is_lost() -> None:
    amounts = [Fraction(10**9 + 7), Fraction(10**8 + 9), Fraction(1)]
    found = quotas(amounts)
    assert sum(found) == MAX_CYCLE
    assert found[2] == 1
    assert found[0] / MAX_CYCLE == pytest.approx(float(amounts[0] / sum(amounts)), abs=2 / MAX_CYCLE)


@pytest.mark.parametrize("amounts", [[], [Fraction(0)], [Fraction(1), Fraction(-1)]])
def test_amounts_of_nothing_are_refused(amounts: list[Fraction]) -> None:
    with pytest.raises(ValueError, match="above zero"):
        Mixture(amounts)
