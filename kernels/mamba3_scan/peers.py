"""Public Triton kernels nearest to the Mamba-3 scan, for the benchmark alone, with what each of them computes less or more.

Each loader imports its library and returns a callable of our arguments; layouts are changed within what is timed. Times are
compared, numbers are not: none of them computes the same function.
"""

import math
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import torch
from torch import Tensor


def _mamba3() -> Callable[..., Tensor]:
    """Load mamba_ssm's own Mamba-3, single input and output: the same recurrence, with no documents (each row is one)."""
    scan: Any = import_module("mamba_ssm.ops.triton.mamba3.mamba3_siso_combined").mamba3_siso_combined

    def call(queries, keys, query_bias, key_bias, values, steps, rates, shares, velocities, documents, chunk_size):
        # It takes pi tanh itself; the clamp keeps the inverse finite where a velocity was rounded to pi.
        angles_BTS = torch.atanh((velocities / math.pi).clamp(-1 + 1e-6, 1 - 1e-6))
        angles_BTHS = angles_BTS.unsqueeze(2).expand(-1, -1, values.shape[2], -1)
        return scan(
            Q=queries.unsqueeze(2),
            K=keys.unsqueeze(2),
            V=values,
            ADT=(rates * steps).transpose(1, 2),
            DT=steps.transpose(1, 2),
            Trap=torch.logit(shares).transpose(1, 2),  # it takes the sigmoid itself
            Q_bias=query_bias,
            K_bias=key_bias,
            Angles=angles_BTHS,
            chunk_size=chunk_size,
        )

    return call


def _mamba2() -> Callable[..., Tensor]:
    """Load mamba_ssm's Mamba-2, with documents: one decay rate a head, one term, no rotation, no biases."""
    scan: Any = import_module("mamba_ssm.ops.triton.ssd_combined").mamba_chunk_scan_combined

    def call(queries, keys, query_bias, key_bias, values, steps, rates, shares, velocities, documents, chunk_size):
        rates_H, documents_BT = rates.mean((0, 1)), documents.to(torch.int32)
        return scan(values, steps, rates_H, keys.unsqueeze(2), queries.unsqueeze(2), chunk_size, seq_idx=documents_BT)

    return call


def _simple_gla() -> Callable[..., Tensor]:
    """Load flash-linear-attention's simple GLA: the decay alone, one term, no rotation, no biases, no documents; keys a head."""
    scan: Any = import_module("fla.ops.simple_gla").chunk_simple_gla

    def call(queries, keys, query_bias, key_bias, values, steps, rates, shares, velocities, documents, chunk_size):
        shape = (-1, -1, values.shape[2], -1)
        queries_BTHN, keys_BTHN = queries.unsqueeze(2).expand(shape), keys.unsqueeze(2).expand(shape)
        scaled_BTHP = (values * steps.unsqueeze(-1)).to(values.dtype)
        return scan(q=queries_BTHN.contiguous(), k=keys_BTHN.contiguous(), v=scaled_BTHP, g=rates * steps, scale=1.0)[0]

    return call


PEERS: Mapping[str, Callable[[], Callable[..., Tensor]]] = {
    "mamba_ssm mamba3_siso_combined, without documents": _mamba3,
    "mamba_ssm mamba_chunk_scan_combined, Mamba-2": _mamba2,
    "fla chunk_simple_gla, decay alone": _simple_gla,
}
