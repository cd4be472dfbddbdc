"""The chunked Mamba-3 scan and its explicit backward pass in plain torch, for CPUs and the reference mode.

The formulas are those of `mamba3_scan`. Work is quadratic within a chunk, with a short serial loop over chunks. Decays and
phases are summed within document and chunk by a product with a mask: zeros add exactly, in one order, so no rounding of
one document reaches another. But zero times infinity is NaN: a result that is not finite is computed
again in a way that keeps it inside its document (`contained`), which costs a few passes more.

Shapes: B rows, T tokens of a row, C chunks, L tokens of a chunk, H heads, P head size, N state size, S rotated pairs, X any.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


class ScanArguments(NamedTuple):
    """Inputs of the scan, by the formulas' letters: C, B, their biases, x, D, A, l, u, and the documents' numbers.

    Step sizes are positive, decay rates negative, the current token's share is in 0 to 1, velocities are radians per
    unit of step size. A document is a run of equal numbers; a number does not come back in the same row.
    """

    queries_BTN: Tensor
    keys_BTN: Tensor
    query_bias_HN: Tensor
    key_bias_HN: Tensor
    values_BTHP: Tensor
    step_sizes_BTH: Tensor
    decay_rates_BTH: Tensor
    current_shares_BTH: Tensor
    velocities_BTS: Tensor
    document_index_BT: Tensor


class _Parts(NamedTuple):
    """Values that forward and backward both derive from the arguments, in chunks: the cheap part."""

    values_BCHLP: Tensor
    own_weights_BCHL: Tensor
    key_weights_BCHL: Tensor
    sums_BCHL: Tensor
    from_start_BCHL: Tensor
    to_end_BCHL: Tensor
    mask_BCLL: Tensor
    continues_BCL: Tensor
    reaches_end_BCL: Tensor


class _Vectors(NamedTuple):
    """Rotated queries and keys, and the gradient of y."""

    queries_BCHLN: Tensor
    keys_BCHLN: Tensor
    slopes_BCHLP: Tensor


class _Gradients(NamedTuple):
    """Gradients of the rotated queries, the rotated keys, the values, r, g and the sums cs; and the keys' part of cs_L."""

    queries_BCHLN: Tensor
    keys_BCHLN: Tensor
    values_BCHLP: Tensor
    key_weights_BCHL: Tensor
    own_weights_BCHL: Tensor
    sums_BCHL: Tensor
    leaves_BCHL: Tensor


NUM_SAVED = 6
"""Tensors that a forward pass saves."""


def chunked_scan_forward(arguments: ScanArguments, chunk_size: int) -> tuple[Tensor, list[Tensor]]:
    """Compute y (B, T, H, P) in the dtype of the values, and the tensors saved for backward in the order of `saved_shapes`."""
    y_BTHP, saved = _forward(arguments, chunk_size, contained=False)
    return (y_BTHP, saved) if _all_finite(y_BTHP, saved[-1]) else _forward(arguments, chunk_size, contained=True)


