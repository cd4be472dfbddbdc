"""Depthwise causal convolution that starts anew in each document, with an optional SiLU.

    z_tc = sum_{k<K} w_ck x_{t-k,c} [k <= position(t) and k <= t]      y = z or silu(z) = z * sigmoid(z)

    h = g or g * s (1 + z (1 - s)),    s = sigmoid(z),    g = dL/dy
    dx_tc = sum_{k<K} w_ck h_{t+k,c} [k <= position(t+k)]      dw_ck = sum_t h_{t+k,c} x_tc [k <= position(t+k)]

`w[:, 0]` weighs the token itself. Shapes: B rows, T tokens of a row, C channels, K taps (4 in every model here), P
programs. Positions count tokens from 0 within their document, in a (B, T) tensor of static shape; a masked tap is not
read, so that a NaN stays in its document. Sums are float32 (float64 for float64 inputs); the result has the wider dtype
of x and w. z is computed again in the backward pass. dw has two passes without atomics. Source: the short convolution
of Gu and Dao 2023, arXiv 2312.00752.
"""

import torch
from torch import Tensor
from torch.nn import functional

from kernels.framework.backend import runs_kernel, tl, triton
from kernels.framework.configurations import launch_options
from kernels.framework.operands import sample_positions, sum_dtype, sum_partials
from kernels.framework.operation import empty_like, operation, register_gradients
from kernels.framework.spec import Argument, KernelSpec, ShapeCase

TILE_TOKENS, TILE_CHANNELS = 32, 64


def causal_convolution_reference(
    x_BTC: Tensor, taps_CK: Tensor, positions_BT: Tensor, has_silu: bool = False
) -> Tensor:
    """Compute the definition in plain torch: one shifted copy a tap. Returns (B, T, C)."""
    num_tokens = x_BTC.shape[1]
    result_BTC = x_BTC * taps_CK[:, 0]
    for distance in range(1, taps_CK.shape[1]):
        earlier_BTC = functional.pad(x_BTC, (0, 0, distance, 0))[:, :num_tokens]
        is_inside_BT1 = (positions_BT >= distance).unsqueeze(-1)
        result_BTC = result_BTC + torch.where(is_inside_BT1, earlier_BTC, 0.0) * taps_CK[:, distance]
    return functional.silu(result_BTC) if has_silu else result_BTC


@triton.jit
def _convolved(
    x_ptr, taps_ptr, positions_ptr, tokens, channels, is_inside,
    x_stride, NUM_TOKENS: tl.constexpr, NUM_CHANNELS: tl.constexpr, NUM_TAPS: tl.constexpr,
):  # fmt: skip
    """Compute z of a tile of tokens and channels; the pointers are those of one row."""
    positions = tl.load(positions_ptr + tokens, mask=is_inside, other=-1)
    total = tl.zeros([tokens.shape[0], channels.shape[0]], tl.float32)
    for distance in tl.static_range(NUM_TAPS):
        earlier = tokens - distance
        mask = (is_inside & (earlier >= 0) & (positions >= distance))[:, None] & (channels < NUM_CHANNELS)[None, :]
        x = tl.load(x_ptr + earlier[:, None].to(tl.int64) * x_stride + channels[None, :], mask=mask, other=0.0)
        tap = tl.load(taps_ptr + channels * NUM_TAPS + distance, mask=channels < NUM_CHANNELS, other=0.0)
        total += x.to(tl.float32) * tap.to(tl.float32)[None, :]
    return total


