"""The compile policy: frames, breaks and recompiles of 52 layers, and each way to leave the budget is an error."""

import ast
import functools
import os
import re
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from pipeline.core.errors import TrainingError
from tests.benchmarks.trainer.graphs import batch_of, narrow_model
from tests.faults.injected_faults import in_child
from tests.support.paths import ROOT
from trainer.compile.compile_policy import OPAQUE_BLOCKS, Compilation, apply_settings, assert_settings
from trainer.config.choices import CompileBackend, CompileMode
from trainer.distributed.ranks import Ranks, require_equal
from trainer.model.hybrid import HybridModel

pytestmark = pytest.mark.usefixtures("untouched_torch")
FULLGRAPH, BUDGETED = CompileMode.FULLGRAPH, CompileMode.BUDGETED


def apart(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test in a forked process: once a compilation has failed, torch evaluates each later frame of the process itself.

    Calls then keep their arguments alive for as long as they take, of whatever code.
    """

    @functools.wraps(test)
    def forked(*arguments: object, **named: object) -> None:
        def work() -> None:
            torch.set_num_threads(1)  # the others are not in a fork
            try:
                test(*arguments, **named)
            except BaseException:
                traceback.print_exc()
                os._exit(1)

        assert in_child(work) == 0

    return forked


def step(compilation: Compilation, number: int, num_rows: int, length: int = 16) -> tuple[Tensor, dict[str, Tensor]]:
    model = compilation.model
    model.zero_grad()
    with compilation.guarded(number):
        loss, _ = model.loss(batch_of(num_rows, length))
        loss.backward()
    compilation.end_step(number, [], Ranks())
    return loss.detach(), {name: each.grad for name, each in model.named_parameters() if each.grad is not None}


def compiled(model: HybridModel, mode: CompileMode, backend: CompileBackend = CompileBackend.EAGER) -> Compilation:
    return Compilation(model, mode, backend)


@pytest.mark.parametrize(("name", "num_frames"), [("nam52", 4), ("nam56r", 5)])
def test_52_layers_are_a_frame_for_each_kind_at_any_batch_size_and_keep_their_bits(name: str, num_frames: int) -> None:
    model = narrow_model(name)
    plain_loss, _ = model.loss(batch_of(2, 16))
    plain_loss.backward()
    plain = {each: parameter.grad for each, parameter in model.named_parameters() if parameter.grad is not None}
    compilation = compiled(model, FULLGRAPH)

    loss, gradients = step(compilation, 1, num_rows=2)
    for number, num_rows in enumerate((3, 5), 2):
        step(compilation, number, num_rows)

    assert len(model.layers) == 52
    assert len(compilation.watch.frames) == num_frames
    assert compilation.watch.num_breaks == 0
    assert torch.equal(loss, plain_loss)
    assert gradients.keys() == plain.keys()
    assert all(torch.equal(gradients[each], plain[each]) for each in plain)
    assert OPAQUE_BLOCKS[FULLGRAPH] == {}


@pytest.mark.slow  # deep models, compiled in pieces
@pytest.mark.parametrize(("name", "depth", "breaks"), [("nam52", 8, {"M": 2}), ("nam56r", 12, {"M": 3, "R": 1})])
def test_budgeted_breaks_once_for_each_m_and_r_layer(name: str, depth: int, breaks: dict[str, int]) -> None:
    """Two periods of one pattern and one of the other; the benchmark `graph` counts the breaks of all 52 layers."""
    compilation = compiled(narrow_model(name, depth), BUDGETED)

    # One row is the quick way: with a dynamic batch, tracing takes three times as long.
    step(compilation, 1, num_rows=1)
    step(compilation, 2, num_rows=1)

    found = {letter: _breaks_at(compilation, letter) for letter in breaks}
    assert found == breaks
    assert compilation.watch.num_breaks == sum(breaks.values())
    assert len(compilation.watch.frames) <= sum(breaks.values()) + 1


def test_budgeted_breaks_no_more_often_where_the_batch_is_dynamic() -> None:
    compilation = compiled(narrow_model("nam56r", depth=12), BUDGETED)

    step(compilation, 1, num_rows=2)
    step(compilation, 2, num_rows=2)

    assert {letter: _breaks_at(compilation, letter) for letter in "MR"} == {"M": 3, "R": 1}
    assert compilation.watch.num_breaks == 4
    assert len(compilation.watch.frames) <= 5


def _breaks_at(compilation: Compilation, letter: str) -> int:
    return sum(count for reason, count in compilation.watch.breaks.items() if f"sluice-opaque {letter}" in reason)


class Breaking(nn.Module):
    """A block that ends a graph."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, *inputs):
        torch._dynamo.graph_break()
        return self.block(*inputs)


@pytest.mark.parametrize("mode", [FULLGRAPH, BUDGETED])
@apart
def test_one_break_too_many_is_an_error(mode: CompileMode) -> None:
    model = narrow_model("nam56r", depth=2)
    model.layers[0].block = Breaking(model.layers[0].block)

    with pytest.raises(TrainingError, match=r"break|graph|Constraints"):
        step(compiled(model, mode), 1, num_rows=2)


@pytest.mark.parametrize(("num_rows", "length"), [(2, 20), (1, 16)])
@apart
def test_whatever_is_new_after_the_warm_up_is_an_error_with_its_guard(num_rows: int, length: int) -> None:
    compilation = compiled(narrow_model("nam56r", depth=2), FULLGRAPH)
    step(compilation, 1, num_rows=2)

    with pytest.raises(TrainingError, match=r"size"):
        step(compilation, 2, num_rows, length)


@apart
def test_a_batch_of_one_row_is_a_graph_of_its_own() -> None:
    compilation = compiled(narrow_model("nam56r", depth=2), FULLGRAPH)

    step(compilation, 1, num_rows=1)
    step(compilation, 2, num_rows=1)

    assert len(compilation.watch.frames) == 2
    with pytest.raises(TrainingError, match=r"size"):
        step(compilation, 3, num_rows=2)


@pytest.mark.parametrize("limit", ["recompile_limit", "accumulated_recompile_limit"])
@apart
def test_both_limits_raise(limit: str) -> None:
    apply_settings(is_deterministic=True)
    setattr(torch._dynamo.config, limit, 3)
    function = torch.compile(lambda tensor, number: tensor * number, backend="eager")

    for number in range(3):
        function(torch.ones(2), number)

    with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit):
        function(torch.ones(2), 3)