def saved_shapes(arguments: ScanArguments, chunk_size: int) -> list[tuple[int, ...]]:
    """Return the shapes that forward saves: rotated queries and keys, decays, cosines, sines, states entering chunks."""
    num_rows, num_tokens, num_heads, head_size = arguments.values_BTHP.shape
    num_states, num_pairs = arguments.queries_BTN.shape[-1], arguments.velocities_BTS.shape[-1]
    chunks = (num_rows, (num_tokens + chunk_size - 1) // chunk_size, num_heads)
    per_token = [(*chunks, chunk_size, size) for size in (num_states, num_states, chunk_size, num_pairs, num_pairs)]
    return [*per_token, (*chunks, head_size, num_states)]


def chunked_scan_backward(
    grad_BTHP: Tensor, arguments: ScanArguments, saved: list[Tensor], chunk_size: int
) -> tuple[Tensor, ...]:
    """Return the gradients of the nine floating-point arguments, in their order and dtypes."""
    gradients = _backward(grad_BTHP, arguments, saved, chunk_size, contained=False)
    if not _all_finite(*gradients):
        gradients = _backward(grad_BTHP, arguments, saved, chunk_size, contained=True)
    return tuple(grad.to(argument.dtype) for grad, argument in zip(gradients, arguments[:9], strict=True))


def _all_finite(*tensors: Tensor) -> bool:
    return bool(torch.isfinite(torch.stack([tensor.sum(dtype=torch.float64) for tensor in tensors]).sum()))


def _forward(arguments: ScanArguments, chunk_size: int, contained: bool) -> tuple[Tensor, list[Tensor]]:
    parts = _cut(arguments, chunk_size, contained)
    rotations = _rotations(arguments, parts, chunk_size, contained)
    queries, keys = _wide(arguments.queries_BTN), _wide(arguments.keys_BTN)
    queries = _turned(_biased(queries, _wide(arguments.query_bias_HN), chunk_size), *rotations)
    keys = _turned(_biased(keys, _wide(arguments.key_bias_HN), chunk_size), *rotations)
    strict_BC1LL = parts.mask_BCLL.tril(-1).unsqueeze(2)
    decays_BCHLL = _decays(parts.sums_BCHL, strict_BC1LL)

    values_BCHLP = parts.values_BCHLP
    weighted_BCHLP = values_BCHLP * parts.key_weights_BCHL.unsqueeze(-1)
    added_BCHPN = _summed_outer(weighted_BCHLP, keys, parts.to_end_BCHL, contained)
    states_BCHPN = _carried(added_BCHPN, parts.from_start_BCHL[..., -1], contained)
    matches_BCHLL = queries @ keys.transpose(-1, -2)
    diagonal_BCHL = parts.own_weights_BCHL * matches_BCHLL.diagonal(dim1=-2, dim2=-1)
    result_BCHLP = _mixed(_gated(decays_BCHLL, matches_BCHLL, contained), weighted_BCHLP, strict_BC1LL, contained)
    result_BCHLP += diagonal_BCHL.unsqueeze(-1) * values_BCHLP
    carried_BCHLP = queries @ states_BCHPN.transpose(-1, -2)
    result_BCHLP += _gated(parts.from_start_BCHL.unsqueeze(-1), carried_BCHLP, contained)
    scanned_BTHP = _join_chunks(result_BCHLP, arguments.values_BTHP.shape[1]).to(arguments.values_BTHP.dtype)
    return scanned_BTHP, [queries, keys, decays_BCHLL, *rotations, states_BCHPN]


def _backward(
    grad_BTHP: Tensor, arguments: ScanArguments, saved: list[Tensor], chunk_size: int, contained: bool
) -> tuple[Tensor, ...]:
    queries, keys, decays_BCHLL, cosines, sines, states_BCHPN = saved
    parts = _cut(arguments, chunk_size, contained)
    vectors = _Vectors(queries, keys, _chunked(_wide(grad_BTHP), chunk_size).transpose(2, 3).contiguous())
    kept_BCH = parts.from_start_BCHL[..., -1]
    added_BCHPN = _summed_outer(vectors.slopes_BCHLP, queries, parts.from_start_BCHL, contained)
    leaving_BCHPN = _carried(added_BCHPN.flip(1), kept_BCH.flip(1), contained).flip(1)

    gradients = _gradients(parts, vectors, decays_BCHLL, (states_BCHPN, leaving_BCHPN), contained)
    kept_match_BCH = _gated(kept_BCH, (leaving_BCHPN * states_BCHPN).sum((-1, -2)), contained)
    leaves_BCHL = gradients.leaves_BCHL.masked_fill(~parts.reaches_end_BCL.unsqueeze(2), 0)
    gradients.sums_BCHL[..., -1] += kept_match_BCH + leaves_BCHL.sum(-1)
    log_decays_BCHL = _later_sums(parts, gradients.sums_BCHL.unsqueeze(-1), contained)
    turns_BCHLS = _turn_gradients(parts, vectors, gradients, cosines.shape[-1], contained)

    num_tokens = grad_BTHP.shape[1]
    queries_BTHN = _join_chunks(_turned(gradients.queries_BCHLN, cosines, -sines), num_tokens)
    keys_BTHN = _join_chunks(_turned(gradients.keys_BCHLN, cosines, -sines), num_tokens)
    turns_BTHS = _join_chunks(turns_BCHLS, num_tokens)
    scalars = (log_decays_BCHL, gradients.key_weights_BCHL.unsqueeze(-1), gradients.own_weights_BCHL.unsqueeze(-1))
    per_token = [_join_chunks(tensor, num_tokens).squeeze(-1) for tensor in scalars]
    turn_shares_BTH = (turns_BTHS * _wide(arguments.velocities_BTS).unsqueeze(2)).sum(-1)
    return (
        queries_BTHN.sum(2),
        keys_BTHN.sum(2),
        queries_BTHN.sum((0, 1)),
        keys_BTHN.sum((0, 1)),
        _join_chunks(gradients.values_BCHLP, num_tokens),
        *combine_scalar_gradients(arguments, *per_token, turn_shares_BTH),
        (turns_BTHS * _wide(arguments.step_sizes_BTH).unsqueeze(-1)).sum(2),
    )


def combine_scalar_gradients(
    arguments: ScanArguments, grad_log_decay: Tensor, grad_key: Tensor, grad_own: Tensor, grad_turn: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients (B, T, H) of D, A and l from those of a = D A, r and g, and from u . d(Du)."""
    steps, rates, shares = (_wide(tensor) for tensor in arguments[5:8])
    is_same = same_as_previous(arguments.document_index_BT).unsqueeze(-1)
    # r of the token before holds this token's D (1 - l), where both are of one document.
    earlier = functional.pad(grad_key[:, :-1], (0, 0, 1, 0)).masked_fill(~is_same, 0)
    grad_steps = rates * grad_log_decay + shares * grad_own + grad_turn + (1 - shares) * earlier
    return grad_steps, steps * grad_log_decay, steps * (grad_own - earlier)


def within_a_turn(angles: Tensor) -> Tensor:
    """Return the angles without their whole turns: a float32 of thousands of radians is too coarse for a cosine.

    2 pi is the sum of two numbers, of which a product with few turns is exact with the first.
    """
    num_turns = torch.round(angles / math.tau)
    return (angles - num_turns * 6.28125) - num_turns * (math.tau - 6.28125)


def same_as_previous(document_index_BT: Tensor) -> Tensor:
    """Return (B, T) bool: whether the token before is of the same document; false for the first."""
    return functional.pad(document_index_BT[:, 1:] == document_index_BT[:, :-1], (1, 0), value=False)


def _wide(tensor: Tensor) -> Tensor:
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _cut(arguments: ScanArguments, chunk_size: int, contained: bool) -> _Parts:
    documents = arguments.document_index_BT
    # What fills the last chunk belongs to the last document: its values and step sizes are zero, so it adds nothing.
    fill = -documents.shape[1] % chunk_size
    documents_BCL = torch.cat((documents, documents[:, -1:].expand(-1, fill)), dim=1).unflatten(1, (-1, chunk_size))
    lower_LL = torch.ones(chunk_size, chunk_size, dtype=torch.bool, device=documents.device).tril()
    mask_BCLL = (documents_BCL.unsqueeze(-1) == documents_BCL.unsqueeze(-2)) & lower_LL
    continues_BCL = functional.pad(documents_BCL[:, 1:] == documents_BCL[:, :-1, -1:], (0, 0, 1, 0), value=False)
    reaches_end_BCL = documents_BCL == documents_BCL[..., -1:]

    steps, rates, shares = map(_wide, arguments[5:8])
    sums_BCLH = _mixed(mask_BCLL.to(steps.dtype), _chunked(steps * rates, chunk_size), mask_BCLL, contained)
    sums_BCHL = sums_BCLH.transpose(2, 3).contiguous()
    own_BTH, key_BTH = _weights(steps, shares, documents)
    return _Parts(
        values_BCHLP=_chunked(_wide(arguments.values_BTHP), chunk_size).transpose(2, 3).contiguous(),
        own_weights_BCHL=_chunked(own_BTH, chunk_size).transpose(2, 3),
        key_weights_BCHL=_chunked(key_BTH, chunk_size).transpose(2, 3),
        sums_BCHL=sums_BCHL,
        from_start_BCHL=sums_BCHL.masked_fill(~continues_BCL.unsqueeze(2), -math.inf).exp(),
        to_end_BCHL=(sums_BCHL[..., -1:] - sums_BCHL).masked_fill(~reaches_end_BCL.unsqueeze(2), -math.inf).exp(),
        mask_BCLL=mask_BCLL,
        continues_BCL=continues_BCL,
        reaches_end_BCL=reaches_end_BCL,
    )


def _decays(sums_BCHL: Tensor, strict_BC1LL: Tensor) -> Tensor:
    """Return E. The mask is applied before the exponential, or an entry that is not read could overflow."""
    gaps_BCHLL = sums_BCHL.unsqueeze(-1) - sums_BCHL.unsqueeze(-2)
    return gaps_BCHLL.masked_fill_(~strict_BC1LL, -math.inf).exp_()


def _rotations(arguments: ScanArguments, parts: _Parts, chunk_size: int, contained: bool) -> tuple[Tensor, Tensor]:
    """Return cosines and sines (B, C, H, L, S) of the phases, which are carried from chunk to chunk."""
    steps_BCLH, velocities_BCLS = (
        _chunked(_wide(tensor), chunk_size) for tensor in (arguments.step_sizes_BTH, arguments.velocities_BTS)
    )
    turns_BCLHS = steps_BCLH.unsqueeze(-1) * velocities_BCLS.unsqueeze(3)
    local_BCLX = _mixed(parts.mask_BCLL.to(turns_BCLHS.dtype), turns_BCLHS.flatten(3), parts.mask_BCLL, contained)
    local_BCLHS = local_BCLX.unflatten(3, turns_BCLHS.shape[3:])
    continues_to_end_BC1 = parts.continues_BCL[..., -1:].to(turns_BCLHS.dtype)
    before_BCHS = _carried(local_BCLHS[:, :, -1], continues_to_end_BC1, contained, within_a_turn)
    local_BCLHS += before_BCHS.unsqueeze(2).masked_fill(~parts.continues_BCL[..., None, None], 0)
    phases_BCHLS = within_a_turn(local_BCLHS).transpose(2, 3).contiguous()
    return phases_BCHLS.cos(), phases_BCHLS.sin_()


def _chunked(tensor_BT: Tensor, chunk_size: int) -> Tensor:
    """Turn (B, T, ...) into (B, C, L, ...), with zeros after the last token."""
    padding = (0, 0) * (tensor_BT.dim() - 2) + (0, -tensor_BT.shape[1] % chunk_size)
    return functional.pad(tensor_BT, padding).unflatten(1, (-1, chunk_size))


def _join_chunks(tensor_BCHLX: Tensor, num_tokens: int) -> Tensor:
    """Turn (B, C, H, L, X) into (B, T, H, X), contiguous."""
    return tensor_BCHLX.transpose(2, 3).flatten(1, 2)[:, :num_tokens].contiguous()


def _biased(vectors_BTN: Tensor, bias_HN: Tensor, chunk_size: int) -> Tensor:
    return _chunked(vectors_BTN, chunk_size).unsqueeze(2) + bias_HN.unsqueeze(1)


def _weights(steps_BTH: Tensor, shares_BTH: Tensor, documents_BT: Tensor) -> tuple[Tensor, Tensor]:
    """Compute g_t = l_t D_t, and r_t = g_t + D_{t+1} (1 - l_{t+1}), the second term only inside a document."""
    own_BTH = shares_BTH * steps_BTH
    shifted_BTH = (steps_BTH - own_BTH).masked_fill(~same_as_previous(documents_BT).unsqueeze(-1), 0)
    return own_BTH, own_BTH + functional.pad(shifted_BTH[:, 1:], (0, 0, 0, 1))


def _turned(vectors_N: Tensor, cosines_S: Tensor, sines_S: Tensor) -> Tensor:
    """Turn the pair (2i, 2i+1) of the last axis by the i-th angle; channels after the last pair stay."""
    num_turned = 2 * cosines_S.shape[-1]
    even_S, odd_S = vectors_N[..., 0:num_turned:2], vectors_N[..., 1:num_turned:2]
    result_N = torch.empty_like(vectors_N, memory_format=torch.contiguous_format)
    result_N[..., 0:num_turned:2] = even_S * cosines_S - odd_S * sines_S
    result_N[..., 1:num_turned:2] = even_S * sines_S + odd_S * cosines_S
    result_N[..., num_turned:] = vectors_N[..., num_turned:]
    return result_N


def _gated(factors: Tensor, tensor: Tensor, contained: bool) -> Tensor:
    """Return the product; if `contained`, zero wherever a factor is zero."""
    product = factors * tensor
    return product.masked_fill(factors == 0, 0) if contained else product


def _mixed(kernel_LL: Tensor, operand_LX: Tensor, mask_LL: Tensor, contained: bool) -> Tensor:
    """Compute kernel @ operand. If `contained`, values that are not finite reach only the rows whose mask selects them."""
    if not contained:
        return kernel_LL @ operand_LX
    is_bad_LX = ~torch.isfinite(operand_LX)
    reached_LX = mask_LL.to(operand_LX.dtype) @ is_bad_LX.to(operand_LX.dtype)
    return (kernel_LL @ operand_LX.masked_fill(is_bad_LX, 0)).masked_fill(reached_LX > 0, math.nan)


def _summed_outer(left_LX: Tensor, right_LN: Tensor, factors_L: Tensor, contained: bool) -> Tensor:
    """Sum factor * left right^T over tokens."""
    if contained:
        right_LN = right_LN.masked_fill((factors_L == 0).unsqueeze(-1), 0)
    return _gated(factors_L.unsqueeze(-1), left_LX, contained).transpose(-1, -2) @ right_LN


def _carried(
    added_BC: Tensor, kept_BCH: Tensor, contained: bool, reduced: Callable[[Tensor], Tensor] | None = None
) -> Tensor:
    """Return what enters each chunk, `reduced` if given; `kept` is the share of it that also leaves the chunk."""
    kept_BC = kept_BCH.reshape(*kept_BCH.shape, *(1,) * (added_BC.dim() - 3))
    entering = torch.zeros_like(added_BC[:, 0])
    result = torch.empty_like(added_BC)
    for chunk, (added, kept) in enumerate(zip(added_BC.unbind(1), kept_BC.unbind(1), strict=True)):
        result[:, chunk] = entering
        entering = _gated(kept, entering, contained) + added
        entering = entering if reduced is None else reduced(entering)
    return result


def _gradients(
    parts: _Parts, vectors: _Vectors, decays_BCHLL: Tensor, beside: tuple[Tensor, Tensor], contained: bool
) -> _Gradients:
    """Return the gradients in one chunk, from the state that enters it and the gradient of the state that leaves it (`beside`).

    Those of r and cs are read off the vectors': dr_j = k_j . dk_j / r_j and dcs_i = q_i . dq_i - k_i . dk_i, each
    without the diagonal's part, so that no (L, L) tensor is summed for them.
    """
    (queries, keys, slopes), values = vectors, parts.values_BCHLP
    states, leaving = beside
    weight, own, to_end = (
        each.unsqueeze(-1) for each in (parts.key_weights_BCHL, parts.own_weights_BCHL, parts.to_end_BCHL)
    )
    earlier = parts.mask_BCLL.tril(-1).unsqueeze(2)
    later = earlier.transpose(-1, -2)
    kernel = _gated(decays_BCHLL, queries @ keys.transpose(-1, -2), contained)
    kernel_of_keys = _gated(decays_BCHLL, slopes @ values.transpose(-1, -2), contained)
    own_match, own_agreement = (queries * keys).sum(-1, keepdim=True), (slopes * values).sum(-1, keepdim=True)
    agreed = own * own_agreement

    to_values = _mixed(kernel.transpose(-1, -2), slopes, later, contained)
    to_values += _gated(to_end, keys @ leaving.transpose(-1, -2), contained)
    left_to_keys = _gated(to_end, values @ leaving, contained)
    to_keys = _mixed(kernel_of_keys.transpose(-1, -2), queries, later, contained) + left_to_keys
    to_queries = _mixed(kernel_of_keys, weight * keys, earlier, contained)
    to_queries += _gated(parts.from_start_BCHL.unsqueeze(-1), slopes @ states, contained)
    grad_weights = (keys * to_keys).sum(-1)
    return _Gradients(
        queries_BCHLN=to_queries + agreed * keys,
        keys_BCHLN=weight * to_keys + agreed * queries,
        values_BCHLP=weight * to_values + own * own_match * slopes,
        key_weights_BCHL=grad_weights,
        own_weights_BCHL=grad_weights + (own_match * own_agreement).squeeze(-1),
        sums_BCHL=(queries * to_queries).sum(-1) - parts.key_weights_BCHL * grad_weights,
        leaves_BCHL=parts.key_weights_BCHL * (keys * left_to_keys).sum(-1),
    )


def _later_sums(parts: _Parts, terms_BCHLX: Tensor, contained: bool) -> Tensor:
    """Return the sums over the token itself and the later ones of its chunk and document."""
    later_BC1LL = parts.mask_BCLL.transpose(-1, -2).unsqueeze(2)
    return _mixed(later_BC1LL.to(terms_BCHLX.dtype), terms_BCHLX, later_BC1LL, contained)


def _turn_gradients(parts: _Parts, vectors: _Vectors, gradients: _Gradients, num_pairs: int, contained: bool) -> Tensor:
    """Return the gradients (B, C, H, L, S) of D u: the sums of those of the phases over the rest of the document."""
    pairs = [
        (grad[..., : 2 * num_pairs], vector[..., : 2 * num_pairs])
        for grad, vector in zip(gradients[:2], vectors[:2], strict=True)
    ]
    grad_phases = sum(
        grad[..., 1::2] * vector[..., 0::2] - grad[..., 0::2] * vector[..., 1::2] for grad, vector in pairs
    )
    local_BCHLS = _later_sums(parts, grad_phases, contained)
    # The sum of a chunk's first token is passed to the chunk before, if that ends with the same document.
    first_BCHS = local_BCHLS[..., 0, :].masked_fill(~parts.continues_BCL[:, :, :1, None], 0)
    kept_BC1 = parts.continues_BCL[:, :, -1:].to(grad_phases.dtype)
    beyond_BCHS = _carried(first_BCHS.flip(1), kept_BC1.flip(1), contained).flip(1)
    return local_BCHLS + beyond_BCHS.unsqueeze(3).masked_fill(~parts.reaches_end_BCL[:, :, None, :, None], 0)
