"""Muon against a decomposition that shares no step with it, in float64, and its state from one process to the next."""

import pytest
import torch

from trainer.checkpoint.checkpoint import digest_tensors, optimizer_tensors, restore_optimizer
from trainer.config.model import MuonConfig, OptimizerConfig
from trainer.config.presets import preset
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize
from trainer.optim.muon import orthogonalize, orthogonalized
from trainer.optim.parameter_groups import build_optimizer, set_learning_rate

RATE, DECAY, MOMENTUM = 0.01, 0.1, 0.9
# Iterations enough to converge: then what is left of the difference is rounding.
MUON = OptimizerConfig(weight_decay=DECAY, muon=MuonConfig(momentum=MOMENTUM, num_iterations=12))


def matrices(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def by_decomposition(matrix: torch.Tensor) -> torch.Tensor:
    left, _, right = torch.linalg.svd(matrix, full_matrices=False)
    return left @ right


@pytest.mark.parametrize("shape", [(3, 5, 9), (2, 9, 5), (1, 6, 6), (1, 1, 7), (1, 7, 1)])
def test_iterations_converge_to_the_orthogonal_factor_and_five_come_near(shape: tuple[int, ...]) -> None:
    matrices_NRC = matrices(*shape)
    expected_NRC = torch.stack([by_decomposition(matrix) for matrix in matrices_NRC])

    torch.testing.assert_close(orthogonalized(matrices_NRC, 14), expected_NRC, rtol=1e-9, atol=1e-9)
    near = torch.linalg.svdvals(orthogonalized(matrices_NRC, 5))
    assert near.min() > 0.85, near
    assert near.max() < 1.15, near


@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e30])
def test_the_size_of_an_update_does_not_matter_and_zeros_stay(scale: float) -> None:
    found_NRC = orthogonalized(matrices(1, 4, 6) * scale, 14)

    expected = torch.zeros(4, 6, dtype=torch.float64) if scale == 0 else by_decomposition(matrices(1, 4, 6)[0])
    torch.testing.assert_close(found_NRC[0], expected, rtol=1e-8, atol=1e-8)


def test_cut_matrices_are_each_orthogonal_and_batches_mix_nothing() -> None:
    updates = [matrices(9, 4), matrices(2, 4, 6, seed=1), matrices(4, 4, seed=2)]
    cuts = [(0, (4, 4, 1)), (2, (3, 3)), None]

    first, experts, plain = found = [update.clone() for update in updates]
    orthogonalize(found, cuts, 14, 0.2)

    rows = [by_decomposition(part) * 0.2 * max(part.shape) ** 0.5 for part in updates[0].split((4, 4, 1))]
    torch.testing.assert_close(first, torch.cat(rows), rtol=1e-9, atol=1e-9)
    for expert in range(2):
        halves = [by_decomposition(half) * 0.2 * 2 for half in updates[1][expert].split((3, 3), dim=1)]
        torch.testing.assert_close(experts[expert], torch.cat(halves, dim=1), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(plain, by_decomposition(updates[2]) * 0.2 * 2, rtol=1e-9, atol=1e-9)


def model_and_optimizer(config: OptimizerConfig, dtype: torch.dtype = torch.float64):
    model = HybridModel(preset("tiny"), 64).to(dtype)
    initialize(model, seed=1)
    optimizer = build_optimizer(model, config)
    set_learning_rate(optimizer, RATE)
    return model, optimizer


def give_gradients(model: torch.nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for _, parameter in sorted(model.named_parameters()):
        parameter.grad = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)


def test_three_steps_are_muon_for_matrices_and_plain_adamw_for_the_rest() -> None:
    model, optimizer = model_and_optimizer(MUON)
    peer, _ = model_and_optimizer(MUON)
    query, into = peer.layers[0].block.query.weight, peer.layers[2].block.into.weight
    plain = torch.optim.AdamW([peer.embedding_VD], lr=RATE, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.0)
    sums = {query: torch.zeros_like(query), into: torch.zeros_like(into)}
    for step in range(3):
        give_gradients(model, step)
        give_gradients(peer, step)
        optimizer.step()
        plain.step()
        for weight, widths in ((query, (64,)), (into, peer.layers[2].block.widths)):
            sums[weight] = MOMENTUM * sums[weight] + weight.grad
            ahead = weight.grad + MOMENTUM * sums[weight]
            parts = [by_decomposition(part) * 0.2 * max(part.shape) ** 0.5 for part in ahead.split(widths)]
            with torch.no_grad():
                weight.copy_(weight * (1 - RATE * DECAY) - RATE * torch.cat(parts))

    torch.testing.assert_close(model.layers[0].block.query.weight, query, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(model.layers[2].block.into.weight, into, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(model.embedding_VD, peer.embedding_VD, rtol=1e-12, atol=1e-14)


def test_without_muon_every_step_is_torchs_adamw_to_the_bit() -> None:
    config = OptimizerConfig(weight_decay=DECAY)
    model, optimizer = model_and_optimizer(config, torch.float32)
    peer, _ = model_and_optimizer(config, torch.float32)
    decays = {group["name"]: group for group in optimizer.param_groups}
    by_name = dict(peer.named_parameters())
    groups = [
        {
            "params": [by_name[name] for name in group["param_names"]],
            "lr": group["lr"],
            "weight_decay": group["weight_decay"],
        }
        for group in decays.values()
    ]
    plain = torch.optim.AdamW(groups, betas=(0.9, 0.95), eps=1e-8, foreach=False, fused=False)
    for step in range(2):
        give_gradients(model, step)
        give_gradients(peer, step)
        optimizer.step()
        plain.step()

    assert digest_tensors(model.state_dict()) == digest_tensors(peer.state_dict())


def test_an_optimizer_that_is_put_back_goes_on_to_the_same_bits() -> None:
    model, optimizer = model_and_optimizer(MUON, torch.float32)
    give_gradients(model, 0)
    optimizer.step()
    kept = {name: tensor.clone() for name, tensor in optimizer_tensors(optimizer, model).items()}
    other, resumed = model_and_optimizer(MUON, torch.float32)
    other.load_state_dict(model.state_dict())
    restore_optimizer(resumed, other, kept)
    for each, its in ((model, optimizer), (other, resumed)):
        give_gradients(each, 1)
        its.step()

    assert digest_tensors(model.state_dict()) == digest_tensors(other.state_dict())
    assert digest_tensors(optimizer_tensors(optimizer, model)) == digest_tensors(optimizer_tensors(resumed, other))
    assert "momentum/layers.0.block.query.weight" in kept
    assert "exp_avg/layers.0.block.query.weight" not in kept
