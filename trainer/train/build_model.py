"""A training's model where it is to lie: compiled first, then sharded or moved, then given its initial values."""

from collections.abc import Callable
from typing import Any

import torch

from trainer.config.model import CompileMode
from trainer.config.training import TrainingConfig
from trainer.distributed.ranks import Ranks
from trainer.model.attention_backends import plan
from trainer.model.document_attention import AttentionPlan
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize


def assemble(
    config: TrainingConfig, vocabulary_size: int, seed: int, ranks: Ranks, device: str, is_sharded: bool = False
) -> tuple[HybridModel, Any]:
    """The model, and its compilation or None. A sharded one never lies whole on the device.

    Raises TrainingError where it cannot be sharded.
    """
    if is_sharded:
        from trainer.model.parallelize import require_shardable, shard

        require_shardable(ranks, config.compile)
    model = HybridModel(config.model, vocabulary_size)
    model.dtype = getattr(torch, config.dtype)
    compilation = _compiled(model, config)
    if is_sharded:
        shard(model, ranks, device)
    else:
        model.to(device)
    initialize(model, seed)
    return model, compilation


def plan_attention(config: TrainingConfig, device: str, max_documents: Callable[[], int]) -> AttentionPlan:
    """Plan the attention of a training for rows of at most `max_documents`, which is called only where it matters."""
    return plan(config.attention, config.model.attention.head_size, config.dtype, device, max_documents)


def compile_words(config: TrainingConfig) -> str | None:
    """What the kernel manifest says of compilation; nothing where nothing is compiled."""
    return None if config.compile is CompileMode.OFF else f"{config.compile}, {config.compile_backend}"


def _compiled(model: HybridModel, config: TrainingConfig) -> Any:
    """The model's compilation, or None. Its module loads the compiler, a second of every process."""
    if config.compile is CompileMode.OFF:
        return None
    from trainer.compile.policy import Compilation

    return Compilation(model, config.compile, config.compile_backend, config.deterministic)
