"""Compile policy: one set of Dynamo settings, two modes, and the regions that each excludes.

    fullgraph   every layer is one graph, whole or an error: scans and kernels are operations that the compiler does not
                trace into. Layers of one kind share their graph, so that 52 layers are about five frames, with no break
    budgeted    the stack is one frame, in which M and R layers are opaque: as many breaks as there are such layers, no more

Embedding, final norm and loss are not compiled: each is one operation or two. Neither are evaluation, which has no gradients,
and decoding. One axis is dynamic, the batch, marked on the inputs of the warm-up; a batch of one row is a graph of its own.
`trainer.compile.graph_budget` counts, and raises if a run exceeds its budget.
"""

import functools
import linecache
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pipeline.core.errors import TrainingError
from trainer.compile.graph_budget import Budget, FrameWatch
from trainer.config.choices import CompileBackend, CompileMode
from trainer.config.model import BlockKind
from trainer.distributed.ranks import Ranks, require_equal
from trainer.model.blocks.attention import Attention
from trainer.model.blocks.experts import Experts
from trainer.model.document_attention import DocumentBounds
from trainer.model.hybrid import HybridModel, Layer
from trainer.model.segments import PackedRows

DYNAMO_SETTINGS: dict[str, bool | int] = {
    "capture_scalar_outputs": True,
    "recompile_limit": 64,
    "accumulated_recompile_limit": 256,
    "automatic_dynamic_shapes": False,
    "assume_static_by_default": True,
    "enable_compiler_collectives": False,
    "fail_on_recompile_limit_hit": True,  # both limits raise, instead of continuing without the compiler
}
FORBIDDEN = ("suppress_errors", "disable")
"""Settings of Dynamo that hide failures of compilation: use `--compile off` instead."""

OPAQUE_BLOCKS: dict[CompileMode, dict[BlockKind, str]] = {
    CompileMode.FULLGRAPH: {},
    CompileMode.BUDGETED: {
        BlockKind.MAMBA3: "sluice-opaque M: the scan over chunks, as published",
        BlockKind.M2RNN: "sluice-opaque R: the recurrence over time, as published",
    },
}
"""Blocks that a mode excludes from compilation, and why: a captured graph ends at each. The other published exclusions need no
call of the compiler: status and embedding are outside every frame, experts are inside operations, attention has no modifier."""


def apply_settings(is_deterministic: bool) -> dict[str, Any]:
    """Set Dynamo, and Inductor's deterministic mode, before anything is compiled; return Dynamo's settings."""
    import torch._dynamo.config as dynamo
    import torch._inductor.config as inductor

    for name, value in DYNAMO_SETTINGS.items():
        _require(dynamo, "Dynamo", name)
        setattr(dynamo, name, value)
    if is_deterministic or hasattr(inductor, "deterministic"):
        _require(inductor, "Inductor", "deterministic")
        inductor.deterministic = is_deterministic
    return assert_settings()


def assert_settings() -> dict[str, Any]:
    """Return Dynamo's settings. Raises TrainingError if one was changed from outside, or hides failures."""
    import torch._dynamo.config as dynamo

    wanted = DYNAMO_SETTINGS | dict.fromkeys(FORBIDDEN, False)
    settings = {name: getattr(dynamo, name) for name in wanted}
    changed = [name for name, value in wanted.items() if settings[name] != value]
    if changed:
        found, expected = (", ".join(f"{name} is {side[name]}" for name in changed) for side in (settings, wanted))
        raise TrainingError("Dynamo", found, expected, "Remove it from the environment, or train with --compile off.")
    return settings


