"""Checks of a model in this process: token-by-token decoding, and the construction without a branch that is off."""

import torch
from torch import Tensor

from pipeline.store.store import Store
from trainer.checkpoint.checkpoint import load
from trainer.config.model import ModelConfig
from trainer.config.presets import preset
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize
from trainer.model.segments import derive_segments
from trainer.proof.rerun import start_again

_SEED = 42


def decoding_error(store: Store, checkpoint_id: str, num_rows: int = 2) -> tuple[float, int]:
    """Return the `decoding_difference` of a checkpoint in float64 over the first rows, and the number of their tokens."""
    checkpoint = load(store, checkpoint_id)
    training = start_again(store, checkpoint)
    training.restore(checkpoint)
    batch = training.loader.batch_at(0, num_rows)
    ids_BT, documents_BT = (torch.from_numpy(array) for array in (batch.input_ids_BT, batch.doc_ids_BT))
    return decoding_difference(training.model.eval().double(), ids_BT, documents_BT), ids_BT.numel()


@torch.no_grad()
def decoding_difference(model: HybridModel, input_ids_BT: Tensor, doc_ids_BT: Tensor) -> float:
    """Return the largest difference of scores decoded token by token to those of the full pass, over the largest score.

    Padding is left out. Pass a model in float64 to exclude rounding errors.
    """
    expected_BTV = model.logits(model(input_ids_BT, doc_ids_BT))
    segments = derive_segments(doc_ids_BT)
    state, steps = model.initial_state(len(input_ids_BT)), []
    for ids_B, is_start_B in zip(input_ids_BT.unbind(1), segments.document_starts_BT.unbind(1), strict=True):
        hidden_BD, state = model.step(ids_B, state, is_start_B)
        steps.append(model.logits(hidden_BD))
    differences_BTV = (torch.stack(steps, dim=1) - expected_BTV).abs()
    return float(differences_BTV[~segments.is_padding_BT].max() / expected_BTV.abs().max())


def changes_without_engram() -> tuple[list[str], list[str], int]:
    """Build the smallest model with and without its Engram branch.

    Return the tensors of the branch that are left, those whose initial values differ, and how many there are without it.
    """
    models = [HybridModel(config, 1024) for config in (preset("tiny"), with_engram(preset("tiny")))]
    for model in models:
        initialize(model, _SEED)
    whole, found = (model.state_dict() for model in models)
    left = [name for name in found if "engram" in name or not any("engram" in known for known in whole)]
    return left, [name for name in found if not torch.equal(whole[name], found[name])], len(found)


def with_engram(config: ModelConfig, *layers: int) -> ModelConfig:
    """Return a configuration whose layers of these numbers, and no others, have an Engram branch."""
    engram = config.attention.engram.model_copy(update={"layers": layers})
    return config.model_copy(update={"attention": config.attention.model_copy(update={"engram": engram})})
