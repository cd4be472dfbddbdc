"""Slots, gathers and grouped products equal a loop over tokens, for every pair and with a static capacity."""

import pytest
import torch
from torch.nn import functional

from trainer.config.model import ExpertsConfig
from trainer.model.blocks.experts import (
    Experts,
    choose_experts,
    expert_capacity,
    place_pairs,
    place_within_capacity,
    router_z_loss,
)
from trainer.model.segments import describe_rows


def dense_oracle(
    block: Experts, tokens_MD: torch.Tensor, is_token: list[bool], capacity: int
) -> tuple[torch.Tensor, int]:
    """Token by token, expert by expert: the update, and how many pairs found no room."""
    part = block.config
    taken = [0] * part.num_experts
    num_dropped = 0
    results = []
    for token_D, is_real in zip(tokens_MD, is_token, strict=True):
        scores = torch.sigmoid(block.router_ED @ token_D)
        ranked = sorted(range(part.num_experts), key=lambda e: (-(scores[e] + block.selection_bias_E[e]).item(), e))
        chosen = ranked[: part.num_selected]
        total = sum(scores[e] for e in chosen)
        gate, up = (block.shared_into.weight @ token_D).chunk(2)
        result = block.shared_out.weight @ (functional.silu(gate) * up)
        for e in chosen:
            if is_real and taken[e] < capacity:
                taken[e] += 1
                gate, up = (token_D @ block.into_EDF[e]).chunk(2)
                result = result + scores[e] / total * ((functional.silu(gate) * up) @ block.out_EFD[e])
            elif is_real:
                num_dropped += 1
        results.append(result)
    return torch.stack(results), num_dropped


@pytest.mark.parametrize("has_capacity", [False, True])
def test_the_block_equals_a_dense_oracle_values_and_gradients_and_drops_nothing_unless_it_has_a_capacity(
    config_of, shaken, doc_ids_from, has_capacity: bool
) -> None:
    """All tokens choose the first expert: 38 pairs of it, where a capacity leaves room for 32."""
    block = shaken(Experts(config_of("E"))).double()
    block.has_capacity = has_capacity
    block.selection_bias_E.copy_(torch.tensor([2.0, 0.0, 0.0, -1.0]))
    doc_ids_BT = doc_ids_from([[15, 4], [19]], 20)
    generator = torch.Generator().manual_seed(0)
    hidden_BTD = torch.randn(2, 20, 16, generator=generator, dtype=torch.float64, requires_grad=True)
    room = expert_capacity(40, block.config) if has_capacity else 40

    actual = block(hidden_BTD, describe_rows(torch.zeros(2, 20), doc_ids_BT)).update_BTD.flatten(0, 1)
    expected, num_dropped = dense_oracle(block, hidden_BTD.flatten(0, 1), (doc_ids_BT.flatten() > 0).tolist(), room)

    assert block.overflow == num_dropped == (38 - 32 if has_capacity else 0)
    torch.testing.assert_close(actual, expected, rtol=1e-11, atol=1e-11)
    leaves = [hidden_BTD, *block.parameters()]
    actual_gradients = torch.autograd.grad(actual.square().sum(), leaves)
    expected_gradients = torch.autograd.grad(expected.square().sum(), leaves)
    for left, right in zip(actual_gradients, expected_gradients, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-10, atol=1e-10)


def test_equal_scores_choose_the_lower_index() -> None:
    chosen_MK, weights_MK = choose_experts(torch.zeros(3, 600), torch.zeros(600), num_selected=2)

    assert chosen_MK.tolist() == [[0, 1]] * 3
    assert weights_MK.tolist() == [[0.5, 0.5]] * 3


def test_a_token_that_every_expert_refuses_stays_finite() -> None:
    logits_ME = torch.full((1, 4), -200.0, requires_grad=True)

    _, weights_MK = choose_experts(logits_ME, torch.zeros(4), num_selected=2)
    weights_MK.sum().backward()

    assert weights_MK.isfinite().all()
    assert logits_ME.grad.isfinite().all()


