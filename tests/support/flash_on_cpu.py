"""Torch's two GPU backends of attention, computed on a CPU, so that the code around them can be tested without a GPU.

Flash attention over documents of their own lengths is written out here, forward and backward, a document at a time, for the two
operations that torch has on CUDA devices alone. FlexAttention has a plain implementation with gradients on every device, and a
check that refuses gradients on a CPU, which is lifted.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor


@contextmanager
def gpu_backends_on_cpu() -> Iterator[None]:
    """Within it, every choice of attention runs on CPU tensors, with gradients."""
    _register()
    with patch("torch.nn.attention.flex_attention._validate_device", _accept):
        yield


def _accept(query: Tensor, key: Tensor, value: Tensor) -> None:
    """In place of the check: a function that the compiler can follow."""


@cache
def _register() -> None:
    from torch.nn.attention import varlen

    varlen._varlen_attn.register_kernel("cpu")(_forward)
    varlen._varlen_attn_backward.register_kernel("cpu")(_backward)


def _forward(query, key, value, bounds, bounds_of_keys, max_queries, max_keys, is_causal=False, *options: Any):
    assert is_causal
    assert torch.equal(bounds, bounds_of_keys)
    out, logarithms = torch.full_like(query, torch.nan), torch.full(query.shape[1::-1], torch.nan)
    for document in _documents(bounds, max_queries):
        scores = _scores(query[document], key[document])
        logarithms[:, document] = scores.logsumexp(-1).float()
        out[document] = torch.einsum("htu,uhe->the", scores.softmax(-1), _repeated(value[document], query))
    return out, logarithms, torch.zeros(2, dtype=torch.uint64)


def _backward(
    grad,
    query,
    key,
    value,
    out,
    logarithms,
    bounds,
    _bounds,
    max_queries,
    _max,
    is_causal,
    state,
    scale=None,
    window=None,
):
    grads = [torch.full_like(each, torch.nan) for each in (query, key, value)]
    for document in _documents(bounds, max_queries):
        keys, values = (_repeated(each[document], query) for each in (key, value))
        weights = _scores(query[document], key[document]).softmax(-1)
        slopes = torch.einsum("the,uhe->htu", grad[document], values)
        slopes = weights * (slopes - (grad[document] * out[document]).sum(-1).T.unsqueeze(-1)) / query.shape[-1] ** 0.5
        grads[0][document] = torch.einsum("htu,uhe->the", slopes, keys)
        grads[1][document] = _summed(torch.einsum("htu,the->uhe", slopes, query[document]), key)
        grads[2][document] = _summed(torch.einsum("htu,the->uhe", weights, grad[document]), value)
    return tuple(grads)


def _documents(bounds: Tensor, max_tokens: int) -> Iterator[slice]:
    for first, end in pairwise(bounds.tolist()):
        assert 0 <= end - first <= max_tokens
        if end > first:
            yield slice(first, end)


def _scores(query: Tensor, key: Tensor) -> Tensor:
    later = torch.ones(len(query), len(query), dtype=torch.bool).triu(1)
    scores = torch.einsum("the,uhe->htu", query, _repeated(key, query)) / query.shape[-1] ** 0.5
    return scores.masked_fill(later, -torch.inf)


def _repeated(shared: Tensor, query: Tensor) -> Tensor:
    return shared.repeat_interleave(query.shape[1] // shared.shape[1], dim=1)


def _summed(grad: Tensor, shared: Tensor) -> Tensor:
    return grad.unflatten(1, (shared.shape[1], -1)).sum(2)
