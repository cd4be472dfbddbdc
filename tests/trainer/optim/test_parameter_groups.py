"""Parameter groups: who decays, and whose learning rate is multiplied."""

import torch

from trainer.config.model import OptimizerConfig
from trainer.config.presets import preset
from trainer.model.hybrid import HybridModel
from trainer.optim.optimizer import build_optimizer
from trainer.optim.schedule import set_learning_rate


def groups_by_name(optimizer: torch.optim.Optimizer) -> dict[str, dict]:
    return {group["name"]: group for group in optimizer.param_groups}


def test_matrices_decay_tables_learn_five_times_faster_and_the_rest_does_neither() -> None:
    optimizer = build_optimizer(HybridModel(preset("tiny"), 64), OptimizerConfig(weight_decay=0.1))
    set_learning_rate(optimizer, 0.01)

    groups = groups_by_name(optimizer)

    assert {name: (group["weight_decay"], group["lr"]) for name, group in groups.items()} == {
        "matrices": (0.1, 0.01),
        "plain": (0.0, 0.01),
        "engram_tables": (0.0, 0.05),
    }
    assert groups["engram_tables"]["param_names"] == ["layers.0.block.engram.table_RW"]
    assert "layers.1.block.into_EDF" in groups["matrices"]["param_names"]
    plain = groups["plain"]["param_names"]
    assert {"embedding_VD", "norm.weight", "layers.1.block.router_ED", "layers.2.block.key_bias_HN"} <= set(plain)
    assert all(group["param_names"] == sorted(group["param_names"]) for group in groups.values())


def test_every_parameter_is_in_exactly_one_group() -> None:
    model = HybridModel(preset("tiny"), 64)

    names = [name for group in build_optimizer(model, OptimizerConfig()).param_groups for name in group["param_names"]]

    assert sorted(names) == sorted(name for name, _ in model.named_parameters())
