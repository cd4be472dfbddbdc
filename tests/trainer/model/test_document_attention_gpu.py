"""Every attention backend on a CUDA device: near float64, the same bits again, documents apart, compiled whole, decoded alike."""

import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # required by strict mode when the first product runs

import pytest
import torch
from torch import Tensor

from tests.trainer.conftest import _doc_ids_from, _shaken
from trainer.checkpoint.environment import describe_environment
from trainer.compile.compile_policy import Compilation, budget_of
from trainer.config.choices import AttentionChoice, CompileMode, Precision
from trainer.config.presets import preset
from trainer.distributed.ranks import Ranks
from trainer.model.attention_backends import missing
from trainer.model.blocks.attention import Attention
from trainer.model.document_attention import AttentionPlan, plan_inputs
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize
from trainer.model.loss import TrainingBatch
from trainer.model.segments import StepToken, describe_rows
from trainer.proof.attention_trials import (
    GPU_TRIAL,
    TrialShape,
    _measured,
    attend_by,
    keeps_apart,
    made_inputs,
    segments_of,
)
from trainer.train.determinism import make_deterministic

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]

MATH, FLEX, VARLEN = AttentionChoice
FLOAT32, BFLOAT16 = Precision
ABLE = [(MATH, FLOAT32), (FLEX, FLOAT32), (MATH, BFLOAT16), (FLEX, BFLOAT16), (VARLEN, BFLOAT16)]
SHAPES = {
    "training": GPU_TRIAL,
    "a row of one document, not cut evenly into blocks": TrialShape(1, 8, 8, 64, 1000, (7, 400, 593)),
    "small heads": TrialShape(3, 4, 2, 16, 300, (100, 28, 72, 90)),
    "wide heads": TrialShape(2, 8, 1, 128, 640, (128, 128, 200)),
}


def plan_of(choice: AttentionChoice, room: int = 8) -> AttentionPlan:
    return AttentionPlan(choice, room if choice is VARLEN else 0)


@pytest.fixture(autouse=True)
def _strict():
    before = torch._dynamo.config.save_config()
    torch._dynamo.reset()
    make_deterministic(42, 2)
    yield
    torch._dynamo.config.load_config(before)
    torch._dynamo.reset()
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize(("choice", "dtype"), ABLE)
def test_a_way_is_near_float64_repeats_its_bits_and_keeps_documents_apart(
    choice: AttentionChoice, dtype: Precision, shape: TrialShape
) -> None:
    assert missing(choice, shape.head_size, dtype, "cuda") == ""

    found = _measured(plan_of(choice), dtype, "cuda", shape)

    assert found.is_good, found.found


@pytest.mark.parametrize(("choice", "dtype"), ABLE)
def test_a_backward_repeats_its_bits_fifty_times(choice: AttentionChoice, dtype: Precision) -> None:
    inputs = made_inputs(GPU_TRIAL, dtype, "cuda")
    first = attend_by(plan_of(choice), GPU_TRIAL.lengths, inputs)

    for _ in range(50):
        again = attend_by(plan_of(choice), GPU_TRIAL.lengths, inputs)
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(first, again, strict=True))


def test_more_room_for_documents_changes_no_bit_of_a_result_and_keeps_them_apart() -> None:
    inputs = made_inputs(GPU_TRIAL, BFLOAT16, "cuda")
    first = attend_by(plan_of(VARLEN, 8), GPU_TRIAL.lengths, inputs)

    for room in (64, 256):
        again = attend_by(plan_of(VARLEN, room), GPU_TRIAL.lengths, inputs)
        assert torch.equal(first[0], again[0]), "the forward pass does not depend on the room"
        for mine, theirs in zip(first, again, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=2e-2, atol=2e-2)
        assert keeps_apart(plan_of(VARLEN, room), GPU_TRIAL, inputs, again)


@pytest.mark.parametrize("choice", AttentionChoice)
def test_a_layout_is_made_without_waiting_for_the_device(choice: AttentionChoice) -> None:
    segment_ids_BT = segments_of(GPU_TRIAL.lengths, 4, 4096, "cuda")
    plan_inputs(segment_ids_BT, plan_of(choice))

    torch.cuda.set_sync_debug_mode("error")
    try:
        plan_inputs(segment_ids_BT, plan_of(choice))
    finally:
        torch.cuda.set_sync_debug_mode("default")


