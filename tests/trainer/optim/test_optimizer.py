"""The optimizer of a model: its parameter groups, its algorithms, which are registered, and its state, which can be restored."""

import pytest
import torch

from pipeline.core.errors import ParamsError
from tests.support.added_to_runs import Sign
from tests.support.optimized import RATE, give_gradients, model_and_optimizer
from trainer.checkpoint.checkpoint import optimizer_tensors, restore_optimizer
from trainer.checkpoint.tensor_files import digest_tensors
from trainer.config.model import AlgorithmConfig, MuonConfig, OptimizerConfig
from trainer.config.presets import preset
from trainer.model.hybrid import HybridModel
from trainer.optim.optimizer import ALGORITHMS, GroupedOptimizer, build_optimizer
from trainer.optim.schedule import set_learning_rate


def test_an_algorithm_can_be_registered_and_updates_its_group_alone() -> None:
    model, _ = model_and_optimizer(OptimizerConfig())
    signed, other = model.embedding_VD, model.norm.weight
    before, others_before = signed.detach().clone(), other.detach().clone()
    groups = [
        {"params": [("embedding_VD", signed)], "algorithm": "sign", "factor": 1.0},
        {"params": [("norm.weight", other)]},
    ]
    defaults = {"algorithm": "adamw", "lr": RATE, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.0}
    with ALGORITHMS.registered(Sign()):
        optimizer = GroupedOptimizer(groups, {**defaults, "is_fused": False})
        give_gradients(model, 0)
        optimizer.step()
        found = optimizer_tensors(optimizer, model)

    torch.testing.assert_close(signed.detach(), before - RATE * signed.grad.sign())
    assert not torch.equal(other, others_before)
    assert sorted(found) == ["exp_avg/norm.weight", "exp_avg_sq/norm.weight", "step/norm.weight", "total/embedding_VD"]


@pytest.mark.parametrize(
    ("name", "settings", "refusal"),
    [
        ("muon", {"typo": 3.0}, "settings of muon: typo: .* expected one of momentum, .*"),
        ("muon", {"momentun": 0.5}, "Did you mean momentum"),
        ("muon", {"num_iterations": 0.5}, "num_iterations: it is 0.5"),
        ("muon", {"momentum": 1.0}, "momentum: it is 1"),
        ("adamw", {"lr": 3.0}, "settings of adamw: lr: "),
        ("lion", {}, "expected one of adamw, muon"),
    ],
)
def test_settings_that_an_algorithm_does_not_declare_are_refused(
    name: str, settings: dict[str, float], refusal: str
) -> None:
    with pytest.raises(ParamsError, match=refusal):
        build_optimizer(
            HybridModel(preset("tiny"), 64), OptimizerConfig(algorithm=AlgorithmConfig(name=name, settings=settings))
        )


def test_an_algorithm_that_is_named_has_its_defaults() -> None:
    model = HybridModel(preset("tiny"), 64)
    groups = [
        groups_by_name(build_optimizer(model, config))["matrices"]
        for config in (
            OptimizerConfig(algorithm=AlgorithmConfig(name="muon", settings={"num_iterations": 7.0})),
            OptimizerConfig(muon=MuonConfig(num_iterations=7)),
        )
    ]

    assert {**groups[0], "params": ()} == {**groups[1], "params": ()}


def test_a_restored_optimizer_continues_to_the_same_bits() -> None:
    model, optimizer = model_and_optimizer(OptimizerConfig(muon=MuonConfig()), torch.float32)
    give_gradients(model, 0)
    optimizer.step()
    kept = {name: tensor.clone() for name, tensor in optimizer_tensors(optimizer, model).items()}
    other, resumed = model_and_optimizer(OptimizerConfig(muon=MuonConfig()), torch.float32)
    other.load_state_dict(model.state_dict())
    restore_optimizer(resumed, other, kept)
    for each, its in ((model, optimizer), (other, resumed)):
        give_gradients(each, 1)
        its.step()

    assert digest_tensors(model.state_dict()) == digest_tensors(other.state_dict())
    assert digest_tensors(optimizer_tensors(optimizer, model)) == digest_tensors(optimizer_tensors(resumed, other))
    assert "momentum/layers.0.block.query.weight" in kept
    assert "exp_avg/layers.0.block.query.weight" not in kept


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
