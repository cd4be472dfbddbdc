"""Engram's lookup: the table rows that each token's n-grams hash to, and the gradient of the table.

    mix_n(t) = XOR_{k<n} class(t-k) * m_k      row_j(t) = mix_n(t) mod p_j + offset_j      memory_tj = table[row_j(t)]

    dtable_r = sum of dmemory_tj over the (t, j) with row_j(t) = r, in the order of (t, j)

Orders n run from 2, each with H lookups. The class of a token is its id; a token of another document, or before the row,
is the pad class. All int64; a product that overflows wraps, and the remainder is never negative.

The gradient: sort the looked-up rows (stable), cut each run of equal rows where the sorted positions cross a multiple of
`PIECE`, add up each piece in order, then the pieces of a run in order. Each sum has one program, so there are no atomics.

Shapes: B rows, T tokens of a row, N = B T, O orders, H lookups of an order, J = O H, K = O + 1 tokens of the longest
window, W width of a table row, R table rows, L = N J lookups. Source: Engram (DeepSeek-AI, 2026), arXiv 2601.07372.
"""

import torch
from torch import Tensor
from torch.nn import functional

from kernels.framework.backend import runs_kernel, tl, triton
from kernels.framework.configurations import launch_options
from kernels.framework.operands import sample_positions
from kernels.framework.operation import operation, register_gradients
from kernels.framework.spec import Argument, KernelSpec, ShapeCase

FORWARD_TOKENS, BACKWARD_LOOKUPS, PIECE = 32, 16, 32


def engram_rows(
    input_ids_BT: Tensor,
    positions_BT: Tensor,
    multipliers_K: Tensor,
    table_sizes_OH: Tensor,
    offsets_J: Tensor,
    pad_class: int,
) -> Tensor:
    """Return the hash in plain torch: rows (B, T, J) of the joined table, int64."""
    num_tokens = input_ids_BT.shape[1]
    mix_BT = input_ids_BT * multipliers_K[0]
    rows_by_order = []
    for distance in range(1, table_sizes_OH.shape[0] + 1):
        earlier_BT = functional.pad(input_ids_BT, (distance, 0))[:, :num_tokens]
        classes_BT = torch.where(positions_BT >= distance, earlier_BT, pad_class)
        mix_BT = mix_BT ^ (classes_BT * multipliers_K[distance])
        rows_by_order.append(mix_BT.unsqueeze(-1) % table_sizes_OH[distance - 1])
    return torch.cat(rows_by_order, dim=-1) + offsets_J


def engram_lookup_reference(
    table_RW: Tensor,
    input_ids_BT: Tensor,
    positions_BT: Tensor,
    multipliers_K: Tensor,
    table_sizes_OH: Tensor,
    offsets_J: Tensor,
    pad_class: int,
) -> Tensor:
    """Compute the definition in plain torch: memory (B, T, J, W) in the dtype of the table."""
    return table_RW[engram_rows(input_ids_BT, positions_BT, multipliers_K, table_sizes_OH, offsets_J, pad_class)]


