"""Step timing of `python -m trainer bench`: whole training steps on synthetic rows, in this process.

A step is what a training takes: the gradients of its micro-batches, their sum as a tree, clipping, and one update.

    MFU = tokens/s * FLOPs a token / peak of the GPU's bf16 matrix products
    FLOPs a token = 6 * (active parameters - untied embedding) + 6 * A layers * T * query heads * head size

The cost of strict determinism is measured on one model with two sets of graphs in alternation, so that a machine that slows
down slows both.
"""

import resource
import statistics
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

from kernels.measure.measurements import timing_environment
from trainer.bench.kernel_shares import measure_kernel_shares
from trainer.compile.activation_checkpointing import checkpoint_activations
from trainer.compile.compile_policy import Compilation
from trainer.config.choices import CompileBackend, CompileMode, Precision
from trainer.config.model import BlockKind
from trainer.config.presets import PRESETS, preset
from trainer.config.training_config import training_recipe
from trainer.data.batch import Batch, RowOrigins
from trainer.distributed.ranks import Ranks
from trainer.model.attention_backends import default_choice, plan
from trainer.model.hybrid import HybridModel
from trainer.model.parameter_count import sizes_of
from trainer.optim.clipping import clip_gradients
from trainer.optim.optimizer import build_optimizer
from trainer.train.determinism import make_deterministic
from trainer.train.step import backward

PEAK_FLOPS = {"H100": 989e12, "H200": 989e12, "A100": 312e12}
NUM_TIMED_STEPS, LEAST_TIMED_STEPS = 10, 4
"""Steps of a row, the first and the second left out of its median; and those of a row whose steps are of many micro-batches."""
NUM_DOCUMENTS = 4
"""Documents of a row."""
NUM_PAIRS, STEPS_A_SIDE, NUM_WARM_STEPS = 5, 5, 3


@dataclass(frozen=True)
class TimingCase:
    """Model, compilation mode and step size of a row."""

    name: str
    preset: str
    compile: CompileMode
    num_rows: int
    """Rows of a micro-batch."""
    length: int
    num_micro_batches: int = 1
    """Micro-batches of a step, a power of two."""
    deterministic: bool = True
    dtype: Precision = Precision.BFLOAT16
    backend: CompileBackend = CompileBackend.INDUCTOR