def test_the_bias_chooses_but_does_not_weigh() -> None:
    logits_ME = torch.tensor([[2.0, 1.0, -1.0]])

    chosen_MK, weights_MK = choose_experts(logits_ME, torch.tensor([0.0, -5.0, 5.0]), num_selected=2)

    assert chosen_MK.tolist() == [[2, 0]]
    scores = torch.sigmoid(logits_ME[0, [2, 0]])
    torch.testing.assert_close(weights_MK[0], scores / scores.sum())


def test_a_slot_holds_one_pair_in_a_tile_of_its_expert_and_a_pair_of_padding_holds_none() -> None:
    chosen_MK = torch.tensor([[0, 1], [0, 1], [0, 3], [0, 1]])
    is_token_M = torch.tensor([True, False, True, True])

    placement = place_pairs(chosen_MK, is_token_M, num_experts=4, tile=2)
    limited = place_within_capacity(chosen_MK, is_token_M, num_experts=4, capacity=2)

    assert placement.experts_N.tolist() == [0, 0, 1, 3, 4, 4, 4, 4], (
        "no shape follows the choices: 8 pairs and 4 experts"
    )
    assert placement.slots_Q.tolist() == [0, 4, 16, 16, 1, 6, 2, 5]
    assert placement.pairs_S[:8].tolist() == [0, 4, 6, 8, 1, 7, 5, 8]
    assert (placement.pairs_S[8:] == 8).all()
    assert limited.slots_Q.tolist() == [0, 2, 8, 8, 1, 6, 8, 3], "the third pair of expert 0 finds no room"
    assert limited.pairs_S.tolist() == [0, 4, 1, 7, 8, 8, 5, 8]
    assert limited.experts_N.tolist() == [0, 1, 2, 3]


def test_ranks_count_on_over_blocks_of_pairs() -> None:
    chosen_MK = torch.randint(3, (700, 1), generator=torch.Generator().manual_seed(0))

    placement = place_pairs(chosen_MK, torch.ones(700, dtype=torch.bool), num_experts=3, tile=16)

    for expert in range(3):
        slots = placement.slots_Q[chosen_MK.flatten() == expert]
        assert torch.equal(slots, slots[0] + torch.arange(len(slots)))
        assert placement.experts_N[slots // 16].unique().tolist() == [expert]


def test_a_capacity_is_a_power_of_two_over_five_quarters_of_the_mean() -> None:
    part = ExpertsConfig(num_experts=16, num_selected=4)

    assert [expert_capacity(tokens, part) for tokens in (4096, 3276, 3277, 8)] == [2048, 1024, 2048, 16]


def test_the_balance_moves_biases_against_the_load_and_zeroes_the_counters(config_of, shaken, doc_ids_from) -> None:
    block = shaken(Experts(config_of("E")))
    block.selection_bias_E.copy_(torch.tensor([9.0, 5.0, 0.0, 0.0]))
    rows = describe_rows(torch.zeros(1, 8), doc_ids_from([[6]], 8))

    block(torch.ones(1, 8, 16), rows)
    assert block.load_E.tolist() == [6, 6, 0, 0], "padding is not counted"
    assert block.empty_slots == 2 * 128 - 12, "two experts have a tile each"
    block.balance(rate=0.25)

    assert block.selection_bias_E.tolist() == [8.75, 4.75, 0.25, 0.25]
    assert block.load_E.sum() == block.overflow == block.empty_slots == 0


def test_evaluation_counts_nothing(config_of, shaken, doc_ids_from) -> None:
    block = shaken(Experts(config_of("E"))).eval()

    block(torch.ones(1, 8, 16), describe_rows(torch.zeros(1, 8), doc_ids_from([[8]], 8)))

    assert block.load_E.sum() == 0


def test_only_the_selection_bias_is_checkpointed_beside_the_weights(config_of) -> None:
    block = Experts(config_of("E"))

    assert set(block.state_dict()) - set(dict(block.named_parameters())) == {"selection_bias_E"}


def test_z_loss_is_the_mean_squared_log_sum_exp_of_real_tokens() -> None:
    logits_ME = torch.tensor([[0.0, 0.0], [50.0, 50.0]])

    actual = router_z_loss(logits_ME, torch.tensor([True, False]))

    torch.testing.assert_close(actual, torch.tensor(2.0).log().square())