@triton.jit
def _forward_kernel(
    table_ptr, ids_ptr, positions_ptr, multipliers_ptr, sizes_ptr, offsets_ptr, memory_ptr, rows_ptr,
    num_places, num_tokens, pad_class,
    NUM_ORDERS: tl.constexpr, NUM_HEADS: tl.constexpr, WIDTH: tl.constexpr,
    TOKENS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    places = tl.program_id(0).to(tl.int64) * TOKENS + tl.arange(0, TOKENS)
    columns = tl.arange(0, COLUMNS)
    is_inside = places < num_places
    inside = is_inside[:, None] & (columns < WIDTH)[None, :]
    positions = tl.load(positions_ptr + places, mask=is_inside, other=-1)
    mix = tl.load(ids_ptr + places, mask=is_inside, other=0).to(tl.int64) * tl.load(multipliers_ptr)
    for order in tl.static_range(NUM_ORDERS):
        is_same = is_inside & (places % num_tokens > order) & (positions > order)
        earlier = tl.load(ids_ptr + places - (order + 1), mask=is_same, other=0).to(tl.int64)
        classes = tl.where(is_same, earlier, pad_class)
        mix = mix ^ (classes * tl.load(multipliers_ptr + order + 1))
        for head in tl.static_range(NUM_HEADS):
            size = tl.load(sizes_ptr + order * NUM_HEADS + head)
            remainder = mix % size
            # The remainder of a negative number is negative here, and positive in torch.
            rows = tl.where(remainder < 0, remainder + size, remainder)
            rows += tl.load(offsets_ptr + order * NUM_HEADS + head)
            targets = (places * NUM_ORDERS + order) * NUM_HEADS + head
            tl.store(rows_ptr + targets, rows, mask=is_inside)
            memory = tl.load(table_ptr + rows[:, None] * WIDTH + columns[None, :], mask=inside, other=0.0)
            tl.store(memory_ptr + targets[:, None] * WIDTH + columns[None, :], memory, mask=inside)


@triton.jit
def _sum_runs_kernel(
    values_ptr, order_ptr, keys_ptr, sums_ptr, num_lookups,
    WIDTH: tl.constexpr, PIECE_SIZE: tl.constexpr, IS_FIRST_PASS: tl.constexpr,
    LOOKUPS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Sum each piece, stored where the piece begins (first pass), then the pieces of each run, by key (second pass)."""
    places = tl.program_id(0).to(tl.int64) * LOOKUPS + tl.arange(0, LOOKUPS)
    columns = tl.arange(0, COLUMNS)
    is_inside = places < num_lookups
    keys = tl.load(keys_ptr + places, mask=is_inside, other=-1)
    before = tl.load(keys_ptr + places - 1, mask=is_inside & (places > 0), other=-2)
    is_head = is_inside & (keys != before)
    if IS_FIRST_PASS:
        is_head = is_inside & ((keys != before) | (places % PIECE_SIZE == 0))
    is_active = is_head
    current = places
    total = tl.zeros([LOOKUPS, COLUMNS], tl.float32)
    while tl.sum(is_active.to(tl.int32), axis=0) > 0:
        mask = is_active[:, None] & (columns < WIDTH)[None, :]
        sources = current
        if IS_FIRST_PASS:
            sources = tl.load(order_ptr + current, mask=is_active, other=0)
        value = tl.load(values_ptr + sources[:, None] * WIDTH + columns[None, :], mask=mask, other=0.0)
        total += value.to(tl.float32)
        if IS_FIRST_PASS:
            current = current + 1
            is_active = is_active & (current < num_lookups) & (current % PIECE_SIZE != 0)
        else:
            current = (current // PIECE_SIZE + 1) * PIECE_SIZE
            is_active = is_active & (current < num_lookups)
        is_active = is_active & (tl.load(keys_ptr + current, mask=is_active, other=-3) == keys)
    targets = places
    if not IS_FIRST_PASS:
        targets = keys.to(tl.int64)
    mask = is_head[:, None] & (columns < WIDTH)[None, :]
    tl.store(sums_ptr + targets[:, None] * WIDTH + columns[None, :], total.to(sums_ptr.dtype.element_ty), mask=mask)


def _empty_lookup(table_RW, input_ids_BT, positions_BT, multipliers_K, table_sizes_OH, offsets_J, pad_class):
    shape = (*input_ids_BT.shape, table_sizes_OH.shape[0] * table_sizes_OH.shape[1])
    return table_RW.new_empty((*shape, table_RW.shape[1])), input_ids_BT.new_empty(shape, dtype=torch.int64)


@operation(_empty_lookup)
def engram_lookup_op(
    table_RW: Tensor,
    input_ids_BT: Tensor,
    positions_BT: Tensor,
    multipliers_K: Tensor,
    table_sizes_OH: Tensor,
    offsets_J: Tensor,
    pad_class: int,
) -> tuple[Tensor, Tensor]:
    """Run the operation: return memory (B, T, J, W) in the dtype of the table, and the rows (B, T, J) it is read from, int64."""
    if not runs_kernel("engram_lookup", table_RW):
        rows_BTJ = engram_rows(input_ids_BT, positions_BT, multipliers_K, table_sizes_OH, offsets_J, pad_class)
        return functional.embedding(rows_BTJ, table_RW), rows_BTJ
    (num_orders, num_heads), width = table_sizes_OH.shape, table_RW.shape[1]
    shape = (*input_ids_BT.shape, num_orders * num_heads)
    rows_BTJ = torch.empty(shape, dtype=torch.int64, device=table_RW.device)
    memory_BTJW = torch.empty((*shape, width), dtype=table_RW.dtype, device=table_RW.device)
    num_places = input_ids_BT.numel()
    if num_places:
        _forward_kernel[(triton.cdiv(num_places, FORWARD_TOKENS),)](
            table_RW.contiguous(), input_ids_BT.contiguous(), positions_BT.contiguous(),
            multipliers_K.contiguous(), table_sizes_OH.contiguous(), offsets_J.contiguous(), memory_BTJW, rows_BTJ,
            num_places, input_ids_BT.shape[1], pad_class,
            num_orders, num_heads, width, FORWARD_TOKENS, triton.next_power_of_2(width),
            **launch_options("engram_lookup.forward", "any", table_RW.device),
        )  # fmt: skip
    return memory_BTJW, rows_BTJ


@operation(lambda grad, rows, num_rows: grad.new_empty((num_rows, grad.shape[-1])))
def engram_lookup_backward_op(grad_BTJW: Tensor, rows_BTJ: Tensor, num_rows: int) -> Tensor:
    """Return the gradient (R, W) of a table of `num_rows` rows, in the dtype of the incoming gradient."""
    if not runs_kernel("engram_lookup", grad_BTJW):
        return torch.ops.aten.embedding_dense_backward(grad_BTJW, rows_BTJ, num_rows, -1, False)
    width, num_lookups = grad_BTJW.shape[-1], rows_BTJ.numel()
    grad_table_RW = torch.zeros((num_rows, width), dtype=grad_BTJW.dtype, device=grad_BTJW.device)
    if not num_lookups:
        return grad_table_RW
    # Half the bits to sort wherever the table allows it.
    keys_L = rows_BTJ.flatten().to(torch.int32 if num_rows < 2**31 else torch.int64)
    keys_L, order_L = torch.sort(keys_L, stable=True)
    pieces_LW = torch.empty((num_lookups, width), dtype=torch.float32, device=grad_BTJW.device)
    grid = (triton.cdiv(num_lookups, BACKWARD_LOOKUPS),)
    sizes = (BACKWARD_LOOKUPS, triton.next_power_of_2(width))
    grad_LW = grad_BTJW.contiguous()
    options = launch_options("engram_lookup.sum_runs", "any", grad_LW.device)
    _sum_runs_kernel[grid](grad_LW, order_L, keys_L, pieces_LW, num_lookups, width, PIECE, True, *sizes, **options)
    _sum_runs_kernel[grid](
        pieces_LW, order_L, keys_L, grad_table_RW, num_lookups, width, PIECE, False, *sizes, **options
    )
    return grad_table_RW


register_gradients(engram_lookup_op, engram_lookup_backward_op, lambda inputs, output: (output[1], inputs[0].shape[0]))


def engram_lookup(
    table_RW: Tensor,
    input_ids_BT: Tensor,
    positions_BT: Tensor,
    multipliers_K: Tensor,
    table_sizes_OH: Tensor,
    offsets_J: Tensor,
    pad_class: int,
) -> Tensor:
    """Return memory (B, T, J, W): for each token the rows of the joined table that its n-grams hash to, in the table's dtype.

    `input_ids_BT` are integers, `positions_BT` count tokens from 0 within their document; `multipliers_K` (odd),
    `table_sizes_OH` (distinct primes) and `offsets_J` (where each table begins) are int64. The gradient is that of the
    table, dense.
    """
    return engram_lookup_op(table_RW, input_ids_BT, positions_BT, multipliers_K, table_sizes_OH, offsets_J, pad_class)[
        0
    ]


def _sample_inputs(generator: torch.Generator, dtype: torch.dtype, case: ShapeCase) -> tuple[Argument, ...]:
    """Draw orders 2 and 3 with two lookups each. Sizes: rows, tokens, entries of the vocabulary, width of a table row."""
    device = generator.device
    num_rows, num_tokens, num_classes, width = case.sizes
    shape = (num_rows, num_tokens)
    table_sizes_OH = torch.tensor([[53, 59], [61, 67]], device=device)
    offsets_J = table_sizes_OH.flatten().cumsum(0) - table_sizes_OH.flatten()
    table_RW = torch.randn((240, width), generator=generator, device=device).to(dtype)
    ids_BT = torch.randint(0, num_classes, shape, generator=generator, device=device)
    # Large enough that products overflow: the hash is defined for them too.
    multipliers_K = torch.randint(2**61, 2**62, (3,), generator=generator, device=device) * 2 + 1
    return table_RW, ids_BT, sample_positions(generator, shape), multipliers_K, table_sizes_OH, offsets_J, num_classes


SPEC = KernelSpec(
    name="engram_lookup",
    reference=engram_lookup_reference,
    op=engram_lookup,
    sample_inputs=_sample_inputs,
    cases=(
        ShapeCase((2, 12, 30, 4), "most rows of the table are looked up by none or one"),
        ShapeCase((1, 40, 1, 5), "one class: a run of equal rows spans several pieces, and a masked column"),
        ShapeCase((3, 1, 7, 1), "rows of one token, table rows of one number"),
    ),
    real_cases=(ShapeCase((4, 2048, 32_768, 64), "each table row is looked up by many"),),
    tolerance_eps=4.0,
    tolerance_reason="forward: none, rows are copied; gradient: half an eps for each addition to a run, mostly canceling",
)