def batch_of(num_rows: int) -> TrainingBatch:
    ids_BT = torch.randint(0, 64, (num_rows, 256), generator=torch.Generator().manual_seed(num_rows))
    doc_ids_BT = _doc_ids_from([[100, 1, 120]] * num_rows, 256)
    parts = ids_BT, ids_BT.roll(-1, 1), (doc_ids_BT > 0).long(), doc_ids_BT
    return TrainingBatch(*(part.cuda() for part in parts))


def trained(choice: AttentionChoice, mode: CompileMode) -> tuple[dict[str, Tensor], Compilation | None, HybridModel]:
    """Three steps, at two batch sizes where experts' capacity is no power of two: the losses and the last gradients."""
    model = HybridModel(preset("tiny"), 64)
    initialize(model, 42)
    model.cuda()
    model.dtype, model.attention = torch.bfloat16, plan_of(choice)
    compilation = None if mode is CompileMode.OFF else Compilation(model, mode)
    found = {}
    for step, num_rows in enumerate((4, 4, 4) if mode is CompileMode.BUDGETED else (4, 4, 8), 1):
        model.zero_grad()
        if compilation is None:
            loss, _ = model.loss(batch_of(num_rows))
            loss.backward()
        else:
            with compilation.guarded(step):
                loss, _ = model.loss(batch_of(num_rows))
                loss.backward()
            compilation.end_step(step, [], Ranks())
        found[f"loss of step {step}"] = loss.detach()
    gradients = {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
    return found | gradients, compilation, model


@pytest.mark.parametrize("mode", CompileMode)
@pytest.mark.parametrize("choice", AttentionChoice)
def test_a_training_repeats_its_bits_however_it_is_compiled(choice: AttentionChoice, mode: CompileMode) -> None:
    first, compilation, model = trained(choice, mode)
    if compilation is not None:
        budget = budget_of(model, mode)
        assert compilation.watch.num_breaks == budget.num_breaks
        assert len(compilation.watch.frames) <= budget.max_frames
        torch._dynamo.config.error_on_recompile = False
        torch._dynamo.reset()
    again, _, _ = trained(choice, mode)

    assert first.keys() == again.keys()
    assert [name for name in first if not torch.equal(first[name], again[name])] == []


@pytest.mark.parametrize("choice", AttentionChoice)
def test_held_out_rows_of_other_batch_sizes_are_looked_at_after_the_warm_up(choice: AttentionChoice) -> None:
    _, compilation, model = trained(choice, CompileMode.FULLGRAPH)
    assert compilation is not None
    num_frames = len(compilation.watch.frames)

    with torch.no_grad():
        for num_rows in (3, 1, 7):
            loss, _ = model.eval().loss(batch_of(num_rows))
            model.attention, planned = plan_of(MATH), model.attention
            expected, _ = model.loss(batch_of(num_rows))
            model.attention = planned
            torch.testing.assert_close(loss, expected, rtol=2e-2, atol=2e-2)

    assert len(compilation.watch.frames) == num_frames


@pytest.mark.parametrize(("choice", "dtype"), ABLE)
def test_a_block_decoded_step_by_step_is_near_its_full_pass(choice: AttentionChoice, dtype: Precision) -> None:
    torch_dtype = getattr(torch, dtype)
    block = _shaken(Attention(preset("tiny").model_copy(update={"pattern": "A", "depth": 1}), 1, 20)).cuda()
    rows = describe_rows(
        torch.zeros(2, 200).cuda(), _doc_ids_from([[1, 90, 100], [200]], 200).cuda(), attention=plan_of(choice)
    )
    hidden_BTD = torch.randn(2, 200, 64, generator=torch.Generator().manual_seed(1)).to("cuda", torch_dtype)
    with torch.no_grad():
        expected_BTD = block(hidden_BTD, rows).update_BTD
        state = block.initial_state(2)
        state = state._replace(keys_BGUE=state.keys_BGUE.to(torch_dtype), values_BGUE=state.values_BGUE.to(torch_dtype))
        updates = []
        for t in range(200):
            token = StepToken(rows.input_ids_BT[:, t], rows.segments.positions_BT[:, t])
            update_BD, state = block.step(hidden_BTD[:, t], token, state)
            updates.append(update_BD)

    distance_T = (torch.stack(updates, dim=1) - expected_BTD).float().norm(dim=(0, 2))
    assert (distance_T <= (1e-4 if dtype is FLOAT32 else 3e-2) * expected_BTD.float().norm(dim=(0, 2))).all()


def test_the_manifest_names_the_way() -> None:
    assert describe_environment("cuda", 1, None, VARLEN)["attention"] == "varlen"
