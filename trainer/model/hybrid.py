"""The stack that a pattern string names: every layer is x = x + block(norm(x)).

Shapes: B rows, T tokens of a row, D width, V vocabulary.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.config import BlockKind, ModelConfig
from trainer.model.attention import Attention
from trainer.model.experts import ExpertCounters, Experts
from trainer.model.initialization import Normal, ParameterKind, ParameterSpec
from trainer.model.layers import RMSNorm
from trainer.model.loss import chunked_cross_entropy
from trainer.model.m2rnn import M2RNN
from trainer.model.mamba3 import Mamba3
from trainer.model.segments import PackedRows, describe_rows

# Small enough that the first logits are almost equal, whatever the width: the loss starts at log(vocabulary).
TOKEN_STANDARD_DEVIATION = 0.02


class TrainingBatch(NamedTuple):
    """A batch of packed rows. `loss_mask_BT` is zero where the target is not trained: a piece's last token, padding."""

    input_ids_BT: Tensor
    target_ids_BT: Tensor
    loss_mask_BT: Tensor
    doc_ids_BT: Tensor


class LossMetrics(NamedTuple):
    """Parts of a loss, detached scalars: summed cross-entropy in nats, trained tokens, weighted router z-loss."""

    cross_entropy_sum: Tensor
    num_trained_tokens: Tensor
    router_z_loss: Tensor


def build_block(config: ModelConfig, layer: int, vocabulary_size: int) -> nn.Module:
    """The block of one layer. Its `forward(hidden_BTD, rows)` returns a BlockOutput."""
    match config.layer_kinds[layer]:
        case BlockKind.ATTENTION:
            return Attention(config, layer, vocabulary_size)
        case BlockKind.EXPERTS:
            return Experts(config)
        case BlockKind.MAMBA3:
            return Mamba3(config)
        case BlockKind.M2RNN:
            return M2RNN(config)


class Layer(nn.Module):
    """Norm, block, residual. It does not know its index, so that layers of one kind share one compiled graph."""

    def __init__(self, config: ModelConfig, block: nn.Module) -> None:
        super().__init__()
        self.norm = RMSNorm(config.width, config.norm_epsilon)
        self.block = block

    def forward(self, hidden_BTD: Tensor, rows: PackedRows) -> tuple[Tensor, Tensor | None]:
        output = self.block(self.norm(hidden_BTD), rows)
        return hidden_BTD + output.update_BTD, output.penalty


class HybridModel(nn.Module):
    """A language model over packed rows. Weights are unset until `initialize` or a checkpoint writes them."""

    def __init__(self, config: ModelConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.config = config
        self.vocabulary_size = vocabulary_size
        self.embedding_VD = nn.Parameter(torch.empty(vocabulary_size, config.width))
        self.layers = nn.ModuleList(
            Layer(config, build_block(config, layer, vocabulary_size)) for layer in range(config.depth)
        )
        self.norm = RMSNorm(config.width, config.norm_epsilon)
        self.head_VD = None if config.is_head_tied else nn.Parameter(torch.empty(vocabulary_size, config.width))

    def parameter_specs(self) -> dict[str, ParameterSpec]:
        initializer = Normal(TOKEN_STANDARD_DEVIATION)
        specs = {"embedding_VD": ParameterSpec(initializer, ParameterKind.EMBEDDING)}
        if self.head_VD is not None:
            specs["head_VD"] = ParameterSpec(initializer, ParameterKind.HEAD)
        return specs

    def forward(self, input_ids_BT: Tensor, doc_ids_BT: Tensor) -> Tensor:
        """Hidden states (B, T, D) after the final norm."""
        return self._run(input_ids_BT, doc_ids_BT)[0]

    def logits(self, hidden_BTD: Tensor) -> Tensor:
        """Scores (..., V) of the next token for hidden states (..., D). For a few positions: training uses `loss`."""
        return functional.linear(hidden_BTD, self._head().to(hidden_BTD.dtype))

    def loss(self, batch: TrainingBatch, num_divisor_tokens: Tensor | None = None) -> tuple[Tensor, LossMetrics]:
        """Mean cross-entropy over the trained tokens plus the router's z-loss, and its parts.

        `num_divisor_tokens` is the number of trained tokens of the whole step where this batch is one share of it: the
        losses of all shares then add up to the step's loss. Absent, it is this batch's own number.
        """
        hidden_BTD, penalty = self._run(batch.input_ids_BT, batch.doc_ids_BT)
        is_trained_M = batch.loss_mask_BT.flatten().bool()
        targets_M = batch.target_ids_BT.flatten()
        cross_entropy_sum = chunked_cross_entropy(
            hidden_BTD.flatten(0, 1), self._head(), targets_M, is_trained_M, self.config.loss_chunk_tokens
        )
        num_trained = is_trained_M.sum()
        divisor = (num_trained if num_divisor_tokens is None else num_divisor_tokens).clamp(min=1)
        loss = (cross_entropy_sum + penalty * num_trained) / divisor
        return loss, LossMetrics(cross_entropy_sum.detach(), num_trained, penalty.detach())

    def balance_experts(self, rate: float) -> None:
        """Move the selection biases of all E layers after a training step and zero their counters."""
        for _, experts in self._expert_layers():
            experts.balance(rate)

    def expert_counters(self) -> dict[int, ExpertCounters]:
        """What each E layer, by its index, counted since the last `balance_experts`."""
        return {layer: experts.counters() for layer, experts in self._expert_layers()}

    def _expert_layers(self) -> list[tuple[int, Experts]]:
        blocks = [layer.block for layer in self.layers]
        return [(index, block) for index, block in enumerate(blocks) if isinstance(block, Experts)]

    def _head(self) -> Tensor:
        return self.embedding_VD if self.head_VD is None else self.head_VD

    def _run(self, input_ids_BT: Tensor, doc_ids_BT: Tensor) -> tuple[Tensor, Tensor]:
        rows = describe_rows(input_ids_BT, doc_ids_BT)
        hidden_BTD = functional.embedding(rows.input_ids_BT, self.embedding_VD)
        penalty = hidden_BTD.new_zeros(())
        for layer in self.layers:
            hidden_BTD, layer_penalty = layer(hidden_BTD, rows)
            if layer_penalty is not None:
                penalty = penalty + layer_penalty
        return self.norm(hidden_BTD), penalty


def count_parameters(model: nn.Module) -> int:
    """Number of parameter elements; a tied head counts once."""
    return sum(parameter.numel() for parameter in model.parameters())
