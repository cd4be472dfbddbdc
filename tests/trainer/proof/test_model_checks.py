"""Checks of a model: decoding against the full pass, and a model without a branch."""

import pytest
import torch

from trainer.config.presets import preset
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize
from trainer.proof import model_checks
from trainer.proof.model_checks import changes_without_engram, decoding_difference


def test_decoding_equals_the_full_pass_and_a_fault_in_it_is_seen() -> None:
    ids_BT = torch.randint(0, 64, (2, 20), generator=torch.Generator().manual_seed(0))
    doc_ids_BT = torch.tensor([[1] * 7 + [2] * 10 + [-1] * 3, [1] * 20])
    exact = HybridModel(preset("tiny"), 64)
    initialize(exact, seed=0)
    with torch.no_grad():
        exact.embedding_VD.mul_(20)
    exact.eval().double()

    assert decoding_difference(exact, ids_BT, doc_ids_BT) < 1e-6, "rotary angles are float32"
    exact.step = lambda ids_B, state, is_start_B: HybridModel.step(exact, ids_B, state)  # type: ignore[method-assign]
    assert decoding_difference(exact, ids_BT, doc_ids_BT) > 1e-4


def test_a_branch_that_changes_the_values_of_others_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    left, moved, count = changes_without_engram()
    assert (left, moved, count > 10) == ([], [], True)

    def in_order_of_layers(model: HybridModel, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, generator=generator)

    monkeypatch.setattr(model_checks, "initialize", in_order_of_layers)
    assert changes_without_engram()[1]
