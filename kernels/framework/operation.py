"""Registration of custom operations: the function with its fake, the function on a CPU, and the gradients."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.library import CustomOpDef
from torch.utils import _pytree as pytree

IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {}
"""The function of each operation, by its qualified name: what it allocates is seen where it is called by itself."""


def operation(fake: Callable[..., Any], schema: str | None = None) -> Callable[[Callable[..., Any]], CustomOpDef]:
    """Return a decorator that registers a function `NAME_op` as `sluice::NAME`; `fake` returns empty outputs like its own.

    The schema is that of the annotations unless given. For CPU tensors the function is registered itself, without the wrapper
    that torch puts around it, which loads the compiler at the first call, for a second, and checks aliases at each call.
    Compiled code is the same: the compiler does not trace into an operation.
    """

    def register(function: Callable[..., Any]) -> CustomOpDef:
        name = f"sluice::{function.__name__.removesuffix('_op')}"
        registered = torch.library.custom_op(name, function, mutates_args=(), schema=schema)
        registered.register_fake(fake)
        torch.library.impl(name, "CPU", function)
        IMPLEMENTATIONS[name] = function
        return registered

    return register


def empty_like(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return an empty contiguous tensor for each of these: the fake of a backward pass."""
    return tuple(tensor.new_empty(tensor.shape) for tensor in tensors)


def register_gradients(forward: CustomOpDef, backward: CustomOpDef, saved: Callable[..., tuple[Any, ...]]) -> None:
    """Give an operation the gradients `backward(grad, *saved(inputs, output))`, where `grad` is that of its first output.

    They are those of its first inputs; the other inputs have none, and the other outputs are numbers for the backward pass.
    """

    def save(ctx, inputs, output) -> None:
        ctx.mark_non_differentiable(*pytree.tree_leaves(output)[1:])
        # Otherwise autograd makes a tensor of zeros for each of those.
        ctx.set_materialize_grads(False)
        leaves, ctx.structure = pytree.tree_flatten(saved(inputs, output))
        ctx.save_for_backward(*(leaf if isinstance(leaf, Tensor) else None for leaf in leaves))
        ctx.others = [None if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        ctx.num_inputs = len(inputs)

    def differentiate(ctx, grad: Tensor | None, *_) -> tuple[Tensor | None, ...]:
        if grad is None:
            return (None,) * ctx.num_inputs
        pairs = zip(ctx.saved_tensors, ctx.others, strict=True)
        leaves = [other if tensor is None else tensor for tensor, other in pairs]
        found = backward(grad.contiguous(), *pytree.tree_unflatten(leaves, ctx.structure))
        gradients = (found,) if isinstance(found, Tensor) else found
        return (*gradients, *[None] * (ctx.num_inputs - len(gradients)))

    forward.register_autograd(differentiate, setup_context=save)
