"""Initial weights: a function of (seed, parameter name) alone, over the full logical tensor.

Each parameter has its own generator, seeded by a digest of the seed and its name. An added module changes no
other parameter, a shard of any mesh is a slice, and no global generator is read. Modules declare how their own
parameters start and their purpose (`ParameterKind`, which the optimizer reads) in `parameter_specs()`.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from trainer.distributed.shards import own_rows, rows_like


class ParameterKind(StrEnum):
    """Purpose of a parameter. `channel` covers norms, biases, taps and per-head scalars or transitions."""

    MATRIX = "matrix"
    EMBEDDING = "embedding"
    HEAD = "head"
    ROUTER = "router"
    ENGRAM_TABLE = "engram_table"
    CHANNEL = "channel"


class Initializer(Protocol):
    """Draws the first value of a parameter, float32 on the CPU, from the generator that it is given alone."""

    def draw(self, shape: torch.Size, generator: torch.Generator) -> Tensor:
        """Return a tensor of this shape."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """The same value everywhere."""

    value: float

    def draw(self, shape: torch.Size, generator: torch.Generator) -> Tensor:
        return torch.full(shape, self.value)


@dataclass(frozen=True, slots=True)
class Normal:
    """Independent Gaussians of mean zero."""

    standard_deviation: float

    def draw(self, shape: torch.Size, generator: torch.Generator) -> Tensor:
        return torch.empty(shape).normal_(0.0, self.standard_deviation, generator=generator)


@dataclass(frozen=True, slots=True)
class Uniform:
    """Independent uniform draws of mean zero, up to a bound."""

    bound: float

    def draw(self, shape: torch.Size, generator: torch.Generator) -> Tensor:
        return torch.empty(shape).uniform_(-self.bound, self.bound, generator=generator)


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity matrix for each index of the leading axes."""

    def draw(self, shape: torch.Size, generator: torch.Generator) -> Tensor:
        return torch.eye(shape[-1]).expand(shape).clone()


@dataclass(frozen=True, slots=True)
class LogOfUniform:
    """The logarithm of a uniform draw: a positive quantity stored as its exponent."""

    low: float
    high: float

    def draw(self, shape: torch.Size, generator: torch.Generator) -> Tensor:
        return torch.empty(shape).uniform_(self.low, self.high, generator=generator).log()


@dataclass(frozen=True, slots=True)
class StepSizeBias:
    """Biases whose softplus is log-uniform in [low, high]: step sizes spread over the time scales of a document."""

    low: float = 1e-3
    high: float = 0.1

    def draw(self, shape: torch.Size, generator: torch.Generator) -> Tensor:
        exponents = torch.empty(shape).uniform_(math.log(self.low), math.log(self.high), generator=generator)
        step_sizes = exponents.exp()
        # Inverse softplus, in the form that does not cancel for small steps.
        return step_sizes + torch.log(-torch.expm1(-step_sizes))


@dataclass(frozen=True, slots=True)
class ParameterSpec:
    """Initializer and kind of a parameter. `cut` is the axis and the sizes of the matrices that are concatenated in it."""

    initializer: Initializer
    kind: ParameterKind
    cut: tuple[int, tuple[int, ...]] | None = None


@runtime_checkable
class DeclaresParameters(Protocol):
    """A module that owns parameters says how each begins."""

    def parameter_specs(self) -> dict[str, ParameterSpec]:
        """Return one entry for each parameter that the module itself registers, by its local name."""
        ...


def fan_in_normal(fan_in: int, num_branches: int = 1) -> Normal:
    """Return Gaussians that keep a unit-variance input at unit variance.

    The last matrix of a residual branch divides that variance by the number of branches that are added to the stream.
    """
    return Normal((fan_in * num_branches) ** -0.5)


def fan_in_uniform(fan_in: int, num_branches: int = 1) -> Uniform:
    """Return the draws of torch's linear layer, a third of that variance, with which Mamba-3 is published."""
    return Uniform((fan_in * num_branches) ** -0.5)


def parameter_specs(model: nn.Module) -> Iterator[tuple[str, nn.Parameter, ParameterSpec]]:
    """Yield every parameter of a model, sorted by full name, with its declaration. Raises TypeError if one is missing."""
    specs = {
        f"{prefix}.{name}" if prefix else name: spec
        for prefix, module in model.named_modules()
        if isinstance(module, DeclaresParameters)
        for name, spec in module.parameter_specs().items()
    }
    parameters = dict(model.named_parameters())
    if specs.keys() != parameters.keys():
        raise TypeError(f"parameters and their declarations differ: {sorted(specs.keys() ^ parameters.keys())}")
    for name in sorted(parameters):
        yield name, parameters[name], specs[name]


def initial_value(seed: int, name: str, shape: torch.Size, initializer: Initializer) -> Tensor:
    """Return the first value of the parameter `name`: float32, on the CPU, the full logical tensor."""
    message = f"{seed}\0{name}".encode()
    generator = torch.Generator().manual_seed(int.from_bytes(hashlib.sha256(message).digest()[:8], "little") >> 1)
    return initializer.draw(shape, generator)


@torch.no_grad()
def initialize(model: nn.Module, seed: int) -> None:
    """Write the initial value of every parameter, in place; of a sharded one, this rank's slice of it."""
    for name, parameter, spec in parameter_specs(model):
        value = initial_value(seed, name, parameter.shape, spec.initializer)
        own_rows(parameter).copy_(rows_like(value, parameter))
