"""Parameter groups: which parameters share a decay, a factor of the learning rate and an algorithm.

matrices        weight decay; Muon if the configuration has it, else AdamW
plain           embeddings, head, router, norms, biases and other per-channel parameters: no decay
engram_tables   learning rate times a factor (5), no decay: each row is touched by few tokens
"""

from typing import Any

from torch import nn

from trainer.config.model import OptimizerConfig
from trainer.model.initialization import ParameterKind, parameter_specs


def parameter_groups(model: nn.Module, config: OptimizerConfig) -> list[dict[str, Any]]:
    """Return the groups that have parameters, sorted by name within each, with the settings of their algorithms."""
    groups: dict[str, dict[str, Any]] = {
        "matrices": {"weight_decay": config.weight_decay, "learning_rate_factor": 1.0, "cuts": []},
        "plain": {"weight_decay": 0.0, "learning_rate_factor": 1.0},
        "engram_tables": {"weight_decay": 0.0, "learning_rate_factor": config.engram_learning_rate_factor},
    }
    if config.muon is not None:
        groups["matrices"] |= {"algorithm": "muon", **config.muon.model_dump()}
    for name, parameter, spec in parameter_specs(model):
        group = groups[_group_of(spec.kind)]
        group.setdefault("params", []).append((name, parameter))
        if "cuts" in group:
            group["cuts"].append(spec.cut)
    return [{"name": name, **group} for name, group in groups.items() if "params" in group]


def _group_of(kind: ParameterKind) -> str:
    match kind:
        case ParameterKind.MATRIX:
            return "matrices"
        case ParameterKind.ENGRAM_TABLE:
            return "engram_tables"
        case _:
            return "plain"