class Compilation:
    """A model under the compile policy. The model's layers are replaced in place; its parameters and their names stay."""

    def __init__(
        self,
        model: HybridModel,
        mode: CompileMode,
        backend: CompileBackend = CompileBackend.INDUCTOR,
        is_deterministic: bool = True,
    ) -> None:
        self.model, self.mode, self.backend = model, mode, backend
        self._is_deterministic = is_deterministic
        self.settings = apply_settings(is_deterministic)
        self.watch = FrameWatch(backend, budget_of(model, mode))
        self._compile()

    @property
    def sentence(self) -> str:
        """The policy in one line, for the log."""
        opaque = ", ".join(OPAQUE_BLOCKS[self.mode]) or "nothing"
        settings = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        return f"compile {self.mode}, backend {self.backend}; opaque: {opaque}; {settings}"

    @contextmanager
    def guarded(self, step: int) -> Iterator[None]:
        """Turn failures of the compiler in a step into TrainingErrors, a recompile with the guard that failed."""
        from torch._dynamo.exc import TorchDynamoException
        from torch.fx.experimental.symbolic_shapes import ConstraintViolationError

        if self.watch.is_warming_up and not self.watch.frames:
            assert_settings()
        try:
            yield
        except (TorchDynamoException, ConstraintViolationError) as error:
            raise _refusal(error, step, self.watch.is_warming_up) from error
        self.watch.check(step)

    def end_step(self, step: int, untouched: list[str], ranks: Ranks) -> str:
        """Finish a step, of which the first ends the warm-up; return a line for the log. `untouched` parameters got no gradient."""
        if not self.watch.is_warming_up:
            return ""
        self.watch.assert_budget(step)
        summary = {**self.watch.summary(), "parameters without gradient": untouched}
        require_equal(ranks.all_gather(summary), "ranks after the warm-up", _TRIAGE)
        self.watch.end_warm_up()
        return f"compiled: {self.watch.sentence}; from now on a new one is an error"

    def restart(self) -> None:
        """Forget every graph and begin a new warm-up: a retry changed what the graphs were made for."""
        # The only call: graphs hold memory of the step that failed.
        torch._dynamo.reset()
        self.settings = apply_settings(self._is_deterministic)
        self.watch.restart()

    def _compile(self) -> None:
        watch = self.watch
        if self.mode is CompileMode.BUDGETED:
            for block in (layer.block for layer in self.model.layers):
                if isinstance(block, Experts):
                    block.has_capacity = True
            stack = _CompiledForward(
                self.model, "stack", watch, self.model.run_layers, _compiled_stack(self.model, watch)
            )
            self.model.run_layers = stack  # type: ignore[method-assign, assignment]
            return
        for layer in self.model.layers:
            compiled = watch.compile(layer.forward, is_whole=True)
            # An attribute of this module alone: hooks, those of FSDP2 too, are outside the graph.
            layer.forward = _CompiledForward(layer, label_of(layer), watch, layer.forward, compiled)  # type: ignore[method-assign, assignment]


def budget_of(model: HybridModel, mode: CompileMode) -> Budget:
    """Return how many frames and breaks one batch size may have."""
    if mode is CompileMode.FULLGRAPH:
        return Budget(len({label_of(layer) for layer in model.layers}), 0)
    num_opaque = sum(kind in OPAQUE_BLOCKS[mode] for kind in model.config.layer_kinds)
    return Budget(num_opaque + 1, num_opaque)


def label_of(layer: Layer) -> str:
    """Return what distinguishes a layer's graph: its kind, and whether it has an n-gram memory."""
    memory = " with Engram" if isinstance(layer.block, Attention) and layer.block.engram is not None else ""
    return type(layer.block).__name__ + memory


def mark_batch(hidden_BTD: Tensor, rows: PackedRows) -> None:
    """Mark the batch of a frame's inputs as the one dynamic axis. A batch of one row is a graph of its own: it is not marked."""
    if isinstance(rows.attention, DocumentBounds):  # their number follows the data too: what is adopted may need more
        torch._dynamo.mark_dynamic(rows.attention.bounds, 0)
    if hidden_BTD.shape[0] == 1:
        return
    for tensor in (hidden_BTD, *rows, *rows.segments, *rows.attention):
        if isinstance(tensor, Tensor):
            torch._dynamo.mark_dynamic(tensor, 0)