@triton.jit
def _forward_kernel(
    x_ptr, taps_ptr, positions_ptr, y_ptr, row_stride, x_stride,
    NUM_TOKENS: tl.constexpr, NUM_CHANNELS: tl.constexpr, NUM_TAPS: tl.constexpr, HAS_SILU: tl.constexpr,
    TOKENS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    channels = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    tokens = tl.program_id(1) * TOKENS + tl.arange(0, TOKENS)
    row = tl.program_id(2).to(tl.int64)
    is_inside = tokens < NUM_TOKENS
    z = _convolved(
        x_ptr + row * row_stride, taps_ptr, positions_ptr + row * NUM_TOKENS, tokens, channels, is_inside,
        x_stride, NUM_TOKENS, NUM_CHANNELS, NUM_TAPS,
    )  # fmt: skip
    if HAS_SILU:
        z = z * tl.sigmoid(z)
    places = (row * NUM_TOKENS + tokens[:, None]) * NUM_CHANNELS + channels[None, :]
    mask = is_inside[:, None] & (channels < NUM_CHANNELS)[None, :]
    tl.store(y_ptr + places, z.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _backward_kernel(
    grad_ptr, x_ptr, taps_ptr, positions_ptr, grad_x_ptr, partial_ptr, row_stride, x_stride,
    NUM_TOKENS: tl.constexpr, NUM_CHANNELS: tl.constexpr, NUM_TAPS: tl.constexpr, HAS_SILU: tl.constexpr,
    TOKENS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    channels = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    tokens = tl.program_id(1) * TOKENS + tl.arange(0, TOKENS)
    row = tl.program_id(2).to(tl.int64)
    program = row * tl.num_programs(1) + tl.program_id(1)
    is_inside, is_channel = tokens < NUM_TOKENS, channels < NUM_CHANNELS
    mask = is_inside[:, None] & is_channel[None, :]
    first_x_ptr, first_position_ptr = x_ptr + row * row_stride, positions_ptr + row * NUM_TOKENS
    x = tl.load(first_x_ptr + tokens[:, None].to(tl.int64) * x_stride + channels[None, :], mask=mask, other=0.0)
    x = x.to(tl.float32)
    grad_x = tl.zeros([TOKENS, CHANNELS], tl.float32)
    for distance in tl.static_range(NUM_TAPS):
        later = tokens + distance
        is_there = is_inside & (later < NUM_TOKENS)
        is_reached = is_there & (tl.load(first_position_ptr + later, mask=is_there, other=-1) >= distance)
        later_mask = is_reached[:, None] & is_channel[None, :]
        later_places = (row * NUM_TOKENS + later[:, None]) * NUM_CHANNELS + channels[None, :]
        slope = tl.load(grad_ptr + later_places, mask=later_mask, other=0.0).to(tl.float32)
        if HAS_SILU:
            z = _convolved(
                first_x_ptr, taps_ptr, first_position_ptr, later, channels, is_reached,
                x_stride, NUM_TOKENS, NUM_CHANNELS, NUM_TAPS,
            )  # fmt: skip
            open_part = tl.sigmoid(z)
            slope = slope * open_part * (1.0 + z * (1.0 - open_part))
        tap = tl.load(taps_ptr + channels * NUM_TAPS + distance, mask=is_channel, other=0.0).to(tl.float32)
        grad_x += slope * tap[None, :]
        # Where no later token is in the document, x itself must not be read: it may be NaN.
        grad_tap = tl.sum(tl.where(later_mask, slope * x, 0.0), axis=0)
        tl.store(partial_ptr + (program * NUM_TAPS + distance) * NUM_CHANNELS + channels, grad_tap, mask=is_channel)
    places = (row * NUM_TOKENS + tokens[:, None]) * NUM_CHANNELS + channels[None, :]
    tl.store(grad_x_ptr + places, grad_x.to(grad_x_ptr.dtype.element_ty), mask=mask)


@operation(lambda x, taps, positions, has_silu: x.new_empty(x.shape, dtype=torch.promote_types(x.dtype, taps.dtype)))
def causal_convolution_op(x_BTC: Tensor, taps_CK: Tensor, positions_BT: Tensor, has_silu: bool) -> Tensor:
    """Run the operation: return (B, T, C) in the wider dtype of `x_BTC` and `taps_CK`."""
    dtype = torch.promote_types(x_BTC.dtype, taps_CK.dtype)
    if not runs_kernel("causal_convolution", x_BTC, taps_CK):
        z_BTC = _convolved_in_torch(x_BTC, taps_CK, _tap_masks(positions_BT, taps_CK.shape[1]))
        return (functional.silu(z_BTC) if has_silu else z_BTC).to(dtype)
    x_BTC = _with_adjacent_channels(x_BTC)
    y_BTC = torch.empty(x_BTC.shape, dtype=dtype, device=x_BTC.device)
    if x_BTC.numel():
        _forward_kernel[_grid(x_BTC)](
            x_BTC, taps_CK.contiguous(), positions_BT.contiguous(), y_BTC, x_BTC.stride(0), x_BTC.stride(1),
            x_BTC.shape[1], *taps_CK.shape, has_silu, TILE_TOKENS, TILE_CHANNELS,
            **launch_options("causal_convolution.forward", "any", x_BTC.device),
        )  # fmt: skip
    return y_BTC


@operation(lambda grad, x, taps, positions, has_silu: empty_like(x, taps))
def causal_convolution_backward_op(
    grad_BTC: Tensor, x_BTC: Tensor, taps_CK: Tensor, positions_BT: Tensor, has_silu: bool
) -> tuple[Tensor, Tensor]:
    """Return the gradients of `x_BTC` and `taps_CK`."""
    if not runs_kernel("causal_convolution", x_BTC, taps_CK):
        return _backward_in_torch(grad_BTC, x_BTC, taps_CK, positions_BT, has_silu)
    x_BTC = _with_adjacent_channels(x_BTC)
    grad_x_BTC = torch.empty(x_BTC.shape, dtype=x_BTC.dtype, device=x_BTC.device)
    if not x_BTC.numel():
        return grad_x_BTC, torch.zeros_like(taps_CK, memory_format=torch.contiguous_format)
    num_channels, num_taps = taps_CK.shape
    _, token_tiles, num_rows = grid = _grid(x_BTC)
    partials_PKC = torch.empty(
        (num_rows * token_tiles, num_taps, num_channels), dtype=torch.float32, device=x_BTC.device
    )
    _backward_kernel[grid](
        grad_BTC.contiguous(), x_BTC, taps_CK.contiguous(), positions_BT.contiguous(), grad_x_BTC, partials_PKC,
        x_BTC.stride(0), x_BTC.stride(1),
        x_BTC.shape[1], num_channels, num_taps, has_silu, TILE_TOKENS, TILE_CHANNELS,
        **launch_options("causal_convolution.backward", "any", x_BTC.device),
    )  # fmt: skip
    grad_taps_KC = sum_partials(partials_PKC.flatten(1)).view(num_taps, num_channels)
    return grad_x_BTC, grad_taps_KC.t().to(taps_CK.dtype).contiguous()


register_gradients(causal_convolution_op, causal_convolution_backward_op, lambda inputs, output: inputs)


def _grid(x_BTC: Tensor) -> tuple[int, int, int]:
    num_rows, num_tokens, num_channels = x_BTC.shape
    return triton.cdiv(num_channels, TILE_CHANNELS), triton.cdiv(num_tokens, TILE_TOKENS), num_rows


def _with_adjacent_channels(x_BTC: Tensor) -> Tensor:
    return x_BTC if x_BTC.stride(-1) == 1 else x_BTC.contiguous()


def _tap_masks(positions_BT: Tensor, num_taps: int) -> list[Tensor]:
    """Yield for each distance d from 1, as far as a row is long, whether t - d is in the document of t, (B, T - d, 1)."""
    distances = range(1, min(num_taps, positions_BT.shape[1]))
    return [(positions_BT[:, d:] >= d).unsqueeze(-1) for d in distances]


def _convolved_in_torch(x_BTC: Tensor, taps_CK: Tensor, masks: list[Tensor]) -> Tensor:
    wide = sum_dtype(x_BTC, taps_CK)
    x_BTC, taps_CK = x_BTC.to(wide), taps_CK.to(wide)
    z_BTC = x_BTC * taps_CK[:, 0]
    for distance, mask in enumerate(masks, start=1):
        z_BTC[:, distance:].addcmul_(torch.where(mask, x_BTC[:, :-distance], 0.0), taps_CK[:, distance])
    return z_BTC


def _backward_in_torch(
    grad_BTC: Tensor, x_BTC: Tensor, taps_CK: Tensor, positions_BT: Tensor, has_silu: bool
) -> tuple[Tensor, Tensor]:
    wide = sum_dtype(x_BTC, taps_CK)
    masks = _tap_masks(positions_BT, taps_CK.shape[1])
    slope_BTC = grad_BTC.to(wide)
    if has_silu:
        z_BTC = _convolved_in_torch(x_BTC, taps_CK, masks)
        slope_BTC = torch.ops.aten.silu_backward(slope_BTC.contiguous(), z_BTC)
    taps_wide_CK, x_wide_BTC = taps_CK.to(wide), x_BTC.to(wide)
    grad_x_BTC = slope_BTC * taps_wide_CK[:, 0]
    grad_taps_CK = torch.zeros(taps_CK.shape, dtype=wide, device=taps_CK.device)
    grad_taps_CK[:, 0] = (slope_BTC * x_wide_BTC).sum(dim=(0, 1))
    for distance, mask in enumerate(masks, start=1):
        later_BTC = torch.where(mask, slope_BTC[:, distance:], 0.0)
        grad_x_BTC[:, :-distance].addcmul_(later_BTC, taps_wide_CK[:, distance])
        earlier_BTC = torch.where(mask, x_wide_BTC[:, :-distance], 0.0)
        grad_taps_CK[:, distance] = later_BTC.mul_(earlier_BTC).sum(dim=(0, 1))
    return grad_x_BTC.to(x_BTC.dtype), grad_taps_CK.to(taps_CK.dtype)


def causal_convolution(x_BTC: Tensor, taps_CK: Tensor, positions_BT: Tensor, has_silu: bool = False) -> Tensor:
    """Return each channel's weighted sum over the last K tokens of its own document, then SiLU if requested.

    `positions_BT` count tokens from 0 within their document; a tap that reaches before the document's start is zero.
    Returns (B, T, C) in the wider dtype of `x_BTC` and `taps_CK`. Raises ValueError if the shapes do not fit.
    """
    if x_BTC.shape[:2] != positions_BT.shape or x_BTC.shape[-1] != taps_CK.shape[0]:
        raise ValueError(
            f"causal_convolution: x {tuple(x_BTC.shape)}, taps {tuple(taps_CK.shape)} and positions "
            f"{tuple(positions_BT.shape)} do not fit; expected (B, T, C), (C, K) and (B, T)"
        )
    return causal_convolution_op(x_BTC, taps_CK, positions_BT, has_silu)


def _sample_inputs(generator: torch.Generator, dtype: torch.dtype, case: ShapeCase) -> tuple[Argument, ...]:
    """Draw four taps and documents of uneven lengths; the last size says whether SiLU is fused."""
    device = generator.device
    num_rows, num_tokens, num_channels, has_silu = case.sizes
    x_BTC = torch.randn((num_rows, num_tokens, num_channels), generator=generator, device=device).to(dtype)
    taps_CK = torch.randn((num_channels, 4), generator=generator, device=device).to(dtype)
    return x_BTC, taps_CK, sample_positions(generator, (num_rows, num_tokens)), bool(has_silu)


SPEC = KernelSpec(
    name="causal_convolution",
    reference=causal_convolution_reference,
    op=causal_convolution,
    sample_inputs=_sample_inputs,
    cases=(
        ShapeCase((2, 9, 5, 1), "with SiLU, less than a tile"),
        ShapeCase((2, 37, 16, 0), "without SiLU, a cut tile"),
        ShapeCase((1, 40, 70, 1), "two tiles of tokens and of channels, the last ones cut"),
        ShapeCase((1, 2, 3, 1), "a row shorter than the taps"),
        ShapeCase((3, 1, 1, 1), "one token, one channel"),
    ),
    real_cases=(ShapeCase((4, 2048, 1536, 1), "q, k and v of an M2RNN layer"),),
    tolerance_eps=8.0,
    tolerance_reason=(
        "float32: half an eps for each of four products and sums, three for sigmoid and slope, again four in dx; lower "
        "precision: one rounding at the store, which the interpreter truncates"
    ),
)
