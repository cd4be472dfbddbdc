"""Expert dispatch: each token's vector to the slots of the experts that it chose.

    slots_s = tokens_{pair(s) div K}, or 0 for an empty slot        dtokens_m = sum_{k<K} dslots_{slot(m,k)}, k in order

`pairs_S` and `slots_MK` are each other's inverse: pair q = m K + k is in slot s. An empty slot names the pair M K, a
pair without a slot names the slot S (the dump row), which is never read or written. Every kept slot is unique, so both
directions are gathers: no atomics, one order of summation, and nothing flows through a pair without a slot.

Shapes: M tokens, K choices, S = experts * capacity slots, D width. Sums are float32 (float64 for float64 inputs).
Source: the capacity slots of Lepikhin et al. 2020, arXiv 2006.16668.
"""

import torch
from torch import Tensor

from kernels.framework.backend import runs_kernel, tl, triton
from kernels.framework.configurations import launch_options, tile_class
from kernels.framework.operands import sum_dtype
from kernels.framework.operation import operation, register_gradients
from kernels.framework.spec import Argument, KernelSpec, ShapeCase

TILE_ROWS, MAX_TILE_COLUMNS = 16, 256


def expert_dispatch_reference(tokens_MD: Tensor, pairs_S: Tensor, slots_MK: Tensor) -> Tensor:
    """Compute the definition in plain torch: (S, D) in the dtype of the tokens."""
    num_pairs = slots_MK.numel()
    sources_S = pairs_S.clamp(max=num_pairs - 1) // slots_MK.shape[1]
    return torch.where((pairs_S < num_pairs).unsqueeze(-1), tokens_MD[sources_S], 0.0)


