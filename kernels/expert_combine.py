"""Expert combine: each token's weighted sum of the results in its slots.

    out_m = sum_{k<K} weight_mk * results_{slot(m,k)}, k in order; a pair without a slot adds nothing

    dresults_s = weight_{pair(s)} * g_{pair(s) div K}, or 0 for an empty slot      dweight_mk = <g_m, results_{slot(m,k)}>

`pairs_S` and `slots_MK` are each other's inverse, as in `expert_dispatch`: all directions are gathers, no atomics.

Shapes: M tokens, K choices, S = experts * capacity slots, D width. Sums are float32 (float64 for float64 inputs); the
result has the dtype of the results, the gradient of the weights that of the weights. Source: the capacity slots of
Lepikhin et al. 2020, arXiv 2006.16668.
"""

import torch
from torch import Tensor

from kernels.expert_dispatch import (
    PLACEMENT_CASES,
    REAL_PLACEMENT_CASES,
    TILE_ROWS,
    row_grid,
    rows_of_slots,
    sample_placement,
)
from kernels.framework.backend import runs_kernel, tl, triton
from kernels.framework.configurations import launch_options, tile_class
from kernels.framework.operands import sum_dtype
from kernels.framework.operation import empty_like, operation, register_gradients
from kernels.framework.spec import Argument, KernelSpec, ShapeCase


def expert_combine_reference(results_SD: Tensor, weights_MK: Tensor, slots_MK: Tensor, pairs_S: Tensor) -> Tensor:
    """Compute the definition in plain torch: (M, D) in the dtype of the results. `pairs_S` is for the kernel's gradient."""
    num_slots, wide = results_SD.shape[0], sum_dtype(results_SD, weights_MK)
    rows_MKD = results_SD[slots_MK.clamp(max=num_slots - 1)].to(wide)
    kept_MKD = torch.where((slots_MK < num_slots).unsqueeze(-1), rows_MKD, 0.0)
    return (kept_MKD * weights_MK.to(wide).unsqueeze(-1)).sum(dim=1).to(results_SD.dtype)


