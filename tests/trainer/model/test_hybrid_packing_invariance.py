"""Other documents of a batch change no bit of a document, in each preset's own configuration too."""

import pytest
import torch

from tests.support.packing_dependence import batch, model_of, scaled
from trainer.config.presets import PRESETS, preset
from trainer.model.blocks.experts import Experts, choose_experts
from trainer.model.hybrid import HybridModel

VOCABULARY, NUM_TOKENS = 300, 64
LENGTHS = [[20, 31, 13], [64], [1, 2, 50]]


def tiny_model(shaken) -> HybridModel:
    return shaken(HybridModel(preset("tiny"), VOCABULARY)).eval()


def test_a_change_in_one_document_changes_no_bit_of_another(shaken, doc_ids_from) -> None:
    model, doc_ids_BT = tiny_model(shaken), doc_ids_from(LENGTHS, NUM_TOKENS)
    generator = torch.Generator().manual_seed(0)
    ids_BT, other_BT = (torch.randint(0, VOCABULARY, doc_ids_BT.shape, generator=generator) for _ in range(2))
    with torch.no_grad():
        before_BTD = model(ids_BT, doc_ids_BT)
        for row in range(len(LENGTHS)):
            for document in doc_ids_BT[row].unique().tolist():
                is_changed_BT = (doc_ids_BT == document) & (torch.arange(len(LENGTHS)) == row)[:, None]
                after_BTD = model(torch.where(is_changed_BT, other_BT, ids_BT), doc_ids_BT)

                assert not torch.equal(before_BTD[is_changed_BT], after_BTD[is_changed_BT])
                assert torch.equal(before_BTD[~is_changed_BT], after_BTD[~is_changed_BT]), (row, document)


def test_with_the_capacity_of_budgeted_training_the_promise_does_not_hold(shaken, doc_ids_from, monkeypatch) -> None:
    """So that the test above is known to see a slot lost to a neighbor. In evaluation there is no capacity."""
    model, doc_ids_BT = tiny_model(shaken), doc_ids_from([[32, 32]], NUM_TOKENS)
    monkeypatch.setattr("trainer.model.blocks.experts.expert_capacity", lambda *_: 16)
    for layer in model.layers:
        layer.block.has_capacity = True
    ids_BT = torch.randint(0, VOCABULARY, doc_ids_BT.shape, generator=torch.Generator().manual_seed(0))

    def is_unchanged() -> bool:
        before_BTD = model(ids_BT, doc_ids_BT)
        after_BTD = model(torch.where(doc_ids_BT == 1, (ids_BT + 7) % VOCABULARY, ids_BT), doc_ids_BT)
        return torch.equal(before_BTD[doc_ids_BT == 2], after_BTD[doc_ids_BT == 2])

    with torch.no_grad():
        assert is_unchanged()
        model.train()
        assert not is_unchanged()


@pytest.mark.parametrize("name", PRESETS.names)
def test_no_bit_of_a_document_depends_on_what_else_is_in_the_batch(name: str) -> None:
    """The last document of each row: beside its neighbors, beside others, and with padding in their place."""
    assert scaled(name).experts.num_experts == preset(name).experts.num_experts
    assert scaled(name).layer_kinds == preset(name).layer_kinds
    model, (ids_BT, other_ids_BT, doc_ids_BT) = model_of(scaled(name)), batch(0)
    own_BT = doc_ids_BT == doc_ids_BT.max(dim=1, keepdim=True).values

    with torch.no_grad():
        packed_BTD = model(ids_BT, doc_ids_BT)
        changed_BTD = model(torch.where(own_BT, ids_BT, other_ids_BT), doc_ids_BT)
        alone_BTD = model(torch.where(own_BT, ids_BT, 0), torch.where(own_BT, doc_ids_BT, -1))

    assert torch.equal(packed_BTD[own_BT], changed_BTD[own_BT])
    assert torch.equal(packed_BTD[own_BT], alone_BTD[own_BT])
    assert not torch.equal(packed_BTD[~own_BT], changed_BTD[~own_BT])


def test_the_batch_fills_experts_beyond_any_even_share() -> None:
    """So that the test above is known to see a pair that a limit of room would drop."""
    model, (ids_BT, _, doc_ids_BT) = model_of(scaled("small")), batch(0)
    loads = []
    for layer in model.layers:
        if isinstance(layer.block, Experts):
            layer.block.register_forward_pre_hook(
                lambda block, inputs: loads.append(
                    choose_experts(
                        inputs[0].flatten(0, 1) @ block.router_ED.t(), block.selection_bias_E, block.config.num_selected
                    )[0]
                    .flatten()
                    .bincount(minlength=block.config.num_experts)
                )
            )
    with torch.no_grad():
        model(ids_BT, doc_ids_BT)

    assert max(float(load_E.max() / load_E.float().mean()) for load_E in loads) > 1.25
