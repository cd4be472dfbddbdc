"""AdamW and Muon in three groups, the learning rate as a function of the step, and clipping in a fixed order.

    matrices        weight decay; Muon where the configuration has it, AdamW otherwise
    plain           embeddings, head, router, norms, biases and other per-channel parameters: no decay
    engram_tables   learning rate times a factor (5), no decay: each row is touched by few tokens

All sums run in the order of the parameters' names, so that two processes round alike.
"""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from trainer.config.model import OptimizerConfig, Schedule
from trainer.distributed.shards import own_rows, whole
from trainer.model.initialization import ParameterKind, parameter_specs
from trainer.optim.muon import MuonAdamW


def build_optimizer(model: nn.Module, config: OptimizerConfig) -> MuonAdamW:
    """The optimizer over named parameters, sorted by name within each group. Each group carries its `learning_rate_factor`.

    AdamW is fused on a GPU, where that is one kernel for all tensors and as exact; its sums are within one element.
    """
    decays = {"matrices": config.weight_decay, "plain": 0.0, "engram_tables": 0.0}
    factors = {"matrices": 1.0, "plain": 1.0, "engram_tables": config.engram_learning_rate_factor}
    named: dict[str, list[tuple[str, nn.Parameter]]] = {group: [] for group in decays}
    cuts: list[tuple[int, tuple[int, ...]] | None] = []
    for name, parameter, spec in parameter_specs(model):
        named[_group_of(spec.kind)].append((name, parameter))
        if spec.kind is ParameterKind.MATRIX:
            cuts.append(spec.cut)
    groups: list[dict[str, Any]] = [
        {"params": named[group], "weight_decay": decays[group], "learning_rate_factor": factors[group], "name": group}
        for group in decays
        if named[group]
    ]
    for group in groups:
        if config.muon is not None and group["name"] == "matrices":
            group |= {"algorithm": "muon", "cuts": cuts, **config.muon.model_dump()}
    defaults = {"algorithm": "adamw", "lr": 0.0, "betas": (config.beta1, config.beta2), "eps": config.epsilon}
    is_fused = all(parameter.is_cuda for parameter in model.parameters())
    return MuonAdamW(groups, defaults, is_fused)


def learning_rate(step: int, config: OptimizerConfig) -> float:
    """The rate of the update that ends `step`, counted from 0: linear warm-up, then the schedule to the horizon."""
    if step < config.num_warmup_steps:
        return config.peak_learning_rate * (step + 1) / config.num_warmup_steps
    num_falling_steps = config.num_horizon_steps - config.num_warmup_steps
    progress = min(1.0, (step - config.num_warmup_steps) / num_falling_steps)
    match config.schedule:
        case Schedule.COSINE:
            height = 0.5 * (1 + math.cos(math.pi * progress))
        case Schedule.LINEAR:
            height = 1 - progress
    floor = config.final_learning_rate_fraction
    return config.peak_learning_rate * (floor + (1 - floor) * height)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Give every group the rate times its own factor."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group["learning_rate_factor"]


@torch.no_grad()
def clip_gradients(parameters: Iterable[tuple[str, nn.Parameter]], max_norm: float) -> Tensor:
    """Scale all gradients in place so that their joint norm is at most `max_norm`; returns the norm before, a scalar.

    Squares are summed for each parameter, then over the parameters sorted by name. Sharded gradients are gathered for it,
    one at a time: a sum over parts would round otherwise. A norm that is not finite comes back as it is and leaves the
    gradients unscaled, so that those that are not finite can be named: the caller skips the step.
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


def _group_of(kind: ParameterKind) -> str:
    match kind:
        case ParameterKind.MATRIX:
            return "matrices"
        case ParameterKind.ENGRAM_TABLE:
            return "engram_tables"
        case _:
            return "plain"
