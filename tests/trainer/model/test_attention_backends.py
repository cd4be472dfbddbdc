"""The attention backend of a run: a default, any other that is requested and can run, and never another in its place."""

from typing import Any

import pytest
import torch

from pipeline.core.errors import TrainingError
from tests.benchmarks.trainer.graphs import batch_of, narrow_model
from tests.support.flash_on_cpu import gpu_backends_on_cpu
from tests.support.made.made_rows import sources_of
from trainer.__main__ import build_parser
from trainer.checkpoint.environment import describe_environment
from trainer.checkpoint.resume_rules import check_resume
from trainer.cli.train import training_config
from trainer.compile.compile_policy import Compilation
from trainer.config.choices import AttentionChoice, CompileBackend, CompileMode, Precision
from trainer.config.training_config import TrainingConfig, training_recipe
from trainer.distributed.ranks import Ranks
from trainer.model.attention_backends import BACKENDS, plan
from trainer.model.document_attention import AttentionPlan

MATH, FLEX, VARLEN = AttentionChoice.MATH, AttentionChoice.FLEX, AttentionChoice.VARLEN
FLOAT32, BFLOAT16 = Precision.FLOAT32, Precision.BFLOAT16


def config(*arguments: str) -> TrainingConfig:
    return training_config(build_parser().parse_args(["train", "--store", "s", "--out", "o", *arguments]))


def test_every_choice_is_described_once() -> None:
    assert list(BACKENDS) == list(AttentionChoice)


@pytest.mark.parametrize(
    ("arguments", "choice"),
    [
        ([], MATH),
        (["--dtype", "bfloat16"], MATH),
        (["--device", "cuda"], MATH),
        (["--device", "cuda:1", "--dtype", "bfloat16"], VARLEN),
        (["--device", "cuda", "--dtype", "bfloat16", "--attention", "flex"], FLEX),
        (["--device", "cuda", "--dtype", "bfloat16", "--attention", "math"], MATH),
    ],
)
def test_the_configuration_holds_what_was_resolved(arguments: list[str], choice: AttentionChoice) -> None:
    assert config(*arguments).attention is choice


def test_math_leaves_no_field_and_another_choice_does() -> None:
    assert "attention" not in training_recipe("tiny").model_dump(mode="json")
    stored = config("--device", "cuda", "--dtype", "bfloat16").model_dump(mode="json")
    assert stored["attention"] == "varlen"
    assert TrainingConfig.model_validate(stored).attention is VARLEN


@pytest.mark.parametrize(
    ("choice", "dtype", "size", "device", "message"),
    [
        (FLEX, BFLOAT16, 64, "cpu", r"attention flex: the device is cpu; expected a CUDA device.*--attention math\."),
        (VARLEN, BFLOAT16, 64, "cpu", r"the device is cpu"),
        (VARLEN, FLOAT32, 64, "cuda", r"matrix products are float32; expected .*bfloat16"),
        (VARLEN, BFLOAT16, 12, "cuda", r"heads are of size 12; expected .*multiple of 8"),
        (VARLEN, BFLOAT16, 264, "cuda", r"heads are of size 264"),
        (FLEX, FLOAT32, 8, "cuda", r"heads are of size 8; expected .*16 or more"),
    ],
)
def test_a_choice_that_cannot_run_is_refused_and_those_that_can_are_named(
    choice: AttentionChoice, dtype: Precision, size: int, device: str, message: str, monkeypatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))

    with pytest.raises(TrainingError, match=message):
        plan(choice, size, dtype, device, lambda: 1)


def test_an_old_gpu_is_refused_by_its_capability(monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))

    with pytest.raises(TrainingError, match=r"attention varlen: the GPU has capability 7\.5; .*--attention math\."):
        plan(VARLEN, 64, BFLOAT16, "cuda", lambda: 1)


@pytest.mark.parametrize(("num_documents", "room"), [(1, 1), (2, 2), (3, 4), (8, 8), (9, 16)])
def test_room_is_made_for_the_documents_of_the_rows_in_powers_of_two(
    num_documents: int, room: int, monkeypatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))

    assert plan(VARLEN, 64, BFLOAT16, "cuda", lambda: num_documents) == AttentionPlan(VARLEN, room)
    assert plan(MATH, 64, BFLOAT16, "cuda", lambda: num_documents) == AttentionPlan()


def test_the_most_pieces_of_a_row_are_found_without_reading_rows() -> None:
    (source,) = sources_of(one=3)

    assert source.rows.max_pieces == 2


def test_the_environment_of_a_cpu_names_no_attention() -> None:
    assert describe_environment("cpu", 1, None, MATH) == describe_environment("cpu", 1)


def test_another_backend_on_a_resume_is_refused_unless_it_is_allowed() -> None:
    before: dict[str, Any] = {"config": {"attention": "varlen"}, "environment": {"attention": "varlen"}}
    now: dict[str, Any] = {"config": {"attention": "flex"}, "environment": {"attention": "flex"}}

    with pytest.raises(TrainingError, match=r"--allow-drift config\.attention --allow-drift environment\.attention"):
        check_resume("c" * 64, before, now, [])
    assert check_resume("c" * 64, before, now, ["config.attention", "environment"]) == {
        "config.attention": ["varlen", "flex"],
        "environment.attention": ["varlen", "flex"],
    }


@pytest.mark.parametrize("choice", [FLEX, VARLEN])
@pytest.mark.usefixtures("untouched_torch")
def test_a_layer_is_captured_whole_for_every_batch_size_and_backend(choice: AttentionChoice) -> None:
    model = narrow_model("nam56r", depth=1)
    plain, _ = model.loss(batch_of(2, 16))
    model.attention = AttentionPlan(choice, 4 if choice is VARLEN else 0)
    with gpu_backends_on_cpu():
        compilation = Compilation(model, CompileMode.FULLGRAPH, CompileBackend.AOT_EAGER)
        losses = []
        for step, num_rows in enumerate((2, 3, 5), 1):
            with compilation.guarded(step):
                losses.append(model.loss(batch_of(num_rows, 16))[0])
                losses[-1].backward()
            compilation.end_step(step, [], Ranks())

    assert compilation.watch.frames == ["Attention"]
    assert compilation.watch.num_breaks == 0
    torch.testing.assert_close(losses[0], plain)


@pytest.mark.usefixtures("untouched_torch")
def test_one_row_with_room_for_more_documents_is_the_same_graph() -> None:
    model = narrow_model("nam56r", depth=1)
    with gpu_backends_on_cpu():
        compilation = Compilation(model, CompileMode.FULLGRAPH, CompileBackend.AOT_EAGER)
        for step, room in enumerate((4, 8), 1):
            model.attention = AttentionPlan(VARLEN, room)
            with compilation.guarded(step):
                model.loss(batch_of(1, 16))[0].backward()
            compilation.end_step(step, [], Ranks())

    assert compilation.watch.frames == ["Attention"]
