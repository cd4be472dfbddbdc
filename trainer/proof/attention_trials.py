"""Trials of the attention backends on a device: error against float64, repeatability, document isolation and time.

Rows hold documents of uneven lengths, padding at the end. The pick is the fastest backend that repeats, isolates documents and is
as near as its dtype allows; it is reported and not applied: `--attention` does that.

Shapes: B rows, T tokens of a row, H query heads, G key/value heads, E head size.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from pipeline.core.errors import TrainingError
from trainer.config.choices import AttentionChoice, Precision
from trainer.model.attention_backends import BACKENDS, plan
from trainer.model.document_attention import AttentionPlan, DenseMask, plan_inputs

NUM_RUNS, NUM_TIMED = 3, 10
MAX_ERROR_EPS = {Precision.FLOAT32: 32.0, Precision.BFLOAT16: 8.0}
"""Bound of max|found - reference| / max|reference| in units of the dtype's epsilon. In bfloat16 weights, slopes and results are
rounded once each and sums are float32; in float32 an exponential turns a score's rounding into as many as the score is large."""


class TrialShape(NamedTuple):
    """Size of a trial. `lengths` are those of the documents of a row; the rest is padding."""

    num_rows: int
    num_query_heads: int
    num_key_value_heads: int
    head_size: int
    num_tokens: int
    lengths: tuple[int, ...]


GPU_TRIAL = TrialShape(4, 32, 8, 64, 4096, (1, 300, 1291, 128, 77, 2000))
CPU_TRIAL = TrialShape(2, 4, 2, 16, 96, (1, 30, 50))


@dataclass(frozen=True)
class AttentionTrial:
    """Trial of one backend in one dtype. If it cannot run, `found` says why, and `error_eps` and the rest are None."""

    device: str
    dtype: str
    choice: str
    found: str
    error_eps: float | None = None
    is_repeatable: bool | None = None
    is_isolated: bool | None = None
    milliseconds: float | None = None

    @property
    def is_good(self) -> bool:
        """True where a training may use it."""
        near = self.error_eps is not None and self.error_eps <= MAX_ERROR_EPS[Precision(self.dtype)]
        return near and self.is_repeatable is True and self.is_isolated is True


def try_attention(device: str) -> list[AttentionTrial]:
    """Try every backend in both dtypes, also those that cannot run."""
    shape = GPU_TRIAL if device.startswith("cuda") else CPU_TRIAL
    return [_trial(choice, dtype, device, shape) for dtype in Precision for choice in BACKENDS]


def pick(trials: Sequence[AttentionTrial], dtype: Precision) -> str | None:
    """Return the fastest good backend of a dtype on the last device that was tried."""
    good = [trial for trial in trials if trial.dtype == dtype and trial.is_good and trial.device == trials[-1].device]
    return min(good, key=lambda trial: trial.milliseconds or 0.0).choice if good else None


def _trial(choice: AttentionChoice, dtype: Precision, device: str, shape: TrialShape) -> AttentionTrial:
    try:
        planned = plan(choice, shape.head_size, dtype, device, lambda: len(shape.lengths) + 1)
        return _measured(planned, dtype, device, shape)
    except TrainingError as error:
        return AttentionTrial(device, dtype, choice, f"cannot run: {error.found}")
    except (RuntimeError, NotImplementedError) as error:
        return AttentionTrial(device, dtype, choice, f"FAILED: {str(error).strip().splitlines()[0][:100]}")


def _measured(planned: AttentionPlan, dtype: Precision, device: str, shape: TrialShape) -> AttentionTrial:
    inputs = made_inputs(shape, dtype, device)
    results = [attend_by(planned, shape.lengths, inputs) for _ in range(NUM_RUNS)]
    is_repeatable = all(_equal(results[0], other) for other in results[1:])
    error_eps = max(errors(results[0], shape.lengths, inputs)) / torch.finfo(getattr(torch, dtype)).eps
    is_isolated = keeps_apart(planned, shape, inputs, results[0])
    milliseconds = _milliseconds(planned, shape, inputs, device)
    words = [
        f"{error_eps:.1f} eps from float64" + ("" if error_eps <= MAX_ERROR_EPS[dtype] else ", TOO FAR"),
        "the same bits again" if is_repeatable else "OTHER BITS again",
        "documents apart" if is_isolated else "DOCUMENTS TOUCH",
        f"{milliseconds:.2f} ms",
    ]
    return AttentionTrial(
        device, dtype, planned.choice, "; ".join(words), error_eps, is_repeatable, is_isolated, milliseconds
    )


