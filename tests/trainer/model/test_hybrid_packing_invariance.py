"""Other documents of a batch change no bit of a document."""

import torch

from trainer.config.presets import preset
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
