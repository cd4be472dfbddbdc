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
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pipeline.core.errors import TrainingError
from trainer.compile.graph_budget import Budget, FrameWatch
from trainer.config.model import BlockKind, CompileBackend, CompileMode
from trainer.distributed.ranks import Ranks, require_equal
from trainer.model.blocks.attention import Attention
from trainer.model.blocks.experts import Experts
from trainer.model.document_attention import DocumentBounds
from trainer.model.hybrid import HybridModel, Layer
from trainer.model.segments import PackedRows

Stack = Callable[[Tensor, PackedRows], tuple[Tensor, Tensor]]

DYNAMO_SETTINGS: dict[tuple[str, ...], bool | int] = {
    ("capture_scalar_outputs",): True,
    ("recompile_limit", "cache_size_limit"): 64,  # torch renamed them; the first that it knows is set
    ("accumulated_recompile_limit", "accumulated_cache_size_limit"): 256,
    ("automatic_dynamic_shapes",): False,
    ("assume_static_by_default",): True,
    ("enable_compiler_collectives",): False,
}
RAISING: dict[tuple[str, ...], bool | int] = {("fail_on_recompile_limit_hit", "fail_on_cache_limit_hit"): True}
"""Both limits raise, instead of continuing without the compiler."""
FORBIDDEN = ("suppress_errors", "disable")
"""Settings of Dynamo that hide failures of compilation: use `--compile off` instead."""


class DisabledRegion(NamedTuple):
    """A region that a mode excludes from compilation, and why. `breaks` says whether a captured graph ends at it."""

    name: str
    reason: str
    breaks: bool


DISABLED_REGIONS: dict[CompileMode, tuple[DisabledRegion, ...]] = {
    CompileMode.FULLGRAPH: (),
    CompileMode.BUDGETED: (
        DisabledRegion("M", "sluice-opaque M: the scan over chunks, as published", breaks=True),
        DisabledRegion("R", "sluice-opaque R: the recurrence over time, as published", breaks=True),
        # These four are outside every frame, or inside one operation, and need no call of the compiler.
        DisabledRegion("status", "status is reported after the step, from buffers", breaks=False),
        DisabledRegion("embedding", "the lookup, on sharded weights too, comes before the frame", breaks=False),
        DisabledRegion(
            "experts", "dispatch and combine are operations that the compiler does not trace into", breaks=False
        ),
        DisabledRegion("score", "attention has a mask and no score modifier", breaks=False),
    ),
}


def apply_settings(is_deterministic: bool) -> dict[str, Any]:
    """Set Dynamo, and Inductor's deterministic mode, before anything is compiled; return the settings, by torch's names."""
    import torch._dynamo.config as dynamo
    import torch._inductor.config as inductor

    for names, value in {**DYNAMO_SETTINGS, **RAISING}.items():
        setattr(dynamo, _known(dynamo, names), value)
    if hasattr(inductor, "deterministic"):
        inductor.deterministic = is_deterministic
    elif is_deterministic:
        raise _lacking("Inductor", "deterministic")
    return assert_settings()


def assert_settings() -> dict[str, Any]:
    """Return Dynamo's settings. Raises TrainingError if one was changed from outside, or hides failures."""
    import torch._dynamo.config as dynamo

    wanted = {_known(dynamo, names): value for names, value in {**DYNAMO_SETTINGS, **RAISING}.items()}
    wanted |= dict.fromkeys(FORBIDDEN, False)
    found = {name: getattr(dynamo, name) for name in wanted}
    moved = [name for name, value in wanted.items() if found[name] != value]
    if moved:
        raise TrainingError(
            "Dynamo",
            ", ".join(f"{name} is {found[name]}" for name in moved),
            ", ".join(f"{name} {wanted[name]}" for name in moved),
            "Remove it from the environment, or train with --compile off.",
        )
    return found


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
        opaque = ", ".join(region.name for region in DISABLED_REGIONS[self.mode] if region.breaks) or "nothing"
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
        if self.mode is CompileMode.FULLGRAPH:
            for layer in self.model.layers:
                # An attribute of this module alone: hooks, those of FSDP2 too, are outside the graph.
                layer.forward = _Region(layer, self.watch)  # type: ignore[method-assign, assignment]
            return
        for block in (layer.block for layer in self.model.layers):
            if isinstance(block, Experts):
                block.has_power_of_two_capacity = True
        self.model.run_layers = _Stack(self.model, self.watch)  # type: ignore[method-assign, assignment]


