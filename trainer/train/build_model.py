"""The model of a training: compiled first, then sharded or moved to its device, then given its initial values."""

from dataclasses import dataclass
from typing import Any

import torch

from pipeline.core.errors import TrainingError
from trainer.compile.activation_checkpointing import checkpoint_activations
from trainer.config.choices import CompileMode
from trainer.config.training_config import TrainingConfig
from trainer.distributed.ranks import Ranks
from trainer.model.freezing import freeze
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize


@dataclass(frozen=True)
class DevicePlacement:
    """Placement of a training: its device, its ranks, and whether parameters and optimizer state are spread over them."""

    device: str = "cpu"
    ranks: Ranks = Ranks()  # noqa: RUF009  # frozen
    is_sharded: bool = False


CPU_PLACEMENT = DevicePlacement()


def build_model(
    config: TrainingConfig, vocabulary_size: int, seed: int, placement: DevicePlacement
) -> tuple[HybridModel, Any]:
    """Return the model, and its compilation or None. A sharded model is never whole on the device.

    Raises TrainingError where it cannot be sharded, frozen or checkpointed as declared.
    """
    if placement.is_sharded:
        from trainer.model.parallelize import require_shardable, shard

        require_shardable(placement.ranks, config.compile)
    if config.activation_checkpointing and config.compile is CompileMode.BUDGETED:
        found = "in `budgeted` all layers are one frame, and each layer is to be run again alone"
        remedy = "Train with --compile fullgraph or off."
        raise TrainingError("activation_checkpointing", found, "a frame a layer", remedy)
    model = HybridModel(config.model, vocabulary_size)
    freeze(model, config.frozen)
    model.dtype = getattr(torch, config.dtype)
    compilation = None
    if config.compile is not CompileMode.OFF:
        from trainer.compile.compile_policy import Compilation  # which loads the compiler, a second of every process

        compilation = Compilation(model, config.compile, config.compile_backend, config.deterministic)
    if config.activation_checkpointing:
        checkpoint_activations(model)
    if placement.is_sharded:
        shard(model, placement.ranks, placement.device)
    else:
        model.to(placement.device)
    initialize(model, seed)
    return model, compilation
