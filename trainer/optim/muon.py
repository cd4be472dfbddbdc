"""Muon: momentum whose update is made orthogonal, matrix by matrix, and AdamW for everything that is no matrix.

    m <- momentum m + g        u = g + momentum m (Nesterov)        W <- (1 - rate decay) W - rate scale O(u)
    O(u): u = U S V^T becomes about U V^T                           scale = 0.2 sqrt(max(rows, columns))

O is an odd polynomial of degree five, iterated; its coefficients are the best ones for few iterations, then those that
converge. A parameter that holds several matrices (query, key and value; gate and up; one for each expert) is cut first: each
is orthogonal in itself. Matrices of one shape, of whatever parameter, are one batched product. Sharded matrices are gathered for
theirs, in the same batches and so with the same bits, and each rank keeps its rows of what comes out.

Sources: Jordan et al. 2024 (Muon); Liu et al. 2025 (scale to AdamW's root mean square), arXiv 2502.16982; Amsel et al. 2025
(coefficients), arXiv 2505.16932.

Shapes: N matrices of one shape, R rows, C columns.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim.adamw import adamw

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
"""Of x, x^3 and x^5, for the singular values x of each iteration; the last for all that follow."""
SAFETY = 1.01
"""The polynomials hold up to one: a norm that was rounded down must not let a singular value above it."""
MAX_BATCH_ELEMENTS = 2**26
"""Of the matrices that are orthogonalised at once: the copies of more would not fit beside a large model."""


class MuonAdamW(torch.optim.Optimizer):
    """Groups say which of the two: `algorithm` is `muon` or `adamw`. State exists from the start, zero.

    Muon groups carry `cuts`: for each parameter the axis and the sizes that it is cut along, or None.
    """

    def __init__(self, groups: Iterable[dict[str, Any]], defaults: dict[str, Any], is_fused: bool = False) -> None:
        super().__init__(groups, defaults)
        self.is_fused = is_fused
        for group in self.param_groups:
            for parameter in group["params"]:
                names = ("momentum",) if group["algorithm"] == "muon" else ("exp_avg", "exp_avg_sq")
                self.state[parameter] = {name: torch.zeros_like(parameter) for name in names}
                if group["algorithm"] == "adamw":
                    self.state[parameter]["step"] = torch.zeros((), device=parameter.device if is_fused else "cpu")

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # there is no closure to evaluate
        """One update of every parameter that has a gradient."""
        for group in self.param_groups:
            if group["algorithm"] == "muon":
                self._step_muon(group)
            else:
                self._step_adamw(group)

    def _step_muon(self, group: dict[str, Any]) -> None:
        places = [place for place, parameter in enumerate(group["params"]) if parameter.grad is not None]
        parameters = [group["params"][place] for place in places]
        updates = [self._look_ahead(parameter, group) for parameter in parameters]
        cuts = [group["cuts"][place] for place in places]
        orthogonalize(updates, cuts, group["num_iterations"], group["update_scale"])
        for parameter, update in zip(parameters, updates, strict=True):
            own_rows(parameter).mul_(1 - group["lr"] * group["weight_decay"])
            own_rows(parameter).add_(own_rows(update), alpha=-group["lr"])

    def _look_ahead(self, parameter: Tensor, group: dict[str, Any]) -> Tensor:
        """The update before it is orthogonal, in the place of the gradient: a copy of all matrices does not fit on a card."""
        gradient = parameter.grad
        assert gradient is not None
        own_gradient, momentum = own_rows(gradient), own_rows(self.state[parameter]["momentum"])
        momentum.mul_(group["momentum"]).add_(own_gradient)
        if group["has_nesterov_momentum"]:
            own_gradient.add_(momentum * group["momentum"])
        else:
            own_gradient.copy_(momentum)
        return gradient

    def _step_adamw(self, group: dict[str, Any]) -> None:
        parameters = [parameter for parameter in group["params"] if parameter.grad is not None]
        if not parameters:
            return
        beta1, beta2 = group["betas"]
        adamw(
            [own_rows(parameter) for parameter in parameters],
            [own_rows(parameter.grad) for parameter in parameters],
            [own_rows(self.state[parameter]["exp_avg"]) for parameter in parameters],
            [own_rows(self.state[parameter]["exp_avg_sq"]) for parameter in parameters],
            [],
            [self.state[parameter]["step"] for parameter in parameters],
            # One tensor at a time unless fused: foreach kernels may round in another order.
            foreach=False,
            fused=self.is_fused,
            amsgrad=False,
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=False,
        )


class Piece(NamedTuple):
    """Matrices of one shape in an update: `num_matrices` of (R, C), `start` to `start + length` along `axis` of update `place`."""

    place: int
    axis: int
    start: int
    length: int
    num_matrices: int
    shape: tuple[int, int]


def orthogonalize(
    updates: Sequence[Tensor], cuts: Sequence[tuple[int, tuple[int, ...]] | None], num_iterations: int, scale: float
) -> None:
    """Make each update (..., R, C), cut into its matrices, orthogonal and scaled to its size, in place and sharded as it was.

    No second copy of all matrices is made: each piece is read before it is written, and pieces do not overlap.
    """
    by_shape: dict[tuple[int, int], list[Piece]] = defaultdict(list)
    for place, (update, cut) in enumerate(zip(updates, cuts, strict=True)):
        for piece in _pieces(place, update.shape, cut):
            by_shape[piece.shape].append(piece)
    for shape, pieces in sorted(by_shape.items()):
        for batch in _batches(pieces):
            found_NRC = orthogonalized(_gathered(updates, batch), num_iterations) * (scale * max(shape) ** 0.5)
            for piece, part_NRC in zip(batch, found_NRC.split([piece.num_matrices for piece in batch]), strict=True):
                _put(updates[piece.place], piece, part_NRC)


def orthogonalized(matrices_NRC: Tensor, num_iterations: int) -> Tensor:
    """About U V^T of each matrix U S V^T, in its own dtype. A matrix of zeros stays one."""
    is_tall = matrices_NRC.shape[-2] > matrices_NRC.shape[-1]
    x_NRC = matrices_NRC.mT if is_tall else matrices_NRC
    norms_N11 = torch.linalg.vector_norm(x_NRC, dim=(-2, -1), keepdim=True)
    x_NRC = x_NRC / (norms_N11 * SAFETY).clamp(min=torch.finfo(x_NRC.dtype).tiny)
    for iteration in range(num_iterations):
        a, b, c = COEFFICIENTS[min(iteration, len(COEFFICIENTS) - 1)]
        gram_NRR = x_NRC @ x_NRC.mT
        x_NRC = a * x_NRC + (b * gram_NRR + c * gram_NRR @ gram_NRR) @ x_NRC
    return x_NRC.mT if is_tall else x_NRC


def _pieces(place: int, shape: torch.Size, cut: tuple[int, tuple[int, ...]] | None) -> Iterable[Piece]:
    """The matrices that lie in an update of this shape."""
    axis, lengths = cut or (0, (shape[0],))
    start = 0
    for length in lengths:
        own = [*shape[:axis], length, *shape[axis + 1 :]]
        yield Piece(place, axis, start, length, math.prod(own[:-2]), (own[-2], own[-1]))
        start += length


def _gathered(updates: Sequence[Tensor], batch: Sequence[Piece]) -> Tensor:
    """The matrices (N, R, C) of a batch, one after the other; an update is gathered once, however many of its pieces they are."""
    parts: list[Tensor] = []
    for place, own in groupby(batch, key=lambda piece: piece.place):
        update = whole(updates[place])
        parts += [update.narrow(each.axis, each.start, each.length).reshape(-1, *each.shape) for each in own]
    return torch.cat(parts)


def _put(update: Tensor, piece: Piece, part_NRC: Tensor) -> None:
    """Write a piece where it belongs; where the update is sharded, the rows that are this rank's."""
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


def _batches(pieces: Sequence[Piece]) -> Iterable[list[Piece]]:
    """Pieces of one shape, in order, as many together as the limit allows, and at least one."""
    batch: list[Piece] = []
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
