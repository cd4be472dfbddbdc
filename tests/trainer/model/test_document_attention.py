"""Every attention backend computes the same: a loop over tokens is the oracle, in float64, for results and for gradients.

The two backends that need a GPU run here by `flash_on_cpu`: these tests check our code around them.
"""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention.flex_attention import create_block_mask

from pipeline.core.errors import TrainingError
from tests.support.flash_on_cpu import gpu_backends_on_cpu
from trainer.config.choices import AttentionChoice, Precision
from trainer.model.blocks.attention import Attention
from trainer.model.document_attention import (
    BLOCK_TOKENS,
    AttentionPlan,
    BlockwiseMask,
    DocumentBounds,
    plan_inputs,
    visibility,
)
from trainer.model.hybrid import HybridModel
from trainer.model.segments import StepToken, describe_rows
from trainer.proof.attention_trials import TrialShape, attend_by, keeps_apart, made_inputs, segments_of

PLANS = [AttentionPlan(choice, 8 if choice is AttentionChoice.VARLEN else 0) for choice in AttentionChoice]
# Documents of one token, one that crosses the border of a block, padding, and a row that ends inside a block.
SHAPE = TrialShape(2, 4, 2, 8, 150, (1, 20, 70, 33))


@pytest.fixture(autouse=True)
def _on_cpu() -> Iterator[None]:
    with gpu_backends_on_cpu():
        yield


def plans(function):
    return pytest.mark.parametrize("plan", PLANS, ids=lambda plan: str(plan.choice))(function)


@plans
def test_results_and_gradients_are_those_of_a_loop_over_tokens(plan: AttentionPlan) -> None:
    inputs = [each.double() for each in made_inputs(SHAPE, Precision.FLOAT32, "cpu")]

    found = attend_by(plan, SHAPE.lengths, inputs)

    leaves = [each.clone().requires_grad_() for each in inputs[:3]]
    expected = oracle(*leaves)
    gradients = torch.autograd.grad(expected, leaves, inputs[3])
    for name, mine, theirs in zip(("mixed", "query", "key", "value"), found, (expected, *gradients), strict=True):
        torch.testing.assert_close(mine, theirs.detach(), rtol=1e-9, atol=1e-11, msg=name)


def oracle(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    ends = np.cumsum([*SHAPE.lengths, SHAPE.num_tokens - sum(SHAPE.lengths)])
    rows = []
    for row in range(SHAPE.num_rows):
        heads = []
        for head in range(SHAPE.num_query_heads):
            group, mixed, first = head // 2, [], 0
            for t in range(SHAPE.num_tokens):
                first = t if t in ends else first
                scores = torch.exp(key[row, group, first : t + 1] @ query[row, head, t] / 8**0.5)
                mixed.append(scores @ value[row, group, first : t + 1] / scores.sum())
            heads.append(torch.stack(mixed))
        rows.append(torch.stack(heads))
    return torch.stack(rows)


@plans
def test_a_document_keeps_every_bit_while_all_others_change(plan: AttentionPlan) -> None:
    inputs = made_inputs(SHAPE, Precision.FLOAT32, "cpu")

    assert keeps_apart(plan, SHAPE, inputs, attend_by(plan, SHAPE.lengths, inputs))


def test_documents_with_one_id_are_not_isolated() -> None:
    inputs = made_inputs(SHAPE, Precision.FLOAT32, "cpu")
    joined = attend_by(PLANS[0], (sum(SHAPE.lengths),), inputs)

    assert not keeps_apart(PLANS[0], SHAPE, inputs, joined)


def test_what_a_token_sees_is_itself_and_what_is_before_it_in_its_document() -> None:
    ids = [[0, 0, 1, 1, 1, 2], [0, 1, 2, 3, 3, 3]]
    is_seen = visibility(torch.tensor(ids))

    for row, row_ids in enumerate(ids):
        for t in range(6):
            found = [bool(is_seen(row, 0, torch.tensor(t), torch.tensor(u))) for u in range(6)]
            assert found == [u in range(row_ids.index(row_ids[t]), t + 1) for u in range(6)]


lengths_of_rows = st.lists(
    st.lists(st.sampled_from([1, 2, 127, 128, 129, 256, 300]), min_size=1, max_size=5), max_size=3
)


@settings(max_examples=25)
@given(lengths_of_rows.filter(len), st.sampled_from([1, 127, 128, 130, 384, 400]))
def test_blocks_are_those_that_the_whole_mask_has(rows: list[list[int]], num_tokens: int) -> None:
    ids = [np.repeat(np.arange(len(lengths)), lengths) for lengths in rows]
    ids = [np.concatenate((each, np.full(num_tokens, len(each))))[:num_tokens] for each in ids]
    segment_ids_BT = torch.from_numpy(np.stack([np.unique(each, return_inverse=True)[1] for each in ids]))
    found = BlockwiseMask.of(segment_ids_BT)

    mask = visibility(segment_ids_BT)
    whole = create_block_mask(mask, len(rows), None, num_tokens, num_tokens, "cpu", BLOCK_TOKENS)
    for number, indices, theirs, their_indices in (
        (found.num_keys_B1K, found.keys_B1KK, whole.kv_num_blocks, whole.kv_indices),
        (found.num_full_keys_B1K, found.full_keys_B1KK, whole.full_kv_num_blocks, whole.full_kv_indices),
        (found.num_queries_B1K, found.queries_B1KK, whole.q_num_blocks, whole.q_indices),
        (found.num_full_queries_B1K, found.full_queries_B1KK, whole.full_q_num_blocks, whole.full_q_indices),
    ):
        assert torch.equal(number, theirs)
        is_used = torch.arange(indices.shape[-1]) < number.unsqueeze(-1)
        assert torch.equal(indices[is_used], their_indices[is_used])
        assert number.dtype == indices.dtype == torch.int32


@given(
    st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=6), min_size=1, max_size=4),
    st.integers(0, 5),
    st.integers(0, 3),
)
def test_bounds_are_the_lengths_added_up_and_their_number_is_that_of_the_room(
    rows: list[list[int]], num_padding: int, room: int
) -> None:
    num_tokens = max(map(sum, rows)) + num_padding
    runs = [[*row, num_tokens - sum(row)] if num_tokens > sum(row) else row for row in rows]
    segment_ids_BT = torch.tensor([[run for run, length in enumerate(row) for _ in range(length)] for row in runs])
    max_documents = max(map(len, runs)) + room

    found = DocumentBounds.of(segment_ids_BT, max_documents)

    lengths = np.diff(found.bounds.numpy()).reshape(len(runs), max_documents)
    assert [row[row > 0].tolist() for row in lengths] == runs
    assert [row[: len(run)].tolist() for row, run in zip(lengths, runs, strict=True)] == runs
    assert (found.bounds[0], found.bounds[-1], found.bounds.dtype) == (0, len(runs) * num_tokens, torch.int32)
    assert found.max_tokens == num_tokens


