"""Muon against a decomposition that shares no step with it, in float64."""

import pytest
import torch

from tests.support.optimized import RATE, give_gradients, model_and_optimizer
from trainer.config.model import MuonConfig, OptimizerConfig
from trainer.optim import muon
from trainer.optim.muon import orthogonalize, orthogonalized

DECAY, MOMENTUM = 0.1, 0.9
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
    assert near.min() > 0.87, near
    assert near.max() < 1.13, near


@pytest.mark.parametrize("scale", [1e-7, 1e30])
def test_the_size_of_an_update_does_not_matter(scale: float) -> None:
    found_NRC = orthogonalized(matrices(1, 4, 6) * scale, 14)

    torch.testing.assert_close(found_NRC[0], by_decomposition(matrices(1, 4, 6)[0]), rtol=1e-8, atol=1e-8)


def test_below_the_least_norm_an_update_vanishes_with_its_size_and_zeros_stay() -> None:
    largest = [
        float(torch.linalg.matrix_norm(orthogonalized(matrices(1, 4, 6) * scale, 5), 2)) for scale in (1e-12, 1e-14, 0)
    ]

    assert 0 < largest[1] < largest[0] < 0.1
    assert largest[0] / largest[1] == pytest.approx(100, rel=0.1)
    assert largest[2] == 0


def test_five_iterations_bring_what_is_above_a_thousandth_of_the_norm_near_one_and_no_less() -> None:
    """In bfloat16, which rounds at that size, above a hundredth."""
    left, right = (torch.linalg.qr(matrices(40, 40, seed=seed)).Q for seed in (3, 4))
    shares = torch.logspace(-5, 0, 40, dtype=torch.float64)
    matrix = left @ torch.diag(shares) @ right.T
    shares = shares / torch.linalg.matrix_norm(matrix)

    for dtype, least in ((None, 1e-3), (torch.bfloat16, 1e-2)):
        found = orthogonalized(matrix.float()[None], 5, dtype)[0].double()
        along = torch.diagonal(left.T @ found @ right)
        assert (along[shares >= least] - 1).abs().max() < 0.16, dtype
        assert along[:8].abs().max() < 0.5, "a singular value of 1e-4 of the norm does not come near one"
    assert torch.linalg.svdvals(found).max() < 1.25


def test_an_expert_without_tokens_is_not_moved_and_the_others_are_as_before() -> None:
    """A thousand idle steps: its stale momentum would move it at full speed, and end in what is not finite."""
    models = [model_and_optimizer(MUON.model_copy(update={"muon": MuonConfig()}), torch.float32) for _ in range(2)]
    name, idle = "layers.1.block.into_EDF", 2
    for step in range(3):
        for place, (model, optimizer) in enumerate(models):
            give_gradients(model, step)
            if place == 1 and step > 0:
                model.get_parameter(name).grad[idle] = 0
            optimizer.step()
        if step == 0:
            before = models[1][0].get_parameter(name)[idle].clone()
            momentum = models[1][1].state[models[1][0].get_parameter(name)]["momentum"][idle].clone()

    usual, other = (model.get_parameter(name) for model, _ in models)
    assert torch.equal(other[idle], before)
    assert torch.equal(models[1][1].state[other]["momentum"][idle], momentum)
    kept = [expert for expert in range(len(usual)) if expert != idle]
    assert torch.equal(usual[kept], other[kept])


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


def test_ranks_take_batches_in_turns_and_each_receives_those_of_the_others(monkeypatch) -> None:
    """As rank 1 of two: of three shapes it makes the second, and writes what rank 0 sends for the others."""
    made, senders = [], []
    monkeypatch.setattr(muon, "number_and_rank", lambda: (2, 1))
    honest = muon.orthogonalized
    monkeypatch.setattr(muon, "orthogonalized", lambda each, *more: made.append(each.shape) or honest(each, *more))

    def receive_from(owner: int, tensor: torch.Tensor) -> torch.Tensor:
        senders.append(owner)
        return tensor if owner == 1 else tensor.fill_(7.0)

    monkeypatch.setattr(muon, "receive_from", receive_from)
    updates = [matrices(6, 6), matrices(3, 3), matrices(4, 6)]
    orthogonalize(updates, [None, None, None], 14, 0.2)

    assert (made, senders) == ([(1, 4, 6)], [0, 1, 0])
    assert (updates[0] == 7).all()
    assert (updates[1] == 7).all()
    expected = by_decomposition(matrices(4, 6)) * 0.2 * 6**0.5
    torch.testing.assert_close(updates[2], expected, rtol=1e-9, atol=1e-9)


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