@triton.jit
def _forward_kernel(
    results_ptr, weights_ptr, slots_ptr, out_ptr, num_tokens, num_slots,
    NUM_CHOICES: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    tokens = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    is_token, is_column = tokens < num_tokens, (columns < WIDTH)[None, :]
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for choice in tl.static_range(NUM_CHOICES):
        slots = tl.load(slots_ptr + tokens * NUM_CHOICES + choice, mask=is_token, other=num_slots)
        is_kept = slots < num_slots
        weight = tl.load(weights_ptr + tokens * NUM_CHOICES + choice, mask=is_kept, other=0.0).to(tl.float32)
        sources = results_ptr + slots[:, None] * WIDTH + columns[None, :]
        rows = tl.load(sources, mask=is_kept[:, None] & is_column, other=0.0).to(tl.float32)
        total += weight[:, None] * rows
    places = tokens[:, None] * WIDTH + columns[None, :]
    tl.store(out_ptr + places, total.to(out_ptr.dtype.element_ty), mask=is_token[:, None] & is_column)


@triton.jit
def _results_backward_kernel(
    grad_ptr, weights_ptr, pairs_ptr, grad_results_ptr, num_slots, num_pairs,
    NUM_CHOICES: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    slots = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    is_column = (columns < WIDTH)[None, :]
    pairs = tl.load(pairs_ptr + slots, mask=slots < num_slots, other=num_pairs)
    is_full = pairs < num_pairs
    weight = tl.load(weights_ptr + pairs, mask=is_full, other=0.0).to(tl.float32)
    sources = grad_ptr + (pairs // NUM_CHOICES)[:, None] * WIDTH + columns[None, :]
    rows = tl.load(sources, mask=is_full[:, None] & is_column, other=0.0).to(tl.float32)
    places = slots[:, None] * WIDTH + columns[None, :]
    grad_results = (weight[:, None] * rows).to(grad_results_ptr.dtype.element_ty)
    tl.store(grad_results_ptr + places, grad_results, mask=(slots < num_slots)[:, None] & is_column)


@triton.jit
def _weights_backward_kernel(
    grad_ptr, results_ptr, slots_ptr, grad_weights_ptr, num_tokens, num_slots,
    NUM_CHOICES: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    tokens = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    is_token = tokens < num_tokens
    for choice in tl.static_range(NUM_CHOICES):
        slots = tl.load(slots_ptr + tokens * NUM_CHOICES + choice, mask=is_token, other=num_slots)
        is_kept = slots < num_slots
        total = tl.zeros([ROWS, COLUMNS], tl.float32)
        for first in range(0, WIDTH, COLUMNS):
            columns = first + tl.arange(0, COLUMNS)
            mask = is_kept[:, None] & (columns < WIDTH)[None, :]
            grad = tl.load(grad_ptr + tokens[:, None] * WIDTH + columns[None, :], mask=mask, other=0.0)
            rows = tl.load(results_ptr + slots[:, None] * WIDTH + columns[None, :], mask=mask, other=0.0)
            total += grad.to(tl.float32) * rows.to(tl.float32)
        grad_weight = tl.sum(total, axis=1).to(grad_weights_ptr.dtype.element_ty)
        tl.store(grad_weights_ptr + tokens * NUM_CHOICES + choice, grad_weight, mask=is_token)


@operation(lambda results, weights, slots, pairs: results.new_empty((weights.shape[0], results.shape[1])))
def expert_combine_op(results_SD: Tensor, weights_MK: Tensor, slots_MK: Tensor, pairs_S: Tensor) -> Tensor:
    """Run the operation: return (M, D) in the dtype of the results. `pairs_S` is for the gradient."""
    (num_slots, width), (num_tokens, num_choices) = results_SD.shape, weights_MK.shape
    if not (results_SD.numel() and weights_MK.numel()):
        return results_SD.new_zeros((num_tokens, width))
    if not runs_kernel("expert_combine", results_SD, weights_MK):
        wide = sum_dtype(results_SD, weights_MK)
        weights_MK = weights_MK.to(wide)
        total_MD = torch.zeros((num_tokens, width), dtype=wide, device=results_SD.device)
        for choice in range(num_choices):
            total_MD.addcmul_(rows_of_slots(results_SD, slots_MK[:, choice]).to(wide), weights_MK[:, choice, None])
        return total_MD.to(results_SD.dtype)
    out_MD = torch.empty((num_tokens, width), dtype=results_SD.dtype, device=results_SD.device)
    grid, columns = row_grid(num_tokens, width)
    _forward_kernel[grid](
        results_SD.contiguous(), weights_MK.contiguous(), slots_MK.contiguous(), out_MD, num_tokens, num_slots,
        num_choices, width, TILE_ROWS, columns,
        **launch_options("expert_combine.forward", tile_class(TILE_ROWS * columns), results_SD.device),
    )  # fmt: skip
    return out_MD


@operation(lambda grad, results, weights, slots, pairs: empty_like(results, weights))
def expert_combine_backward_op(
    grad_MD: Tensor, results_SD: Tensor, weights_MK: Tensor, slots_MK: Tensor, pairs_S: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of `results_SD` and `weights_MK`."""
    (num_slots, width), (num_tokens, num_choices) = results_SD.shape, weights_MK.shape
    if not (results_SD.numel() and weights_MK.numel()):
        return results_SD.new_zeros(results_SD.shape), weights_MK.new_zeros(weights_MK.shape)
    if not runs_kernel("expert_combine", results_SD, weights_MK):
        return _backward_in_torch(grad_MD, results_SD, weights_MK, slots_MK, pairs_S)
    grad_MD, results_SD, weights_MK = grad_MD.contiguous(), results_SD.contiguous(), weights_MK.contiguous()
    grad_results_SD, grad_weights_MK = torch.empty_like(results_SD), torch.empty_like(weights_MK)
    (num_tiles, _), columns = row_grid(num_tokens, width)
    sizes, shape_class = (num_choices, width, TILE_ROWS, columns), tile_class(TILE_ROWS * columns)
    _results_backward_kernel[row_grid(num_slots, width)[0]](
        grad_MD, weights_MK, pairs_S.contiguous(), grad_results_SD, num_slots, weights_MK.numel(),
        *sizes, **launch_options("expert_combine.results_backward", shape_class, grad_MD.device),
    )  # fmt: skip
    _weights_backward_kernel[(num_tiles,)](
        grad_MD, results_SD, slots_MK.contiguous(), grad_weights_MK, num_tokens, num_slots,
        *sizes, **launch_options("expert_combine.weights_backward", shape_class, grad_MD.device),
    )  # fmt: skip
    return grad_results_SD, grad_weights_MK


register_gradients(expert_combine_op, expert_combine_backward_op, lambda inputs, output: inputs)


def _backward_in_torch(
    grad_MD: Tensor, results_SD: Tensor, weights_MK: Tensor, slots_MK: Tensor, pairs_S: Tensor
) -> tuple[Tensor, Tensor]:
    num_choices, num_pairs, wide = weights_MK.shape[1], weights_MK.numel(), sum_dtype(results_SD, weights_MK)
    grad_MD = grad_MD.to(wide)
    sources_S = pairs_S.clamp(max=num_pairs - 1)
    grad_results_SD = grad_MD.index_select(0, sources_S.div(num_choices, rounding_mode="floor"))
    grad_results_SD.mul_(weights_MK.to(wide).flatten().index_select(0, sources_S).unsqueeze(-1))
    grad_results_SD.masked_fill_((pairs_S >= num_pairs).unsqueeze(-1), 0.0)
    grad_weights = [
        rows_of_slots(results_SD, slots_MK[:, choice]).to(wide).mul_(grad_MD).sum(dim=1)
        for choice in range(num_choices)
    ]
    grad_weights_MK = torch.stack(grad_weights, dim=1).masked_fill_(slots_MK >= results_SD.shape[0], 0.0)
    return grad_results_SD.to(results_SD.dtype), grad_weights_MK.to(weights_MK.dtype)


def expert_combine(results_SD: Tensor, weights_MK: Tensor, slots_MK: Tensor, pairs_S: Tensor) -> Tensor:
    """Return each token's weighted sum (M, D) of the results in its slots, in the order of its choices.

    `slots_MK` (S if dropped) and `pairs_S` (M K if empty) are int64 and each other's inverse; neither is checked.
    """
    return expert_combine_op(results_SD, weights_MK, slots_MK, pairs_S)


def _sample_inputs(generator: torch.Generator, dtype: torch.dtype, case: ShapeCase) -> tuple[Argument, ...]:
    """Draw results of about unit size and positive weights; the sizes are tokens, choices, experts, capacity and width."""
    num_tokens, num_choices, num_experts, capacity, width = case.sizes
    shape = (num_experts * capacity, width)
    results_SD = torch.randn(shape, generator=generator, device=generator.device).to(dtype)
    weights_MK = torch.rand((num_tokens, num_choices), generator=generator, device=generator.device).to(dtype)
    pairs_S, slots_MK = sample_placement(generator, case)
    return results_SD, weights_MK, slots_MK, pairs_S


SPEC = KernelSpec(
    name="expert_combine",
    reference=expert_combine_reference,
    op=expert_combine,
    sample_inputs=_sample_inputs,
    cases=PLACEMENT_CASES,
    real_cases=REAL_PLACEMENT_CASES,
    tolerance_eps=6.0,
    tolerance_reason=(
        "half an eps for each of K products and sums; the gradient of a weight adds D products, whose rounding grows with "
        "the root of D over tiles of 256 and then as a tree; one more at a store in lower precision"
    ),
)