def test_more_documents_than_there_is_room_for_are_an_error_and_no_merger() -> None:
    segment_ids_BT = segments_of((2, 2, 2), 1, 8, "cpu")

    DocumentBounds.of(segment_ids_BT, 4)
    with pytest.raises(RuntimeError, match="a row holds more than 3 documents"):
        DocumentBounds.of(segment_ids_BT, 3)
    with pytest.raises(TrainingError, match=r"2 rows with room for 40000 documents are 80000 sequences.*micro-batch"):
        DocumentBounds.of(segment_ids_BT.expand(2, -1), 40_000)


def test_rows_that_a_plan_was_not_made_for_get_the_room_that_they_need() -> None:
    doc_ids_BT = np.array([[1, 1, 2, 3, -1], [1, 1, 1, 1, 1]], dtype=np.int32)

    assert [plan.with_room_for(doc_ids_BT).max_documents for plan in PLANS] == [0, 0, 4]


@plans
def test_nothing_of_a_layout_is_read_back_and_its_shapes_are_those_of_the_batch(plan: AttentionPlan) -> None:
    uneven_BT = segments_of(SHAPE.lengths, 2, 150, "cpu")
    with FakeTensorMode() as mode:  # which has no numbers to read
        fake = plan_inputs(mode.from_tensor(uneven_BT), plan)
    real = plan_inputs(segments_of((75, 75), 2, 150, "cpu"), plan)

    assert [getattr(each, "shape", each) for each in fake] == [getattr(each, "shape", each) for each in real]


@plans
def test_one_layout_is_made_for_a_batch_and_every_layer_is_handed_it(config_of, shaken, plan: AttentionPlan) -> None:
    model = shaken(HybridModel(config_of("AAA", has_engram=False), 20))
    model.attention = plan
    seen = []
    for layer in model.layers:
        layer.block.register_forward_pre_hook(lambda block, inputs: seen.append(inputs[1].attention))

    model(torch.arange(12).view(1, 12), torch.ones(1, 12, dtype=torch.int64))

    assert len(seen) == 3
    assert len({id(layout) for layout in seen}) == 1


@plans
def test_a_block_decoded_step_by_step_equals_its_full_pass(
    config_of, shaken, doc_ids_from, plan: AttentionPlan
) -> None:
    block = shaken(Attention(config_of("A", has_engram=False), 0, 20)).double()
    rows = describe_rows(torch.zeros(2, 27), doc_ids_from([[1, 9, 14], [27]], 27), attention=plan)
    hidden_BTD = torch.randn(2, 27, 16, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    expected_BTD = block(hidden_BTD, rows).update_BTD

    state = block.initial_state(2)
    for t in range(27):
        token = StepToken(rows.input_ids_BT[:, t], rows.segments.positions_BT[:, t])
        update_BD, state = block.step(hidden_BTD[:, t], token, state)
        torch.testing.assert_close(update_BD, expected_BTD[:, t], rtol=1e-9, atol=1e-11, msg=f"token {t}")
