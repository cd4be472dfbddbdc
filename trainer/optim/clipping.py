"""Gradient clipping by the norm over all parameters, summed in a fixed order."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from trainer.distributed.shards import own_rows, whole


@torch.no_grad()
def clip_gradients(parameters: Iterable[tuple[str, nn.Parameter]], max_norm: float) -> Tensor:
    """Scale all gradients in place so that their joint norm is at most `max_norm`; return the norm before that, a scalar.

    Squares are summed for each parameter, then over the parameters sorted by name, so that two processes round alike. Sharded
    gradients are gathered, one at a time: a sum over shards would round differently. A norm that is not finite is returned and
    the gradients are left unscaled, so that those that are not finite can be named: the caller skips the step.
    """
    by_name = sorted(parameters, key=lambda item: item[0])
    gradients = [parameter.grad for _, parameter in by_name if parameter.grad is not None]
    norm = torch.stack([_sum_of_squares(whole(gradient)) for gradient in gradients]).sum().sqrt()
    factor = torch.where(norm.isfinite(), (max_norm / norm).clamp(max=1.0), 1.0)
    for gradient in gradients:
        own_rows(gradient).mul_(factor.to(gradient.dtype))
    return norm


def _sum_of_squares(gradient: Tensor) -> Tensor:
    return gradient.to(torch.promote_types(gradient.dtype, torch.float32)).square().sum()