@dataclass(eq=False)
class _CompiledForward:
    """The forward pass of a layer or of all: its graphs in training, the module's own code without gradients."""

    module: nn.Module
    label: str
    watch: FrameWatch
    plain: Callable[..., Any]
    compiled: Callable[..., Any]

    def __call__(self, hidden_BTD: Tensor, rows: PackedRows) -> Any:
        if not (self.module.training and torch.is_grad_enabled()):
            return self.plain(hidden_BTD, rows)
        if self.watch.is_warming_up:
            mark_batch(hidden_BTD, rows)
        self.watch.label = self.label
        return self.compiled(hidden_BTD, rows)


def _compiled_stack(model: HybridModel, watch: FrameWatch) -> Callable[..., Any]:
    """Compile all layers as one frame, in which M and R are opaque."""
    kinds = model.config.layer_kinds
    reasons = map(OPAQUE_BLOCKS[CompileMode.BUDGETED].get, kinds)
    calls = [
        _opaque(layer, reason, watch) if reason else layer for layer, reason in zip(model.layers, reasons, strict=True)
    ]
    compiled = watch.compile(_written_out(kinds), is_whole=False)

    def run(hidden_BTD: Tensor, rows: PackedRows) -> Any:
        penalty = hidden_BTD.new_zeros((), dtype=model.embedding_VD.dtype)
        return compiled(hidden_BTD, penalty, rows, calls)

    return run


def _opaque(layer: Layer, reason: str, watch: FrameWatch) -> Callable[[Tensor, PackedRows], Tensor]:
    def run(hidden_BTD: Tensor, rows: PackedRows) -> Tensor:
        result_BTD: Tensor = layer(hidden_BTD, rows)[0]
        if watch.is_warming_up:  # the next frame's input
            mark_batch(result_BTD, rows)
        return result_BTD

    disabled: Callable[[Tensor, PackedRows], Tensor] = torch.compiler.disable(run, reason=reason)
    return disabled


@functools.cache
def _written_out(kinds: tuple[BlockKind, ...]) -> Callable[..., tuple[Tensor, Tensor]]:
    """Generate the pass through all layers without a loop: Dynamo skips a frame in which a loop breaks."""
    lines = ["def stack(hidden_BTD, penalty, rows, layers):"]
    for place, kind in enumerate(kinds):
        call = f"layers[{place}](hidden_BTD, rows)"
        if kind in OPAQUE_BLOCKS[CompileMode.BUDGETED]:
            lines.append(f"    hidden_BTD = {call}")
        elif kind is BlockKind.EXPERTS:
            lines += [f"    hidden_BTD, added = {call}", "    penalty = penalty + added"]
        else:
            lines.append(f"    hidden_BTD, _ = {call}")
    lines.append("    return hidden_BTD, penalty")
    name = f"<stack of {''.join(kinds)}>"
    # Code without lines would be wrapped by some versions of Dynamo in a frame of its own, in which the first break counts twice.
    linecache.cache[name] = (sum(map(len, lines)), None, [f"{line}\n" for line in lines], name)
    names: dict[str, Any] = {}
    exec(compile("\n".join(lines), name, "exec"), names)  # of nothing but numbers
    stack: Callable[..., tuple[Tensor, Tensor]] = names["stack"]
    return stack


def _require(module: Any, part: str, setting: str) -> None:
    if not hasattr(module, setting):
        found = f"it lacks {setting}, without which compiled code is not reproducible"
        subject = f"{part} of torch {torch.__version__}"
        raise TrainingError(subject, found, "torch 2.11 or newer", "Train with --compile off.")


def _refusal(error: Exception, step: int, is_warming_up: bool) -> TrainingError:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    guards = [line for line in lines if re.match(r"- \d+/\d+: ", line)]
    what = f"{type(error).__name__}: " + " ".join([lines[0], *guards] if guards else lines[:6])
    expected = "layers that compile" if is_warming_up else "the graphs of the warm-up"
    return TrainingError(f"step {step}", what[:3000], expected, _TRIAGE)


_TRIAGE = "Find the cause with `python -m trainer triage`, or train with --compile off."
