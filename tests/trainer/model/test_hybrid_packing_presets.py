"""Independence of neighbors in each preset's own configuration: what else is in a batch changes no bit of a document."""

import pytest
import torch

from tests.support.packing_dependence import batch, model_of, scaled
from trainer.config.presets import PRESETS, preset
from trainer.model.blocks.experts import Experts, choose_experts


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
