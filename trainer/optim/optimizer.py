"""Optimizer of a model: each parameter group is updated by the algorithm that it names.

    matrices        weight decay; the algorithm or Muon if the configuration has one, else AdamW
    plain           embeddings, head, router, norms, biases and other per-channel parameters: no decay
    engram_tables   learning rate times a factor (5), no decay: each row is touched by few tokens

A frozen parameter is in no group: it has no state and does not decay.

To add an algorithm, write a file with a class like `AdamW` or `Muon`, whose `settings` are the Params that it finds in its group,
add it to ALGORITHMS, and name it in the configuration as `optimizer.algorithm`. The identity of a run names the algorithms that a
program registers.
"""

from collections.abc import Iterable, Mapping
from inspect import unwrap
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from pipeline.core.params import Params
from pipeline.core.registry import Registry
from pipeline.core.settings.overrides import Overrides, combine
from trainer.config.model import AlgorithmConfig, OptimizerConfig
from trainer.model.initialization import ParameterKind, parameter_specs
from trainer.optim.adamw import AdamW
from trainer.optim.muon import Muon


class Algorithm(Protocol):
    """An update rule. `group` holds the settings of a parameter group, its `lr` and its `params`."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> type[Params]:
        """Declare what `optimizer.algorithm.settings` may set; Params itself, if nothing."""
        ...

    def initial_state(self, parameter: Tensor, group: Mapping[str, Any]) -> dict[str, Tensor]: ...

    def step(self, group: Mapping[str, Any], state: Mapping[Tensor, dict[str, Tensor]]) -> None: ...


ALGORITHMS: Registry[Algorithm] = Registry("optimizer algorithm", AdamW(), Muon(), is_in_runs=True)


class GroupedOptimizer(torch.optim.Optimizer):
    """Parameter groups, each with the name of its `algorithm`. All state is allocated at once, so that it can be restored."""

    # Without the decorator that loads torch's compiler at the first call, to keep it out: a third of the start of a training.
    add_param_group = unwrap(torch.optim.Optimizer.add_param_group)
    zero_grad = unwrap(torch.optim.Optimizer.zero_grad)

    def __init__(self, groups: Iterable[dict[str, Any]], defaults: dict[str, Any]) -> None:
        super().__init__(groups, defaults)
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter] = ALGORITHMS[group["algorithm"]].initial_state(parameter, group)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # there is no closure to evaluate
        """Update every parameter that has a gradient."""
        for group in self.param_groups:
            ALGORITHMS[group["algorithm"]].step(group, self.state)


def build_optimizer(model: nn.Module, config: OptimizerConfig) -> GroupedOptimizer:
    """Build the optimizer of a model's parameters.

    AdamW is fused on a GPU, where that is one kernel for all tensors and as exact: its sums are within one element.
    """
    is_fused = all(parameter.is_cuda for parameter in model.parameters())
    betas = (config.beta1, config.beta2)
    defaults = {"algorithm": "adamw", "lr": 0.0, "betas": betas, "eps": config.epsilon, "is_fused": is_fused}
    return GroupedOptimizer(_parameter_groups(model, config), defaults)


def _settings_of(config: AlgorithmConfig) -> dict[str, Any]:
    """Return the settings of an algorithm with their defaults. Raises ParamsError for one that it does not declare."""
    subject = f"optimizer.algorithm.settings of {config.name}"
    values = {name: int(value) if value.is_integer() else value for name, value in config.settings.items()}
    return combine(ALGORITHMS[config.name].settings, [Overrides(subject, values)], subject).model_dump()


def _parameter_groups(model: nn.Module, config: OptimizerConfig) -> list[dict[str, Any]]:
    """Return the groups that have trained parameters, sorted by name within each, with the settings of their algorithms."""
    groups: dict[str, dict[str, Any]] = {
        "matrices": {"weight_decay": config.weight_decay, "learning_rate_factor": 1.0, "cuts": []},
        "plain": {"weight_decay": 0.0, "learning_rate_factor": 1.0},
        "engram_tables": {"weight_decay": 0.0, "learning_rate_factor": config.engram_learning_rate_factor},
    }
    if config.algorithm is not None:
        groups["matrices"] |= {"algorithm": config.algorithm.name, **_settings_of(config.algorithm)}
    if config.muon is not None:
        groups["matrices"] |= {"algorithm": "muon", **config.muon.model_dump()}
    names = {ParameterKind.MATRIX: "matrices", ParameterKind.ENGRAM_TABLE: "engram_tables"}
    for name, parameter, spec in parameter_specs(model):
        if not parameter.requires_grad:
            continue
        group = groups[names.get(spec.kind, "plain")]
        group.setdefault("params", []).append((name, parameter))
        if "cuts" in group:
            group["cuts"].append(spec.cut)
    return [{"name": name, **group} for name, group in groups.items() if "params" in group]
