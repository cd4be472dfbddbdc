"""Memory plan: what one training step holds when, found by taking it without numbers, on torch's meta device.

A plan is of one process that holds the whole model, uncompiled. Of the sums of micro-batches a GPU holds one beside the gradients
that are computed, at the least; the others are there if there is room (`trainer.distributed.partial_sums`), else in host memory.
"""

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from kernels.framework.backend import HAS_TRITON, caught_launches, is_interpreting
from pipeline.core.errors import TrainingError
from trainer.bench.allocations import AllocationWatch
from trainer.compile.activation_checkpointing import checkpoint_activations, counted_once
from trainer.compile.weight_casts import cast_once, take_gradient
from trainer.config.choices import AttentionChoice
from trainer.config.training_config import TrainingConfig
from trainer.distributed.partial_sums import RESERVE_FRACTION
from trainer.model.document_attention import AttentionPlan
from trainer.model.freezing import freeze
from trainer.model.hybrid import HybridModel
from trainer.model.loss import TrainingBatch
from trainer.optim.clipping import clip_gradients
from trainer.optim.optimizer import build_optimizer

PLANNED_DOCUMENTS = 64
"""Documents of a row in a plan: their number decides kilobytes."""
GIB = 2**30


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes of a training step. `peaks` are those of its phases, each with all that is held then."""

    micro_batch_tokens: int
    weights: int
    optimizer_state: int
    casts: int
    waiting_sum: int
    kept_activations: int
    peaks: dict[str, int]
    host_sums: int

    @property
    def peak(self) -> int:
        """The most that is held at once."""
        return max(self.peaks.values())

    @property
    def needed(self) -> int:
        """The smallest device that the plan fits."""
        return round(self.peak / (1 - RESERVE_FRACTION))

    def lines(self) -> list[str]:
        """Return the plan as lines of a table."""
        held = {
            "weights, throughout": self.weights,
            "optimizer state, throughout": self.optimizer_state,
            "weights in the dtype of products, until the update": self.casts,
            "sum of earlier micro-batches, until the update": self.waiting_sum,
            "activations at the end of a forward pass": self.kept_activations,
            **{f"all at the peak of the {phase}": value for phase, value in self.peaks.items()},
            "further sums, in host memory where there is no room": self.host_sums,
        }
        return [f"{name:<52} {value / GIB:8.2f} GiB" for name, value in held.items()]

    def sentence(self) -> str:
        """Return the plan in one line."""
        phase = max(self.peaks, key=self.peaks.__getitem__)
        held = f"a step of {self.micro_batch_tokens:,} tokens at a time holds {self.peak / GIB:.2f} GiB, in the {phase}"
        return f"{held}, and needs a device of {self.needed / 1e9:.1f} GB"


def plan_memory(config: TrainingConfig, vocabulary_size: int, num_tokens: int, is_on_gpu: bool) -> MemoryPlan:
    """Return the plan of a step whose rows have `num_tokens`, with the operations of a GPU or those of a CPU."""
    is_launched = is_on_gpu and HAS_TRITON and not is_interpreting()
    with (
        caught_launches(_launch_nothing) if is_launched else nullcontext(),
        torch.device("meta"),
        AllocationWatch() as watch,
    ):
        return _take_step(watch, config, vocabulary_size, num_tokens, is_on_gpu)


def require_fit(plan: MemoryPlan, device_memory: int, subject: str) -> None:
    """Raise TrainingError unless a device of that many bytes holds the plan."""
    if plan.needed > device_memory:
        raise TrainingError(subject, plan.sentence(), "", _SMALLER)


def _launch_nothing(*arguments: Any, **options: Any) -> None:
    """Take the place of a launch, which allocates nothing."""


def _take_step(
    watch: AllocationWatch, config: TrainingConfig, vocabulary_size: int, num_tokens: int, is_on_gpu: bool
) -> MemoryPlan:
    model = HybridModel(config.model, vocabulary_size)
    freeze(model, config.frozen)
    model.dtype = getattr(torch, config.dtype)
    # FlexAttention, which refuses the meta device, keeps what flash attention keeps.
    is_flex = config.attention is AttentionChoice.FLEX
    model.attention = AttentionPlan(AttentionChoice.VARLEN if is_flex else config.attention, PLANNED_DOCUMENTS)
    if config.activation_checkpointing:
        checkpoint_activations(model)
    weights = watch.held
    optimizer = build_optimizer(model, config.optimizer)
    state = watch.held - weights
    parameters = [each for each in model.parameters() if each.requires_grad]
    num_sums = config.num_micro_batches.bit_length() - 1
    num_put_away = max(0, num_sums - 1) if is_on_gpu else 0
    waiting = (num_sums - num_put_away) * sum(each.nbytes for each in parameters)
    # Memory that a GPU copies to is allocated by powers of two.
    host_sums = num_put_away * sum(1 << (each.nbytes - 1).bit_length() for each in parameters)
    with cast_once(model) as casts:
        cast = watch.held - weights - state
        batch = _batch(config, num_tokens)
        before = watch.held
        loss, _ = model.loss(batch, torch.ones((), dtype=torch.int64))
        kept = watch.held - before
        forward = watch.mark()
        with counted_once(model):
            loss.backward()  # type: ignore[no-untyped-call]  # torch's own signature
        del loss, batch
        gradients = [take_gradient(each, casts.get(each, each)) for each in parameters]
    backward = watch.mark()
    for parameter in parameters:
        parameter.grad = gradients.pop(0)
    clip_gradients(model.named_parameters(), config.optimizer.max_gradient_norm)
    optimizer.step()
    peaks = {"forward pass": forward + waiting, "backward pass": backward + waiting, "update": watch.mark()}
    micro_batch_tokens = config.batch_rows // config.num_micro_batches * num_tokens
    return MemoryPlan(micro_batch_tokens, weights, state, cast, waiting, kept, peaks, host_sums)


def _batch(config: TrainingConfig, num_tokens: int) -> TrainingBatch:
    shape = (config.batch_rows // config.num_micro_batches, num_tokens)
    columns = [torch.zeros(shape, dtype=dtype) for dtype in (torch.int64, torch.int64, torch.bool, torch.int32)]
    structure = [torch.zeros(shape, dtype=torch.uint8)] * 2 if config.model.structure else []
    return TrainingBatch(*columns, *structure)


_SMALLER = (
    "Set activation_checkpointing=true, or a smaller --micro-batch-rows, or start several ranks with --shard; "
    "`python -m trainer memory --preset NAME` shows what is held when."
)
