"""Packed rows from document lengths, and small models whose every parameter is away from its special starting value."""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn

from trainer.config.model import AttentionConfig, EngramConfig, ExpertsConfig, M2RNNConfig, Mamba3Config, ModelConfig
from trainer.model.initialization import initialize

DocIdsFrom = Callable[[Sequence[Sequence[int]], int], Tensor]
ConfigOf = Callable[..., ModelConfig]
Shaken = Callable[[nn.Module], nn.Module]


def _doc_ids_from(lengths_by_row: Sequence[Sequence[int]], num_tokens: int) -> Tensor:
    rows = []
    for lengths in lengths_by_row:
        row = [document for document, length in enumerate(lengths, start=1) for _ in range(length)]
        rows.append(row + [-1] * (num_tokens - len(row)))
    return torch.tensor(rows)


@pytest.fixture
def doc_ids_from() -> DocIdsFrom:
    """`doc_ids` (B, T) of rows given by the lengths of their documents; what is left of T is padding."""
    return _doc_ids_from


def _config_of(pattern: str, has_engram: bool = True) -> ModelConfig:
    attention_layers = tuple(index for index, letter in enumerate(pattern) if letter == "A")
    engram = EngramConfig(layers=attention_layers if has_engram else (), num_heads=2, head_size=4, min_table_rows=50)
    return ModelConfig(
        pattern=pattern,
        depth=len(pattern),
        width=16,
        loss_chunk_tokens=7,
        attention=AttentionConfig(num_query_heads=4, num_key_value_heads=2, head_size=4, engram=engram),
        experts=ExpertsConfig(num_experts=4, num_selected=2, expert_size=8, shared_size=8),
        mamba3=Mamba3Config(head_size=8, state_size=8, chunk_size=8),
        m2rnn=M2RNNConfig(num_heads=2, key_size=4, value_size=3),
    )


@pytest.fixture
def config_of() -> ConfigOf:
    """A small configuration for a pattern, Engram on every A layer by default."""
    return _config_of


def _shaken(module: nn.Module) -> nn.Module:
    initialize(module, seed=5)
    generator = torch.Generator().manual_seed(6)
    with torch.no_grad():
        for _, parameter in sorted(module.named_parameters()):
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    return module


@pytest.fixture
def shaken() -> Shaken:
    """Initialize a module and move every parameter, so that none sits at a zero or a one that would hide a fault."""
    return _shaken


@pytest.fixture
def strict_determinism():
    """Strict deterministic algorithms for one test."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture
def untouched_torch():
    """Restore the settings of torch's compiler, and forget its graphs."""
    before, is_deterministic = torch._dynamo.config.save_config(), torch._inductor.config.deterministic
    torch._dynamo.reset()
    yield
    torch._dynamo.config.load_config(before)
    torch._inductor.config.deterministic = is_deterministic
    torch.use_deterministic_algorithms(False)
    torch._dynamo.reset()