@pytest.mark.parametrize("setting", ["suppress_errors", "disable", "automatic_dynamic_shapes"])
def test_a_setting_that_hides_what_goes_wrong_is_refused(setting: str) -> None:
    found = apply_settings(is_deterministic=True)
    assert found["recompile_limit"] == 64
    assert torch._inductor.config.deterministic
    setattr(torch._dynamo.config, setting, True)

    with pytest.raises(TrainingError, match=f"{setting} is True"):
        assert_settings()


def test_a_torch_that_lacks_a_setting_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch._inductor.config, "deterministic")
    apply_settings(is_deterministic=False)

    with pytest.raises(TrainingError, match=r"Inductor of torch .* lacks deterministic"):
        apply_settings(is_deterministic=True)

    monkeypatch.delattr(torch._dynamo.config, "recompile_limit")
    with pytest.raises(TrainingError, match=r"Dynamo of torch .* lacks recompile_limit"):
        apply_settings(is_deterministic=False)


def test_ranks_that_captured_differently_stop() -> None:
    one = {"frames": ["E"], "breaks": 0, "guards": "a", "parameters without gradient": []}

    require_equal([one, one], "ranks", "")
    with pytest.raises(TrainingError, match=r"their parameters without gradient differ: rank 0: \[\]; rank 1"):
        require_equal([one, {**one, "parameters without gradient": ["head_VD"]}], "ranks", "")


def sources() -> list[Path]:
    return [path for package in ("kernels", "trainer") for path in sorted((ROOT / package).rglob("*.py"))]


@pytest.mark.parametrize(
    ("pattern", "allowed"),
    [
        (r"compiler\.disable\(|_dynamo\.disable\(", {"compile_policy.py": 1}),
        (r"_dynamo\.reset\(", {"compile_policy.py": 1}),
        (r"suppress_errors", {"compile_policy.py": 1}),
    ],
)
def test_each_escape_from_the_compiler_has_its_one_site(pattern: str, allowed: dict[str, int]) -> None:
    found = {path.name: len(re.findall(pattern, path.read_text())) for path in sources()}

    assert {name: count for name, count in found.items() if count} == allowed


def test_no_module_counts_in_python_while_it_runs() -> None:
    assert [hit for path in sources() for hit in _assignments_in_forward(path.read_text(), path.name)] == []
    assert _assignments_in_forward("class A:\n def forward(self):\n  self.calls += 1\n", "a.py") == ["a.py:3"]


def _assignments_in_forward(text: str, name: str) -> list[str]:
    functions = [
        node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef) and node.name == "forward"
    ]
    return [
        f"{name}:{node.lineno}"
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.AugAssign | ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
    ]
