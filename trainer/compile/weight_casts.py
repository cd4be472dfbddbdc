"""Weight casts: the matrices of a model in the dtype of its products, made once a step instead of at each use.

A cast is a leaf of the graph: its gradient has its dtype, and is cast back when it is added to others. The bits are those of
casting at each use, since every such weight is used once in a pass. Without a dtype of their own, and in a sharded model,
whose layers are whole only while they run, weights are cast where they are used.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from trainer.distributed.shards import is_sharded
from trainer.model.blocks.experts import Experts
from trainer.model.hybrid import HybridModel
from trainer.model.layers import Projection

CAST_PARAMETERS: dict[type[nn.Module], tuple[str, ...]] = {Projection: ("weight",), Experts: ("into_EDF", "out_EFD")}


@contextmanager
def cast_once(model: HybridModel) -> Iterator[Mapping[Tensor, Tensor]]:
    """Give the model casts that are made now, while the block runs; yield them by their parameters."""
    casts: dict[Tensor, Tensor] = {}
    modules = [module for module in model.modules() if type(module) in CAST_PARAMETERS]
    try:
        for module in modules:
            for name in CAST_PARAMETERS[type(module)]:
                parameter = getattr(module, name)
                if model.dtype not in (None, parameter.dtype) and not is_sharded(parameter):
                    cast = parameter.detach().to(model.dtype).requires_grad_(parameter.requires_grad)
                    casts[parameter] = module.casts[name] = cast  # type: ignore[index, operator, assignment]
        yield casts
    finally:
        for module in modules:
            module.casts.clear()  # type: ignore[operator, union-attr]
        casts.clear()


def take_gradient(parameter: nn.Parameter, cast: Tensor, is_added: bool = False) -> Tensor:
    """Return the gradient of a parameter, or of its cast of this step, and leave none there.

    It has the parameter's dtype; one that is added to another in that dtype keeps its own: the sum has the same bits.
    """
    found = cast.grad if parameter.grad is None else parameter.grad
    parameter.grad = cast.grad = None
    if found is None:
        return torch.zeros_like(parameter)
    return found if is_added else found.to(parameter.dtype)
