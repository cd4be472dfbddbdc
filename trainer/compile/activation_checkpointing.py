"""Activation checkpointing: each layer keeps its input alone, and is run again when its gradients are computed.

A layer is the same function of its input both times, so that the bits are those of a training that keeps everything. Compile
a model first, and shard it after: the second run is that of the layer's own graph, with its parameters gathered once.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import unwrap
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import checkpoint

from trainer.model.blocks.experts import Experts
from trainer.model.hybrid import HybridModel
from trainer.model.segments import PackedRows

# Without the decorator that loads torch's compiler at the first call.
_run_again = unwrap(checkpoint.checkpoint)


def checkpoint_activations(model: HybridModel) -> None:
    """Keep of each layer its input alone while training; the model is changed in place."""
    for layer in model.layers:
        layer.forward = _Checkpointed(layer, layer.forward)


@contextmanager
def counted_once(model: HybridModel) -> Iterator[None]:
    """Leave the experts' counters as they are at the start: a layer that is run again counts its tokens again."""
    blocks = [layer.block for layer in model.layers if isinstance(layer.forward, _Checkpointed)]
    before = [(block, block.counters()) for block in blocks if isinstance(block, Experts)]
    yield
    for block, counters in before:
        for name, value in counters._asdict().items():
            getattr(block, name).copy_(value)


@dataclass(eq=False)
class _Checkpointed:
    """The forward pass of a layer, of which a pass with gradients keeps the inputs."""

    layer: nn.Module
    forward: Callable[..., Any]

    def __call__(self, hidden_BTD: Tensor, rows: PackedRows) -> Any:
        if not (self.layer.training and torch.is_grad_enabled()):
            return self.forward(hidden_BTD, rows)
        options = {"use_reentrant": False, "preserve_rng_state": False, "determinism_check": "none"}
        return _run_again(self.forward, hidden_BTD, rows, **options)
