"""Diagnosis of a step that is not finite: the name of its first such tensor. It costs one more forward pass.

Weights are checked first, then the outputs of modules in the order in which they end, then gradients in the order of the backward
pass: a value that is not finite spreads in this order only.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from trainer.data.batch import Batch
from trainer.distributed.shards import release, whole
from trainer.model.hybrid import HybridModel
from trainer.train.step import to_device


def first_not_finite(
    model: HybridModel, batch: Batch, num_micro_batches: int, device: str, is_compiled: bool = False
) -> str | None:
    """Return the name of the first tensor that is not finite: "weight of ...", "output of ...", "loss" or "gradient of ...".

    "gradient norm" if every gradient is finite and their squares overflow. A compiled model is not run again, since that would
    compile. Every rank of a sharded one must call this, and gets the same name. The caller resets the experts' counters.
    """
    for name, parameter in model.named_parameters():
        if not _is_finite(whole(parameter)):
            return f"weight of {name}"
    found = None if is_compiled else _first_output(model, batch, num_micro_batches, device)
    return found or _first_gradient(model) or "gradient norm"


def _first_gradient(model: nn.Module) -> str | None:
    """Return the first such gradient, from the last layer on."""
    named = [(name, parameter.grad) for name, parameter in model.named_parameters() if parameter.grad is not None]
    return next((f"gradient of {name}" for name, gradient in reversed(named) if not _is_finite(whole(gradient))), None)


def _first_output(model: HybridModel, batch: Batch, num_micro_batches: int, device: str) -> str | None:
    found: list[str] = []

    def check(name: str, module: nn.Module, arguments: Any, output: Any) -> None:
        if not found and not _is_finite(output):
            found.append(f"output of {name}")

    hooks = [module.register_forward_hook(partial(check, name)) for name, module in model.named_modules() if name]
    rows = len(batch.input_ids_BT) // num_micro_batches
    try:
        with torch.no_grad():
            for place in range(num_micro_batches):
                loss, _ = model.loss(to_device(batch, device, slice(place * rows, (place + 1) * rows)))
                if found or not _is_finite(loss):
                    return found[0] if found else "loss"
    except torch.OutOfMemoryError:  # the gradients may still name one
        return None
    finally:
        for hook in hooks:
            hook.remove()
        release(model)
    return None


def _is_finite(value: Any) -> bool:
    """Return whether all floating-point numbers in a tensor, or in a tuple of tensors, are finite."""
    if isinstance(value, tuple | list):
        return all(_is_finite(each) for each in value)
    return not isinstance(value, Tensor) or not value.is_floating_point() or bool(torch.isfinite(value).all())
