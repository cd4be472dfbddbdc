"""Infilling: every split once, rates as configured, and the two forms of the papers."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.made.made_pieces import Infillable, pieces, pieces_of, total
from trainer.config.training_config import InfillingParams
from trainer.data.infilling import Form, Infilling, Sentinels, infill, remap_ids, source_slots
from trainer.data.keyed_hash import keyed, mix

PARAMS = InfillingParams()
ALWAYS = InfillingParams(rate=1)
SENTINELS = Sentinels(prefix=3, middle=4, suffix=5, eos=2)
SEEDS = st.integers(0, 2**63 - 1)


def decide(piece: Infillable, epoch: int, seed: int, params: InfillingParams) -> Infilling | None:
    """Return the infilling of one piece in an epoch, counted from 1; None: it stays plain."""
    return decide_all([piece], epoch, seed, params)[0]


def decide_all(pieces: Sequence[Infillable], epoch: int, seed: int, params: InfillingParams) -> list[Infilling | None]:
    """Return the infillings of several pieces in one epoch."""
    flat = pieces_of(*([getattr(piece, name) for piece in pieces] for name in Infillable._fields))
    infillings = infill(flat, np.full(len(pieces), epoch), seed, params)
    return [
        Infilling(Form.SPM if is_spm else Form.PSM, int(start), int(end)) if start >= 0 else None
        for start, end, is_spm in zip(*infillings, strict=True)
    ]


@st.composite
def decisions(draw: st.DrawFn) -> tuple[Infilling, int, bool]:
    """An infilling, the slots of its plain piece, and whether that ends with EOS."""
    num_tokens = draw(st.integers(2, 30))
    start = draw(st.integers(0, num_tokens - 1))
    has_eos = draw(st.booleans())
    infilling = Infilling(draw(st.sampled_from(Form)), start, draw(st.integers(start + 1, num_tokens)))
    return infilling, 1 + num_tokens + has_eos, has_eos


@pytest.mark.parametrize("num_tokens", [0, 1])
def test_a_piece_of_no_or_one_token_stays_plain(num_tokens: int) -> None:
    assert decide(Infillable(1, num_tokens, np.array([], dtype=np.int64)), 1, 0, ALWAYS) is None


@given(pieces(max_tokens=4), SEEDS)
@settings(max_examples=60)
def test_no_two_epochs_share_a_split_and_used_up_pieces_stay_plain(piece: Infillable, seed: int) -> None:
    made = [decide(piece, epoch, seed, ALWAYS) for epoch in range(1, 16)]
    splits = [(infilling.start, infilling.end) for infilling in made if infilling]
    assert len(splits) == len(set(splits)) == min(15, total(piece))
    assert all(infilling is None for infilling in made[len(splits) :])


def test_a_decision_depends_on_seed_epoch_and_identity_alone() -> None:
    many = [Infillable(identity, 50, np.array([0, 10, 30])) for identity in range(40)]
    alone = [decide(piece, 3, 7, PARAMS) for piece in many]
    assert decide_all(many, 3, 7, PARAMS) == alone
    assert decide_all(many[::-1], 3, 7, PARAMS) == alone[::-1]
    assert decide_all(many, 3, 8, PARAMS) != alone
    assert decide_all(many, 4, 7, PARAMS) != alone


def test_shares_are_near_the_rates() -> None:
    many = [Infillable(keyed(identity), 200, np.arange(0, 200, 20)) for identity in range(4000)]
    made = [infilling for infilling in decide_all(many, 5, 1, PARAMS) if infilling]
    at_chunks = [infilling for infilling in made if infilling.start % 20 == 0 == infilling.end % 20]
    assert len(made) / 4000 == pytest.approx(0.5, abs=0.03)
    assert sum(infilling.form is Form.SPM for infilling in made) / len(made) == pytest.approx(0.5, abs=0.04)
    assert len(at_chunks) / len(made) == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_a_rate_of_none_or_all_is_exact(rate: float) -> None:
    many = [Infillable(identity, 50, np.array([0, 10, 30])) for identity in range(500)]
    made = decide_all(many, 1, 0, InfillingParams(rate=rate))
    assert sum(infilling is not None for infilling in made) == 500 * rate


@given(decisions())
def test_without_sentinels_and_in_order_the_piece_is_the_plain_one(decision: tuple[Infilling, int, bool]) -> None:
    infilling, num_slots, has_eos = decision
    slots = source_slots(infilling, num_slots, has_eos)
    assert len(slots) == num_slots + 3
    assert sorted(slots[slots >= 0]) == list(range(num_slots))
    ids = np.arange(100, 100 + num_slots, dtype=np.uint16)
    filled = remap_ids(ids, slots, SENTINELS)
    assert sorted(filled.tolist()) == sorted([*ids.tolist(), *SENTINELS[:3]])
    prefix, middle, suffix = _parts(filled.tolist(), infilling, has_eos)
    assert [filled[0], *prefix, *middle, *suffix] == ids[: num_slots - has_eos].tolist()
    assert middle == ids[1 + infilling.start : 1 + infilling.end].tolist()
    assert filled[-1] == ids[-1] or not has_eos


def _parts(filled: list[int], infilling: Infilling, has_eos: bool) -> tuple[list[int], list[int], list[int]]:
    """Prefix, middle and suffix, read by the sentinels as a consumer would; SPM shows the prefix at the start of the
    middle.
    """
    filled = filled[: len(filled) - has_eos]
    at_suffix, at_middle = filled.index(SENTINELS.suffix), filled.index(SENTINELS.middle)
    prefix, suffix, middle = filled[2:at_suffix], filled[at_suffix + 1 : at_middle], filled[at_middle + 1 :]
    if infilling.form is Form.SPM:
        assert prefix == []
        prefix, middle = middle[: infilling.start], middle[infilling.start :]
    return prefix, middle, suffix


def test_the_two_forms_are_those_of_the_papers() -> None:
    ids = np.array([1, 10, 11, 12, 13, 2])
    psm, spm = (
        remap_ids(ids, source_slots(Infilling(form, 1, 3), 6, has_eos=True), SENTINELS).tolist() for form in Form
    )
    assert psm == [1, 3, 10, 5, 13, 4, 11, 12, 2]
    assert spm == [1, 3, 5, 13, 4, 10, 11, 12, 2]


def test_mixing_an_int_and_an_array_agree() -> None:
    words = [0, 1, 2**63, 2**64 - 1, 0xDEADBEEF]
    assert mix(np.array(words, dtype=np.uint64)).tolist() == [mix(word) for word in words]
    assert mix(0) == 0xE220A8397B1DCDAF  # the first output of SplitMix64 with seed 0
