"""Graph budget: frames and breaks that the compiler may capture in the warm-up of a run; nothing new after it."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from pipeline.core.errors import TrainingError
from trainer.config.choices import CompileBackend


class Budget(NamedTuple):
    """Frames and breaks that a warm-up may have. Breaks are exact: fewer mean that a part was left out."""

    max_frames: int
    num_breaks: int


class FrameWatch:
    """Counter between Dynamo and the backend: every captured graph passes it."""

    def __init__(self, backend: CompileBackend, budget: Budget) -> None:
        from torch._dynamo import lookup_backend  # type: ignore[attr-defined]  # torch does not list it
        from torch._dynamo.utils import counters

        self.budget = budget
        self.frames: list[str] = []
        self.is_warming_up = True
        self._guards: list[str] = []
        self._counters = counters
        self._inner: Callable[..., Any] = lookup_backend(backend.value)
        self.label = ""
        """Under which the graphs that are captured next are counted."""
        self._breaks_before = self._all_breaks()

    def compile(self, function: Callable[..., Any], is_whole: bool) -> Callable[..., Any]:
        """Return the function, compiled. If it must be whole, a break is an error."""
        settings = {"fullgraph": is_whole, "options": {"guard_filter_fn": self._see_guards}}
        compiled: Callable[..., Any] = torch.compile(function, backend=self._capture, **settings)
        return compiled

    @property
    def breaks(self) -> Counter[str]:
        """The breaks since the watch began, by the first line of their reason."""
        return self._all_breaks() - self._breaks_before

    @property
    def num_breaks(self) -> int:
        return sum(self.breaks.values())

    @property
    def sentence(self) -> str:
        """Frames and breaks as a sentence."""
        frames = ", ".join(f"{count} {label}" for label, count in sorted(Counter(self.frames).items()))
        return f"{len(self.frames)} frames ({frames}), {self.num_breaks} graph breaks"

    def summary(self) -> dict[str, Any]:
        """Return what must be equal on all ranks."""
        guards = hashlib.sha256("\n".join(sorted(self._guards)).encode()).hexdigest()
        return {"frames": sorted(self.frames), "breaks": self.num_breaks, "guards": guards}

    def assert_budget(self, step: int) -> None:
        """Raise TrainingError unless the warm-up stayed within its budget."""
        most, exact = self.budget
        if len(self.frames) > most or self.num_breaks != exact:
            found = f"{self.sentence} ({'; '.join(self.breaks) or 'no graph breaks'})"
            raise TrainingError(f"step {step}", found, f"at most {most} frames, and {exact} graph breaks", _LOGS)

    def end_warm_up(self) -> None:
        """Make every later capture an error."""
        self.is_warming_up = False
        torch._dynamo.config.error_on_recompile = True

    def restart(self) -> None:
        """Forget what was captured and begin a new warm-up."""
        self.frames.clear()
        self._guards.clear()
        self._breaks_before = self._all_breaks()
        self.is_warming_up = True
        torch._dynamo.config.error_on_recompile = False

    def check(self, step: int) -> None:
        """Raise TrainingError if breaks were added after the warm-up."""
        if not self.is_warming_up and self.num_breaks != self.budget.num_breaks:
            raise TrainingError(f"step {step}", f"{self.num_breaks} graph breaks", f"{self.budget.num_breaks}", _LOGS)

    def _capture(self, graph: torch.fx.GraphModule, inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
        if not self.is_warming_up:
            raise TrainingError("compiler", f"a new frame of {self.label}", "none after the warm-up", _LOGS)
        self.frames.append(self.label)
        made: Callable[..., Any] = self._inner(graph, inputs, **options)
        return made

    def _see_guards(self, entries: Sequence[Any]) -> list[bool]:
        # A name may contain the address of an object, which does not make another graph.
        self._guards += [f"{entry.guard_type} {re.sub(_ADDRESS, '', entry.name)}" for entry in entries]
        return [True] * len(entries)

    def _all_breaks(self) -> Counter[str]:
        found = self._counters["graph_break"]
        return Counter({" ".join(reason.split()[:40]): count for reason, count in found.items()})


_ADDRESS = r"(?<=_)\d{8,}"
_LOGS = "See TORCH_LOGS=graph_breaks,guards,recompiles, or `python -m trainer triage`."
