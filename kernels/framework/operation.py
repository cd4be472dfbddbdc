"""Registration of custom operations: the function with its fake, the function itself on its devices, and the gradients."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.library import CustomOpDef

IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {}
"""The function of each operation, by its qualified name: what it allocates is seen where it is called by itself."""


def operation(fake: Callable[..., Any], schema: str | None = None) -> Callable[[Callable[..., Any]], CustomOpDef]:
    """Return a decorator that registers a function `NAME_op` as `sluice::NAME`; `fake` returns empty outputs like its own.

    The schema is that of the annotations unless given; inputs and outputs are no lists, which cost autograd a fifth of a
    millisecond a call. For tensors of a CPU and of CUDA the function is registered itself, without the wrapper that torch
    puts around it, which loads the compiler at the first call, for a second, and checks aliases at each call. Compiled code
    is the same: the compiler does not trace into an operation.
    """

    def register(function: Callable[..., Any]) -> CustomOpDef:
        name = f"sluice::{function.__name__.removesuffix('_op')}"
        registered = torch.library.custom_op(name, function, mutates_args=(), schema=schema)
        registered.register_fake(fake)
        torch.library.impl(name, ("CPU", "CUDA"), function)
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
        ctx.mark_non_differentiable(*(() if isinstance(output, Tensor) else output[1:]))
        # Otherwise autograd makes a tensor of zeros for each of those.
        ctx.set_materialize_grads(False)
        kept = saved(inputs, output)
        ctx.save_for_backward(*(each if isinstance(each, Tensor) else None for each in kept))
        ctx.others = [None if isinstance(each, Tensor) else each for each in kept]
        ctx.num_inputs = len(inputs)

    def differentiate(ctx, grad: Tensor | None, *_) -> tuple[Tensor | None, ...]:
        if grad is None:
            return (None,) * ctx.num_inputs
        pairs = zip(ctx.saved_tensors, ctx.others, strict=True)
        found = backward(grad.contiguous(), *(other if tensor is None else tensor for tensor, other in pairs))
        gradients = (found,) if isinstance(found, Tensor) else found
        return (*gradients, *[None] * (ctx.num_inputs - len(gradients)))

    forward.register_autograd(differentiate, setup_context=save)
