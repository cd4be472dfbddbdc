"""Dependence on neighbors in each preset's own configuration: experts of capacity 1.25, whose room all documents share."""

import pytest
import torch

from pipeline.build.recipes import ROOT
from tests.support.packing_dependence import (
    NUM_ROWS,
    ROW_LENGTH,
    balance,
    batch,
    model_of,
    run_recorded,
    scaled,
    worst_dependence,
)
from trainer.config.presets import PRESETS, preset
from trainer.model.blocks.experts import expert_capacity

MAX_CHANGED_AT_FIRST, MAX_CHANGED_BALANCED = 0.15, 0.03
"""Pairs (token, expert) that neighbors decide: of a model with its first weights, and with balanced experts."""
MAX_LOGITS_AT_FIRST, MAX_LOGITS_BALANCED = 0.6, 0.2
"""Root of the mean squared difference of a document's logits, over that of the logits."""

pytestmark = pytest.mark.slow


def test_the_documentation_states_these_bounds() -> None:
    text = " ".join((ROOT / "docs" / "model.md").read_text().split())

    assert (
        f"at most {MAX_CHANGED_AT_FIRST:.0%}".replace("%", " %") + " of a document's pairs with first weights" in text
    )
    assert f"and {MAX_CHANGED_BALANCED:.0%}".replace("%", " %") + " with balanced experts" in text
    assert f"at most {MAX_LOGITS_AT_FIRST} and {MAX_LOGITS_BALANCED} of their root mean square" in text
    assert all(f"| `{name}` |" in text.partition("What neighbors decide")[2] for name in PRESETS.names)


@pytest.mark.parametrize("name", PRESETS.names)
def test_the_scaled_preset_overflows_as_the_preset_does(name: str) -> None:
    part, own = scaled(name).experts, preset(name).experts
    decides = ("num_experts", "num_selected", "capacity_factor", "is_gated")

    assert [getattr(part, field) for field in decides] == [getattr(own, field) for field in decides]
    assert (scaled(name).pattern, scaled(name).depth) == (preset(name).pattern, preset(name).depth)
    num_pairs = NUM_ROWS * ROW_LENGTH * part.num_selected
    assert part.num_experts * expert_capacity(NUM_ROWS * ROW_LENGTH, part) == part.capacity_factor * num_pairs


@pytest.mark.parametrize("name", PRESETS.names)
def test_neighbors_decide_few_pairs_and_move_logits_within_the_published_bound(name: str) -> None:
    model = model_of(scaled(name))
    at_first = worst_dependence(model)
    balance(model)
    balanced = worst_dependence(model)

    assert at_first.changed_pair_fraction <= MAX_CHANGED_AT_FIRST
    assert at_first.logits_difference <= MAX_LOGITS_AT_FIRST
    assert balanced.changed_pair_fraction <= MAX_CHANGED_BALANCED
    assert balanced.logits_difference <= MAX_LOGITS_BALANCED
    assert at_first.overflow_fraction > 0.01, "the bound would be over nothing"
    assert at_first.changed_pair_fraction > 0, "no neighbor is seen to decide anything"


@pytest.mark.parametrize("name", PRESETS.names)
def test_no_bit_changes_before_the_first_pair_without_room(name: str) -> None:
    """Slots are given in the order of the batch, so that an overflow reaches no token before it."""
    model = model_of(scaled(name))
    ids_BT, other_ids_BT, doc_ids_BT = batch(0)
    first_row_B = torch.arange(NUM_ROWS) == 0
    is_kept_BT = first_row_B[:, None].expand_as(ids_BT) & (doc_ids_BT == doc_ids_BT[0].max())
    with torch.no_grad():
        runs = [
            run_recorded(model, torch.where(is_kept_BT, ids_BT, text_BT), doc_ids_BT)
            for text_BT in (ids_BT, other_ids_BT)
        ]
    lost_M = torch.stack(
        [(kept_ME.sum(1) < model.config.experts.num_selected) for _, kept in runs for kept_ME in kept]
    ).any(0)
    first_lost = int(lost_M.nonzero()[0]) if lost_M.any() else len(lost_M)
    is_before_BT = (torch.arange(len(lost_M)) < first_lost).view_as(ids_BT) & is_kept_BT

    assert is_before_BT.sum() == is_kept_BT.sum() > 0, "no token is before the first overflow"
    assert torch.equal(runs[0][0][is_before_BT], runs[1][0][is_before_BT])


def test_without_an_overflow_no_bit_changes() -> None:
    """Of as few tokens as fit in 128 slots: the configuration is the preset's, and the rounding gives room for all."""
    for name in PRESETS.names:
        model, (ids_BT, other_ids_BT, doc_ids_BT) = model_of(scaled(name)), batch(0)
        rows = slice(1, 2)
        ids_BT, other_ids_BT, doc_ids_BT = ids_BT[rows, :128], other_ids_BT[rows, :128], doc_ids_BT[rows, :128]
        own_BT = doc_ids_BT == doc_ids_BT.max()
        with torch.no_grad():
            first, second = (
                model(torch.where(own_BT, ids_BT, text_BT), doc_ids_BT) for text_BT in (ids_BT, other_ids_BT)
            )

        assert torch.equal(first[own_BT], second[own_BT]), name
        assert doc_ids_BT.max() > 1