def measure_steps(case: TimingCase) -> dict[str, Any]:
    """Measure seconds per step, tokens per second, memory, the number of captured frames, and in a step of its own the kernels."""
    stepper = Stepper(case)
    seconds = [stepper.step()]
    watch = stepper.compilation.watch if stepper.compilation else None
    num_frames = len(watch.frames) if watch else 0
    num_steps = max(LEAST_TIMED_STEPS, NUM_TIMED_STEPS // case.num_micro_batches)
    seconds += [stepper.step() for _ in range(num_steps - 1)]
    num_breaks, num_later = (watch.num_breaks, len(watch.frames) - num_frames) if watch else (0, 0)
    counts = {"frames": num_frames, "breaks": num_breaks, "recompiles": num_later}
    how = {"attention": stepper.model.attention.choice, "activation_checkpointing": stepper.is_checkpointed}
    measured = _row(case, seconds, stepper.peak_bytes) | counts | how
    return measured | {"slowest_kernels": measure_kernel_shares(stepper.step, stepper.device)}


def measure_determinism_cost(case: TimingCase) -> dict[str, Any]:
    """Measure seconds per step with and without strict mode in alternation, and the median of the pairs' ratios, less one."""
    stepper = Stepper(case)
    modes = [_Mode(stepper, is_strict) for is_strict in (True, False)]
    pairs = [[mode.seconds(STEPS_A_SIDE) for mode in modes] for _ in range(NUM_PAIRS)]
    strict, free = (statistics.median(times) for times in zip(*pairs, strict=True))
    cost = statistics.median(one / other for one, other in pairs) - 1
    seconds = {"strict_step_seconds": strict, "free_step_seconds": free, "pairs": pairs}
    return {**asdict(case), **timing_environment(), **seconds, "cost_fraction": cost}


class Stepper:
    """Model, optimizer and one batch of a case."""

    def __init__(self, case: TimingCase) -> None:
        self.case = case
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        recipe = training_recipe(case.preset)
        self.optimizer_config, self.is_checkpointed = recipe.optimizer, recipe.activation_checkpointing
        make_deterministic(42, torch.get_num_threads(), case.deterministic)
        size = PRESETS[case.preset].target.vocabulary_size
        with torch.device(self.device):
            self.model = HybridModel(preset(case.preset), size)
        for parameter in self.model.parameters():
            torch.nn.init.normal_(parameter, std=0.02)
        self.model.dtype = getattr(torch, case.dtype)
        plan_attention(self.model, case.dtype, self.device, NUM_DOCUMENTS)
        self.optimizer = build_optimizer(self.model, self.optimizer_config)
        self.batch = made_batch(case.num_rows * case.num_micro_batches, case.length, size)
        self.compilation = _compilation(self.model, case)
        if self.is_checkpointed:
            checkpoint_activations(self.model)
        self.num_steps, self.peak_bytes = 0, 0

    def step(self) -> float:
        """Take a step and return its seconds."""
        began = time.perf_counter()
        self.num_steps += 1
        with self.compilation.guarded(self.num_steps) if self.compilation else nullcontext():
            loss = backward(self.model, self.batch, self.case.num_micro_batches, Ranks(), self.device)
        if self.compilation:
            self.compilation.end_step(self.num_steps, list(loss.untouched), Ranks())
        clip_gradients(self.model.named_parameters(), self.optimizer_config.max_gradient_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.model.balance_experts(1e-3)
        if self.device == "cuda":
            torch.cuda.synchronize()
            self.peak_bytes = max(self.peak_bytes, loss.peak_bytes, torch.cuda.max_memory_allocated())
        return time.perf_counter() - began


class _Mode:
    """Graphs of a stepper's model in one of the two modes, warmed up, installed for each of its turns."""

    def __init__(self, stepper: Stepper, is_strict: bool) -> None:
        self._stepper, self._is_strict = stepper, is_strict
        for layer in stepper.model.layers:
            layer.__dict__.pop("forward", None)  # the graph of the other mode
        make_deterministic(42, torch.get_num_threads(), is_strict)
        self._compilation = _compilation(stepper.model, replace(stepper.case, deterministic=is_strict))
        if self._compilation:
            self._compilation.watch.restart()  # the warm-up of the other mode has ended
        self._forwards = [layer.__dict__.get("forward") for layer in stepper.model.layers]
        self.seconds(NUM_WARM_STEPS)

    def seconds(self, num_steps: int) -> float:
        """Return the median seconds of some steps."""
        make_deterministic(42, torch.get_num_threads(), self._is_strict)
        self._stepper.compilation = self._compilation
        for layer, forward in zip(self._stepper.model.layers, self._forwards, strict=True):
            if forward is not None:
                layer.forward = forward
        return statistics.median(self._stepper.step() for _ in range(num_steps))


def plan_attention(model: HybridModel, dtype: Precision, device: str, num_documents: int) -> None:
    """Give a model the default attention of this device."""
    way = default_choice(device, dtype)
    model.attention = plan(way, model.config.attention.head_size, dtype, device, lambda: num_documents)


def made_batch(num_rows: int, length: int, vocabulary_size: int) -> Batch:
    """Return rows of NUM_DOCUMENTS documents of random ids, which are of no source."""
    ids_BT = np.random.default_rng(42).integers(0, vocabulary_size, (num_rows, length))
    documents_T = (np.arange(length) * NUM_DOCUMENTS // length + 1).astype(np.int32)
    arrays = (ids_BT, np.roll(ids_BT, -1, 1), np.ones_like(ids_BT, dtype=bool), np.tile(documents_T, (num_rows, 1)))
    return Batch(0, RowOrigins((), *(np.zeros(0, dtype=np.int64),) * 9), *arrays)


def flops_a_token(case: TimingCase, vocabulary_size: int) -> float:
    """Compute the FLOPs of a token by the formula at the head of this file."""
    config = preset(case.preset)
    active = sizes_of(config, vocabulary_size).num_active_parameters
    active -= 0 if config.is_head_tied else vocabulary_size * config.width
    num_attention = sum(kind is BlockKind.ATTENTION for kind in config.layer_kinds)
    part = config.attention
    return 6.0 * active + 6.0 * num_attention * case.length * part.num_query_heads * part.head_size


def _compilation(model: HybridModel, case: TimingCase) -> Compilation | None:
    if case.compile is CompileMode.OFF:
        return None
    return Compilation(model, case.compile, case.backend, case.deterministic)


def _row(case: TimingCase, seconds: list[float], peak_bytes: int) -> dict[str, Any]:
    step = statistics.median(seconds[2:])
    rate = case.num_rows * case.num_micro_batches * case.length / step
    flops, here = flops_a_token(case, PRESETS[case.preset].target.vocabulary_size), timing_environment()
    peak = next((value for name, value in PEAK_FLOPS.items() if name in here["gpu"]), None)
    return {
        **asdict(case),
        **here,
        "tokens_per_second": rate,
        "step_seconds": step,
        "first_step_seconds": seconds[0],
        "flops_a_token": flops,
        "mfu": rate * flops / peak if peak else None,
        "memory_bytes": peak_bytes or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
