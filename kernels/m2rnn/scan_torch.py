"""The M2RNN scan and its explicit backward in plain torch: what runs on a CPU and in the reference mode.

Heads lead and rows join the key axis: one batched product with W for each step, and no copy of W for each row.

Shapes: B rows, T tokens of a row, H heads, K key size, V value size, M = B K rows of the joined states.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class RecurrenceArguments(NamedTuple):
    """Inputs of the recurrence: q, k, v, the forget gate f in 0 to 1, W, and the documents' numbers.

    A document is a run of equal numbers.
    """

    queries_BTHK: Tensor
    keys_BTHK: Tensor
    values_BTHV: Tensor
    forget_BTH: Tensor
    transition_HVV: Tensor
    document_index_BT: Tensor


def recurrence_forward(arguments: RecurrenceArguments) -> tuple[Tensor, Tensor]:
    """Compute y (B, T, H, V), and states and candidates (2, T, H, M, V) for the backward pass."""
    queries, keys, values, forget, transition = map(_wide, arguments[:5])
    starts_TM1 = _starts(arguments)
    has_start = starts_TM1.flatten(1).any(1).tolist()
    forget_THM1 = _for_each_state_row(forget, keys.shape[-1])
    drive_THMV = _joined_outer(keys, values)
    saved = torch.empty((2, *drive_THMV.shape), dtype=drive_THMV.dtype, device=drive_THMV.device)
    states, candidates = saved.unbind(0)
    state_HMV = torch.zeros_like(states[0])
    for t in range(len(has_start)):
        previous_HMV = state_HMV.masked_fill(starts_TM1[t], 0) if has_start[t] else state_HMV
        candidate_HMV = torch.tanh(torch.baddbmm(drive_THMV[t], previous_HMV, transition), out=candidates[t])
        state_HMV = torch.lerp(candidate_HMV, previous_HMV, forget_THM1[t], out=states[t])
    y_BTHV = torch.einsum("bthk,thbkv->bthv", queries, _split_rows(states, queries)).contiguous()
    return y_BTHV.to(arguments.values_BTHV.dtype), saved


def recurrence_backward(grad_BTHV: Tensor, arguments: RecurrenceArguments, saved: Tensor) -> tuple[Tensor, ...]:
    """Return the gradients of the five floating-point arguments, in their order and dtypes."""
    queries, keys, values, forget, transition = map(_wide, arguments[:5])
    states, candidates = saved.unbind(0)
    starts_TM1 = _starts(arguments)
    has_start = starts_TM1.flatten(1).any(1).tolist()
    forget_THM1 = _for_each_state_row(forget, keys.shape[-1])
    slopes = _wide(grad_BTHV)
    grads_THMV = _joined_outer(queries, slopes)
    inner_THMV = (1 - candidates.square()).mul_(1 - forget_THM1)
    back_HVV = transition.transpose(1, 2)
    for t in reversed(range(len(has_start))):
        inner_HMV = inner_THMV[t].mul_(grads_THMV[t])
        if t > 0:
            carried_HMV = torch.baddbmm(forget_THM1[t] * grads_THMV[t], inner_HMV, back_HVV)
            grads_THMV[t - 1] += carried_HMV.masked_fill_(starts_TM1[t], 0) if has_start[t] else carried_HMV

    previous_THMV = torch.cat((torch.zeros_like(states[:1]), states[:-1])).masked_fill_(starts_TM1.unsqueeze(1), 0)
    inner_THBKV = _split_rows(inner_THMV, queries)
    gradients = (
        torch.einsum("thbkv,bthv->bthk", _split_rows(states, queries), slopes),
        torch.einsum("thbkv,bthv->bthk", inner_THBKV, values),
        torch.einsum("thbkv,bthk->bthv", inner_THBKV, keys),
        _split_rows(grads_THMV.mul_(previous_THMV - candidates), queries).sum((-1, -2)).permute(2, 0, 1),
        torch.einsum("thmv,thmw->hvw", previous_THMV, inner_THMV),
    )
    return tuple(grad.to(like.dtype).contiguous() for grad, like in zip(gradients, arguments[:5], strict=True))


def document_starts(document_index_BT: Tensor) -> Tensor:
    """Return (B, T) bool: true for the first token of each document."""
    changes = document_index_BT[:, 1:] != document_index_BT[:, :-1]
    return torch.nn.functional.pad(changes, (1, 0), value=True)


def _wide(tensor: Tensor) -> Tensor:
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _starts(arguments: RecurrenceArguments) -> Tensor:
    """Return the starts of documents as (T, M, 1)."""
    starts_TB = document_starts(arguments.document_index_BT).t()
    return starts_TB.repeat_interleave(arguments.keys_BTHK.shape[-1], dim=1).unsqueeze(-1)


def _for_each_state_row(forget_BTH: Tensor, key_size: int) -> Tensor:
    """Turn (B, T, H) into (T, H, M, 1): one factor for each row of the joined states."""
    return forget_BTH.permute(1, 2, 0).repeat_interleave(key_size, dim=2).unsqueeze(-1)


def _joined_outer(left_BTHK: Tensor, right_BTHV: Tensor) -> Tensor:
    return (left_BTHK.unsqueeze(-1) * right_BTHV.unsqueeze(-2)).permute(1, 2, 0, 3, 4).flatten(2, 3)


def _split_rows(tensor_THMV: Tensor, like_BTHK: Tensor) -> Tensor:
    """Turn (T, H, M, V) into (T, H, B, K, V)."""
    return tensor_THMV.unflatten(2, (like_BTHK.shape[0], like_BTHK.shape[-1]))