def budget_of(model: HybridModel, mode: CompileMode) -> Budget:
    """Return how many frames and breaks one batch size may have."""
    if mode is CompileMode.FULLGRAPH:
        return Budget(len({label_of(layer) for layer in model.layers}), 0)
    num_opaque = sum(_is_opaque(kind) for kind in model.config.layer_kinds)
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


class _Region:
    """The forward pass of one layer: its graph in training, the layer's own code without gradients."""

    def __init__(self, layer: Layer, watch: FrameWatch) -> None:
        self._layer, self._label, self._watch = layer, label_of(layer), watch
        self._plain = layer.forward
        self._compiled = watch.compile(layer.forward, is_whole=True)

    def __call__(self, hidden_BTD: Tensor, rows: PackedRows) -> tuple[Tensor, Tensor | None]:
        if not (self._layer.training and torch.is_grad_enabled()):
            return self._plain(hidden_BTD, rows)
        if self._watch.is_warming_up:
            mark_batch(hidden_BTD, rows)
        with self._watch.capturing(self._label):
            found: tuple[Tensor, Tensor | None] = self._compiled(hidden_BTD, rows)
        return found


class _Stack:
    """All layers as one frame, in which M and R are opaque."""

    def __init__(self, model: HybridModel, watch: FrameWatch) -> None:
        self._model, self._watch = model, watch
        self._plain = model.run_layers
        kinds = model.config.layer_kinds
        self._calls = [
            _opaque(layer, kind, watch) if _is_opaque(kind) else layer
            for layer, kind in zip(model.layers, kinds, strict=True)
        ]
        self._compiled = watch.compile(_written_out(kinds), is_whole=False)

    def __call__(self, hidden_BTD: Tensor, rows: PackedRows) -> tuple[Tensor, Tensor]:
        if not (self._model.training and torch.is_grad_enabled()):
            return self._plain(hidden_BTD, rows)
        if self._watch.is_warming_up:
            mark_batch(hidden_BTD, rows)
        penalty = hidden_BTD.new_zeros((), dtype=self._model.embedding_VD.dtype)
        with self._watch.capturing("stack"):
            found: tuple[Tensor, Tensor] = self._compiled(hidden_BTD, penalty, rows, self._calls)
        return found


def _is_opaque(kind: BlockKind) -> bool:
    return kind in (BlockKind.MAMBA3, BlockKind.M2RNN)


def _opaque(layer: Layer, kind: BlockKind, watch: FrameWatch) -> Callable[[Tensor, PackedRows], Tensor]:
    def run(hidden_BTD: Tensor, rows: PackedRows) -> Tensor:
        result_BTD: Tensor = layer(hidden_BTD, rows)[0]
        if watch.is_warming_up:  # the next frame's input
            mark_batch(result_BTD, rows)
        return result_BTD

    (reason,) = (region.reason for region in DISABLED_REGIONS[CompileMode.BUDGETED] if region.name == kind.value)
    disabled: Callable[[Tensor, PackedRows], Tensor] = torch.compiler.disable(run, reason=reason)
    return disabled


@functools.cache
def _written_out(kinds: tuple[BlockKind, ...]) -> Callable[..., tuple[Tensor, Tensor]]:
    """Generate the pass through all layers without a loop: Dynamo skips a frame in which a loop breaks."""
    lines = ["def stack(hidden_BTD, penalty, rows, layers):"]
    for place, kind in enumerate(kinds):
        call = f"layers[{place}](hidden_BTD, rows)"
        if _is_opaque(kind):
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


def _known(module: Any, names: tuple[str, ...]) -> str:
    for name in names:
        if hasattr(module, name):
            return name
    raise _lacking("Dynamo", " or ".join(names))


def _lacking(part: str, setting: str) -> TrainingError:
    found = f"it lacks {setting}, without which compiled code is not reproducible"
    return TrainingError(
        f"{part} of torch {torch.__version__}", found, "torch 2.11 or newer", "Train with --compile off."
    )


def _refusal(error: Exception, step: int, is_warming_up: bool) -> TrainingError:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    guards = [line for line in lines if re.match(r"- \d+/\d+: ", line)]
    what = f"{type(error).__name__}: " + " ".join([lines[0], *guards] if guards else lines[:6])
    expected = "layers that compile" if is_warming_up else "the graphs of the warm-up"
    return TrainingError(f"step {step}", what[:3000], expected, _TRIAGE)


_TRIAGE = "Find the cause with `python -m trainer triage`, or train with --compile off."