@triton.jit
def _forward_kernel(
    tokens_ptr, pairs_ptr, out_ptr, num_slots, num_pairs, token_stride,
    NUM_CHOICES: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    slots = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    pairs = tl.load(pairs_ptr + slots, mask=slots < num_slots, other=num_pairs)
    is_column = (columns < WIDTH)[None, :]
    sources = tokens_ptr + (pairs // NUM_CHOICES)[:, None] * token_stride + columns[None, :]
    rows = tl.load(sources, mask=(pairs < num_pairs)[:, None] & is_column, other=0.0)
    tl.store(out_ptr + slots[:, None] * WIDTH + columns[None, :], rows, mask=(slots < num_slots)[:, None] & is_column)


@triton.jit
def _backward_kernel(
    grad_ptr, slots_ptr, grad_tokens_ptr, num_tokens, num_slots,
    NUM_CHOICES: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    tokens = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    is_column = (columns < WIDTH)[None, :]
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for choice in tl.static_range(NUM_CHOICES):
        slots = tl.load(slots_ptr + tokens * NUM_CHOICES + choice, mask=tokens < num_tokens, other=num_slots)
        mask = (slots < num_slots)[:, None] & is_column
        total += tl.load(grad_ptr + slots[:, None] * WIDTH + columns[None, :], mask=mask, other=0.0).to(tl.float32)
    places = tokens[:, None] * WIDTH + columns[None, :]
    mask = (tokens < num_tokens)[:, None] & is_column
    tl.store(grad_tokens_ptr + places, total.to(grad_tokens_ptr.dtype.element_ty), mask=mask)


@operation(lambda tokens, pairs, slots: tokens.new_empty((pairs.shape[0], tokens.shape[1])))
def expert_dispatch_op(tokens_MD: Tensor, pairs_S: Tensor, slots_MK: Tensor) -> Tensor:
    """Run the operation: return (S, D) in the dtype of the tokens."""
    num_pairs, num_choices = slots_MK.numel(), slots_MK.shape[1]
    if not tokens_MD.numel():
        return tokens_MD.new_zeros((pairs_S.shape[0], tokens_MD.shape[1]))
    if not runs_kernel("expert_dispatch", tokens_MD):
        is_empty_S1 = (pairs_S >= num_pairs).unsqueeze(-1)
        sources_S = pairs_S.clamp(max=num_pairs - 1).div_(num_choices, rounding_mode="floor")
        return tokens_MD.index_select(0, sources_S).masked_fill_(is_empty_S1, 0.0)
    tokens_MD = tokens_MD if tokens_MD.stride(-1) == 1 else tokens_MD.contiguous()
    width, num_slots = tokens_MD.shape[1], pairs_S.shape[0]
    out_SD = torch.empty((num_slots, width), dtype=tokens_MD.dtype, device=tokens_MD.device)
    grid, columns = row_grid(num_slots, width)
    _forward_kernel[grid](
        tokens_MD, pairs_S.contiguous(), out_SD, num_slots, num_pairs, tokens_MD.stride(0),
        num_choices, width, TILE_ROWS, columns,
        **launch_options("expert_dispatch.forward", tile_class(TILE_ROWS * columns), tokens_MD.device),
    )  # fmt: skip
    return out_SD


@operation(lambda grad, slots: grad.new_empty((slots.shape[0], grad.shape[1])))
def expert_dispatch_backward_op(grad_SD: Tensor, slots_MK: Tensor) -> Tensor:
    """Return the gradient (M, D) of the tokens."""
    (num_slots, width), (num_tokens, num_choices) = grad_SD.shape, slots_MK.shape
    if not grad_SD.numel():
        return grad_SD.new_zeros((num_tokens, width))
    if not runs_kernel("expert_dispatch", grad_SD):
        wide = sum_dtype(grad_SD)
        total_MD = torch.zeros((num_tokens, width), dtype=wide, device=grad_SD.device)
        for choice in range(num_choices):
            total_MD += rows_of_slots(grad_SD, slots_MK[:, choice]).to(wide)
        return total_MD.to(grad_SD.dtype)
    grad_tokens_MD = torch.empty((num_tokens, width), dtype=grad_SD.dtype, device=grad_SD.device)
    grid, columns = row_grid(num_tokens, width)
    _backward_kernel[grid](
        grad_SD.contiguous(), slots_MK.contiguous(), grad_tokens_MD, num_tokens, num_slots,
        num_choices, width, TILE_ROWS, columns,
        **launch_options("expert_dispatch.backward", tile_class(TILE_ROWS * columns), grad_SD.device),
    )  # fmt: skip
    return grad_tokens_MD


register_gradients(expert_dispatch_op, expert_dispatch_backward_op, lambda inputs, output: (inputs[2],))


def rows_of_slots(rows_SD: Tensor, slots_Q: Tensor) -> Tensor:
    """Return the row of each slot in plain torch, zeros for the dump row, which is not read: empty slots may hold a NaN."""
    num_slots = rows_SD.shape[0]
    rows_QD = rows_SD.index_select(0, slots_Q.clamp(max=num_slots - 1))
    return rows_QD.masked_fill_((slots_Q >= num_slots).unsqueeze(-1), 0.0)


def row_grid(num_rows: int, width: int) -> tuple[tuple[int, int], int]:
    """Return a grid over tiles of rows and columns, and the columns of a tile."""
    columns = min(MAX_TILE_COLUMNS, triton.next_power_of_2(width))
    return (max(1, triton.cdiv(num_rows, TILE_ROWS)), triton.cdiv(width, columns)), columns


def expert_dispatch(tokens_MD: Tensor, pairs_S: Tensor, slots_MK: Tensor) -> Tensor:
    """Return the vectors (S, D) in the experts' slots, zeros where a slot is empty.

    `pairs_S` (M K if empty) and `slots_MK` (S if dropped) are int64 and each other's inverse; neither is checked.
    """
    return expert_dispatch_op(tokens_MD, pairs_S, slots_MK)


def sample_placement(generator: torch.Generator, case: ShapeCase) -> tuple[Tensor, Tensor]:
    """Draw `pairs_S` and `slots_MK` of random choices, for M, K, E and a capacity: the first four sizes of a case."""
    num_tokens, num_choices, num_experts, capacity = case.sizes[:4]
    pairs = [num_tokens * num_choices] * (num_experts * capacity)
    slots, taken = [], [0] * num_experts
    scores = torch.rand((num_tokens, num_experts), generator=generator, device=generator.device)
    for pair, expert in enumerate(scores.argsort(dim=1)[:, :num_choices].flatten().tolist()):
        is_kept = taken[expert] < capacity
        slots.append(expert * capacity + taken[expert] if is_kept else len(pairs))
        if is_kept:
            pairs[slots[-1]] = pair
            taken[expert] += 1
    device = generator.device
    return torch.tensor(pairs, device=device), torch.tensor(slots, device=device).view(num_tokens, num_choices)


def _sample_inputs(generator: torch.Generator, dtype: torch.dtype, case: ShapeCase) -> tuple[Argument, ...]:
    """Draw tokens of about unit size; the sizes are tokens, choices, experts, capacity and width."""
    shape = (case.sizes[0], case.sizes[4])
    tokens_MD = torch.randn(shape, generator=generator, device=generator.device).to(dtype)
    return tokens_MD, *sample_placement(generator, case)


PLACEMENT_CASES = (
    ShapeCase((20, 2, 4, 20, 300), "room for all, empty slots, two tiles of columns"),
    ShapeCase((9, 2, 3, 2, 16), "pairs without a slot"),
    ShapeCase((5, 1, 1, 8, 3), "one expert takes every token"),
    ShapeCase((1, 3, 40, 1, 1), "one token, and experts that nobody chose"),
)

REAL_PLACEMENT_CASES = (ShapeCase((4096, 4, 16, 1280, 1024), "16 experts, top 4, the capacity of 4,096 tokens"),)

SPEC = KernelSpec(
    name="expert_dispatch",
    reference=expert_dispatch_reference,
    op=expert_dispatch,
    sample_inputs=_sample_inputs,
    cases=PLACEMENT_CASES,
    real_cases=REAL_PLACEMENT_CASES,
    tolerance_eps=2.0,
    tolerance_reason="forward: none, rows are copied; gradient: half an eps for each of K - 1 additions and the store",
)
