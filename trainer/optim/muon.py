"""Muon: momentum whose update is made orthogonal, matrix by matrix.

    m <- momentum m + g        u = g + momentum m (Nesterov)        W <- (1 - rate decay) W - rate scale O(u)
    O(u): u = U S V^T becomes about U V^T                           scale = 0.2 sqrt(max(rows, columns))

O is an odd polynomial of degree five, iterated; its coefficients are the best ones for few iterations, then those that
converge. Five bring every singular value of at least a thousandth of the Frobenius norm within 13 % of one (in bfloat16, whose
rounding is of that size, of at least a hundredth within 14 %); each smaller one becomes at most 1,016 times its share of the
norm. A matrix whose norm is below 1e-7 enters them scaled down by as much. An expert that no token chose, whose gradient is
zero throughout, is not moved: neither its momentum nor decay says anything new of it.

A parameter that holds several matrices (query, key and value; gate and up; one for each expert) is cut first: each is
orthogonal in itself. Matrices of one shape are one batched product, whatever their parameters. Ranks take these batches in
turns, each sends what it has made to the others, and sharded matrices are gathered in the same batches: the same bits for any
number of ranks. Of a sharded result each rank keeps its rows.

Sources: Jordan et al. 2024 (Muon); Liu et al. 2025 (scale to AdamW's root mean square), arXiv 2502.16982; Amsel et al. 2025
(coefficients), arXiv 2505.16932.

Shapes: N matrices of one shape, R rows, C columns.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import torch
from torch import Tensor

from trainer.config.model import MuonConfig
from trainer.distributed.ranks import number_and_rank, receive_from
from trainer.distributed.shards import is_sharded, own_rows, range_of, whole

COEFFICIENTS = (
    (8.28721201814563, -23.595886519098837, 17.300387312530933),
    (4.107059111542203, -2.9478499167379106, 0.5448431082926601),
    (3.9486908534822946, -2.908902115962949, 0.5518191394370137),
    (3.3184196573706015, -2.488488024314874, 0.51004894012372),
    (2.300652019954817, -1.6689039845747493, 0.4188073119525673),
    (1.891301407787398, -1.2679958271945868, 0.37680408948524835),
    (1.875, -1.25, 0.375),
)
"""Coefficients of x, x^3 and x^5 for the singular values x, by iteration; the last row serves all later iterations."""
SAFETY = 1.01
"""The polynomials converge for singular values up to one; rounding must not let one exceed it, neither of the norm nor, in
bfloat16, of an iteration: there the powers of this factor divide all coefficients but the last, as published."""
LEAST_NORM = 1e-7
MAX_BATCH_ELEMENTS = 2**26
"""Limit of the matrices that are orthogonalized at once: copies of more would not fit beside a large model."""


class Muon:
    """Muon for the parameters of a group, each cut as the group's `cuts` say: an axis and sizes along it, or None."""

    name = "muon"
    settings = MuonConfig

    def initial_state(self, parameter: Tensor, group: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return the sum of gradients, zero."""
        return {"momentum": torch.zeros_like(parameter)}

    def step(self, group: Mapping[str, Any], state: Mapping[Tensor, dict[str, Tensor]]) -> None:
        """Update every parameter of the group that has a gradient."""
        trained = [
            (each, cut) for each, cut in zip(group["params"], group["cuts"], strict=True) if each.grad is not None
        ]
        idle = [_idle_matrices(parameter) for parameter, _ in trained]
        updates = [
            _momentum_update(parameter, state[parameter]["momentum"], group, is_idle)
            for (parameter, _), is_idle in zip(trained, idle, strict=True)
        ]
        dtype = torch.bfloat16 if group.get("product_dtype") == "bfloat16" else None
        orthogonalize(updates, [cut for _, cut in trained], group["num_iterations"], group["update_scale"], dtype)
        for (parameter, _), update, is_idle in zip(trained, updates, idle, strict=True):
            own = own_rows(parameter)
            own.mul_(_unless_idle(1 - group["lr"] * group["weight_decay"], is_idle, own))
            own.add_(own_rows(update), alpha=-group["lr"])


def _idle_matrices(parameter: Tensor) -> Tensor | None:
    """Return which of this rank's matrices (E,) of a stack (E, R, C) got no gradient but zeros; None for a single matrix."""
    if parameter.dim() < 3:
        return None
    assert parameter.grad is not None
    return (own_rows(parameter.grad) == 0).flatten(1).all(dim=1)


def _unless_idle(factor: float, is_idle: Tensor | None, like: Tensor) -> Tensor | float:
    """Return the factor, as (E, 1, 1) with one for the idle matrices where there is a stack of them."""
    if is_idle is None:
        return factor
    factors_E = torch.full(is_idle.shape, factor, dtype=like.dtype, device=like.device).masked_fill(is_idle, 1.0)
    return factors_E.view(-1, *(1,) * (like.dim() - 1))


def _momentum_update(parameter: Tensor, momentum: Tensor, group: Mapping[str, Any], is_idle: Tensor | None) -> Tensor:
    """Write the update over the gradient, not yet orthogonal: a copy of all matrices would not fit on a GPU."""
    gradient = parameter.grad
    assert gradient is not None
    own_gradient, own_momentum = own_rows(gradient), own_rows(momentum)
    own_momentum.mul_(_unless_idle(group["momentum"], is_idle, own_momentum)).add_(own_gradient)
    if group["has_nesterov_momentum"]:
        own_gradient.add_(own_momentum, alpha=group["momentum"])
    else:
        own_gradient.copy_(own_momentum)
    if is_idle is not None:
        own_gradient[is_idle] = 0
    return gradient


class MatrixPiece(NamedTuple):
    """`num_matrices` matrices (R, C) of update `place`: its slice `start` to `start + length` along `axis`."""

    place: int
    axis: int
    start: int
    length: int
    num_matrices: int
    shape: tuple[int, int]


def orthogonalize(
    updates: Sequence[Tensor],
    cuts: Sequence[tuple[int, tuple[int, ...]] | None],
    num_iterations: int,
    scale: float,
    dtype: torch.dtype | None = None,
) -> None:
    """Make each update (..., R, C), cut into its matrices, orthogonal and scaled to its size, in place and sharded as it was.

    Products are of `dtype`, or of the updates' own. No second copy of all matrices is made: each piece is read before it is
    written, and pieces do not overlap. All ranks call this at the same time; each makes one batch of a turn.
    """
    num_ranks, rank = number_and_rank()
    by_shape: dict[tuple[int, int], list[MatrixPiece]] = defaultdict(list)
    for place, (update, cut) in enumerate(zip(updates, cuts, strict=True)):
        for piece in _pieces(place, update.shape, cut):
            by_shape[piece.shape].append(piece)
    batches = [batch for _, pieces in sorted(by_shape.items()) for batch in _batches(pieces)]
    for first in range(0, len(batches), num_ranks):
        turn = batches[first : first + num_ranks]
        # All of a turn are gathered before one is multiplied: what is gathered later would wait for that.
        for owner, batch in enumerate(turn):
            if owner == rank:
                own_NRC = _gathered(updates, batch)
            elif any(is_sharded(updates[piece.place]) for piece in batch):
                _gathered(updates, batch)
        if rank < len(turn):
            own_scale = scale * max(own_NRC.shape[-2:]) ** 0.5
            own_NRC = (orthogonalized(own_NRC, num_iterations, dtype) * own_scale).contiguous()
        for owner, batch in enumerate(turn):
            found_NRC = own_NRC if owner == rank else _room_for(updates, batch)
            _put_all(updates, batch, receive_from(owner, found_NRC))


def _room_for(updates: Sequence[Tensor], batch: Sequence[MatrixPiece]) -> Tensor:
    """Return an empty tensor (N, R, C) for the matrices of a batch."""
    return own_rows(updates[0]).new_empty(sum(piece.num_matrices for piece in batch), *batch[0].shape)


def _put_all(updates: Sequence[Tensor], batch: Sequence[MatrixPiece], found_NRC: Tensor) -> None:
    """Write the matrices of a batch into their updates."""
    for piece, part_NRC in zip(batch, found_NRC.split([piece.num_matrices for piece in batch]), strict=True):
        _put(updates[piece.place], piece, part_NRC)


def orthogonalized(matrices_NRC: Tensor, num_iterations: int, dtype: torch.dtype | None = None) -> Tensor:
    """Return about U V^T for each matrix U S V^T, in its own dtype, multiplied in `dtype` if given. Zeros stay zero."""
    is_tall = matrices_NRC.shape[-2] > matrices_NRC.shape[-1]
    x_NRC = matrices_NRC.mT if is_tall else matrices_NRC
    norms_N11 = torch.linalg.vector_norm(x_NRC, dim=(-2, -1), keepdim=True)
    x_NRC = (x_NRC / (norms_N11 * SAFETY).clamp(min=LEAST_NORM)).to(dtype or x_NRC.dtype)
    for iteration in range(num_iterations):
        a, b, c = COEFFICIENTS[min(iteration, len(COEFFICIENTS) - 1)]
        if x_NRC.dtype == torch.bfloat16 and iteration < len(COEFFICIENTS) - 1:
            a, b, c = a / SAFETY, b / SAFETY**3, c / SAFETY**5
        gram_NRR = x_NRC @ x_NRC.mT
        factor_NRR = torch.baddbmm(gram_NRR, gram_NRR, gram_NRR, beta=b, alpha=c)  # scaled and added within the product
        x_NRC = torch.baddbmm(x_NRC, factor_NRR, x_NRC, beta=a)
    return (x_NRC.mT if is_tall else x_NRC).to(matrices_NRC.dtype)


def _pieces(place: int, shape: torch.Size, cut: tuple[int, tuple[int, ...]] | None) -> Iterable[MatrixPiece]:
    """Yield the pieces of an update of this shape."""
    axis, lengths = cut or (0, (shape[0],))
    start = 0
    for length in lengths:
        own = [*shape[:axis], length, *shape[axis + 1 :]]
        yield MatrixPiece(place, axis, start, length, math.prod(own[:-2]), (own[-2], own[-1]))
        start += length


def _gathered(updates: Sequence[Tensor], batch: Sequence[MatrixPiece]) -> Tensor:
    """Return the matrices (N, R, C) of a batch. An update is gathered once, however many of its pieces there are."""
    parts: list[Tensor] = []
    for place, own in groupby(batch, key=lambda piece: piece.place):
        update = whole(updates[place])
        parts += [update.narrow(each.axis, each.start, each.length).reshape(-1, *each.shape) for each in own]
    return torch.cat(parts)


def _put(update: Tensor, piece: MatrixPiece, part_NRC: Tensor) -> None:
    """Write a piece into its update; if that is sharded, only this rank's rows."""
    shape = [*update.shape]
    shape[piece.axis] = piece.length
    part = part_NRC.reshape(shape)
    if not is_sharded(update):
        update.narrow(piece.axis, piece.start, piece.length).copy_(part)
        return
    rows, own = range_of(update), own_rows(update)
    if piece.axis > 0:
        own.narrow(piece.axis, piece.start, piece.length).copy_(part[rows.start : rows.stop])
        return
    first, end = max(rows.start, piece.start), min(rows.stop, piece.start + piece.length)
    if first < end:
        own[first - rows.start : end - rows.start] = part[first - piece.start : end - piece.start]


def _batches(pieces: Sequence[MatrixPiece]) -> Iterable[list[MatrixPiece]]:
    """Yield pieces of one shape, in order, as many together as the limit allows, and at least one."""
    batch: list[MatrixPiece] = []
    num_elements = 0
    for piece in pieces:
        size = piece.num_matrices * math.prod(piece.shape)
        if batch and num_elements + size > MAX_BATCH_ELEMENTS:
            yield batch
            batch, num_elements = [], 0
        batch.append(piece)
        num_elements += size
    if batch:
        yield batch