def made_inputs(shape: TrialShape, dtype: Precision, device: str) -> list[Tensor]:
    """Return queries (B, H, T, E), keys and values (B, G, T, E), and the incoming gradient, in the layout of the projections."""
    generator = torch.Generator().manual_seed(42)
    heads = (shape.num_query_heads, shape.num_key_value_heads, shape.num_key_value_heads, shape.num_query_heads)
    drawn = (torch.randn(shape.num_rows, shape.num_tokens, n, shape.head_size, generator=generator) for n in heads)
    return [each.to(device, getattr(torch, dtype)).transpose(1, 2) for each in drawn]


def segments_of(lengths: Sequence[int], num_rows: int, num_tokens: int, device: str) -> Tensor:
    """Return segment ids (B, T) of equal rows of documents of these lengths, followed by padding."""
    counts = torch.tensor([*lengths, num_tokens - sum(lengths)])
    ids_T = torch.repeat_interleave(torch.arange(len(counts)), counts)
    return ids_T.expand(num_rows, -1).contiguous().to(device)


def attend_by(planned: AttentionPlan, lengths: Sequence[int], inputs: Sequence[Tensor]) -> list[Tensor]:
    """Return the result, and the gradients of queries, keys and values."""
    query, key, value = (each.detach().clone().requires_grad_() for each in inputs[:3])
    segment_ids_BT = segments_of(lengths, query.shape[0], query.shape[2], str(query.device))
    mixed = plan_inputs(segment_ids_BT, planned).attend(query, key, value)
    return [mixed.detach(), *torch.autograd.grad(mixed, (query, key, value), inputs[3])]


def errors(results: Sequence[Tensor], lengths: Sequence[int], inputs: Sequence[Tensor]) -> list[float]:
    """Return the distance of each result to float64, over the largest value there; row by row, to save memory."""
    distances, sizes = [0.0] * len(results), [0.0] * len(results)
    for row in range(len(inputs[0])):
        exact = _exact([each[row : row + 1].double() for each in inputs], lengths)
        for place, (found, expected) in enumerate(zip(results, exact, strict=True)):
            distance = (found[row : row + 1].double() - expected).abs().max()
            distances[place] = max(distances[place], float(distance.nan_to_num(nan=torch.inf)))
            sizes[place] = max(sizes[place], float(expected.abs().max()))
    return [distance / size for distance, size in zip(distances, sizes, strict=True)]


def keeps_apart(planned: AttentionPlan, shape: TrialShape, inputs: Sequence[Tensor], before: Sequence[Tensor]) -> bool:
    """Return whether results and gradients of a document keep every bit if all others change: first numbers, then lengths.

    The document is the third; the border between the first two moves, and the last ones become one.
    """
    first = sum(shape.lengths[:2])
    kept = slice(first, first + shape.lengths[2])
    others = [each.flip(2) for each in inputs]
    for changed, mine in zip(others, inputs, strict=True):
        changed[:, :, kept] = mine[:, :, kept]
    one, other, own, *rest = shape.lengths
    moved = (other, one, own, *([sum(rest)] if rest else []))
    after = (attend_by(planned, lengths, others) for lengths in (shape.lengths, moved))
    before = [each[:, :, kept] for each in before]
    return all(_equal(before, [each[:, :, kept] for each in found]) for found in after)


def _exact(inputs: Sequence[Tensor], lengths: Sequence[int]) -> list[Tensor]:
    """Compute results and gradients in float64, document by document, without a mask."""
    query, key, value = (each.detach().clone().requires_grad_() for each in inputs[:3])
    ends = [*torch.tensor(lengths).cumsum(0).tolist(), query.shape[2]]
    parts = []
    for first, end in zip([0, *ends[:-1]], ends, strict=True):
        alone = [each[:, :, first:end] for each in (query, key, value)]
        parts.append(DenseMask.of(torch.zeros(1, end - first, dtype=torch.int64, device=query.device)).attend(*alone))
    mixed = torch.cat(parts, dim=2)
    return [mixed.detach(), *torch.autograd.grad(mixed, (query, key, value), inputs[3])]


def _milliseconds(planned: AttentionPlan, shape: TrialShape, inputs: Sequence[Tensor], device: str) -> float:
    """Time forward and backward of one layer, with the layout computed before."""
    query, key, value = (each.detach().clone().requires_grad_() for each in inputs[:3])
    layout = plan_inputs(segments_of(shape.lengths, shape.num_rows, shape.num_tokens, device), planned)
    is_gpu = device.startswith("cuda")
    began = 0.0
    for number in range(NUM_TIMED + 1):
        if number == 1:
            _ = torch.cuda.synchronize() if is_gpu else None
            began = time.perf_counter()
        torch.autograd.grad(layout.attend(query, key, value), (query, key, value), inputs[3])
    _ = torch.cuda.synchronize() if is_gpu else None
    return 1000 * (time.perf_counter() - began) / NUM_TIMED


def _equal(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    return all(torch.equal(mine, theirs) for mine, theirs in zip(one, other, strict=True))
