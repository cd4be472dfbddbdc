"""Layers that blocks share: a projection, a norm, a rotation of channels, and the output of a block.

Shapes: B rows, T tokens of a row, D width, I width in, O width out, N channels, S rotated pairs (2 S <= N).
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from kernels.rms_norm import rms_norm
from trainer.model.initialization import Constant, Initializer, ParameterKind, ParameterSpec, fan_in_normal

NUM_TAPS = 4


class BlockOutput(NamedTuple):
    """Update of the residual stream by a block, and the block's own term of the training loss, a scalar or None."""

    update_BTD: Tensor
    penalty: Tensor | None


def cast_of(module: nn.Module, name: str, dtype: torch.dtype) -> Tensor:
    """Return a parameter of a module in a dtype: the step's cast where the module's `casts` holds one, else a new one."""
    cast: Tensor | None = module.casts.get(name)  # type: ignore[operator, union-attr]  # a dictionary
    return cast if cast is not None and cast.dtype == dtype else getattr(module, name).to(dtype)


class Projection(nn.Module):
    """A linear map without bias. The master weight is cast to the dtype of its input: the caller chooses precision, and
    `trainer.compile.weight_casts` makes the casts of a step at once.

    `parts` are the widths of the tensors that are concatenated in its output. It begins as `initializer` says, else with
    Gaussians that keep a unit-variance input at unit variance.
    """

    def __init__(
        self, width_in: int, width_out: int, parts: tuple[int, ...] = (), initializer: Initializer | None = None
    ) -> None:
        super().__init__()
        self.parts = parts
        self.initializer = initializer or fan_in_normal(width_in)
        self.weight = nn.Parameter(torch.empty(width_out, width_in))
        self.casts: dict[str, Tensor] = {}

    def parameter_specs(self) -> dict[str, ParameterSpec]:
        cut = (0, self.parts) if self.parts else None
        return {"weight": ParameterSpec(self.initializer, ParameterKind.MATRIX, cut)}

    def forward(self, x_I: Tensor) -> Tensor:
        return functional.linear(x_I, cast_of(self, "weight", x_I.dtype))


class RMSNorm(nn.Module):
    """Root-mean-square norm over the last axis, with a weight that starts at one."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))
        self.epsilon = epsilon

    def parameter_specs(self) -> dict[str, ParameterSpec]:
        return {"weight": ParameterSpec(Constant(1.0), ParameterKind.CHANNEL)}

    def forward(self, x_D: Tensor) -> Tensor:
        return rms_norm(x_D, self.weight, self.epsilon)


def rotate_pairs(vectors_N: Tensor, phases_S: Tensor) -> Tensor:
    """Turn the pair (2i, 2i+1) of the last axis by `phases[..., i]` radians for i < S; the channels after 2 S stay.

    Leading axes of the phases broadcast against those of the vectors. Angles keep their own dtype, the result has that
    of the vectors: a position has more digits than bfloat16. Source: Su et al. 2021, arXiv 2104.09864.
    """
    num_turned = 2 * phases_S.shape[-1]
    turned, rest = vectors_N[..., :num_turned], vectors_N[..., num_turned:]
    even_S, odd_S = turned[..., 0::2], turned[..., 1::2]
    cosine_S, sine_S = phases_S.cos(), phases_S.sin()
    pairs_S2 = torch.stack((even_S * cosine_S - odd_S * sine_S, even_S * sine_S + odd_S * cosine_S), dim=-1)
    return torch.cat((pairs_S2.flatten(-2).to(vectors_N.dtype), rest), dim=-1)
