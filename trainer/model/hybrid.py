"""Hybrid model: the stack of layers that a pattern string names, each x = x + block(norm(x)).

Shapes: B rows, T tokens of a row, D width, V vocabulary.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from pipeline.core.errors import TrainingError
from trainer.config.model import BlockKind, ModelConfig
from trainer.model.blocks.attention import Attention
from trainer.model.blocks.experts import Experts
from trainer.model.blocks.m2rnn import M2RNN
from trainer.model.blocks.mamba3 import Mamba3
from trainer.model.document_attention import AttentionPlan
from trainer.model.initialization import Normal, ParameterKind, ParameterSpec
from trainer.model.layers import RMSNorm
from trainer.model.loss import LossMetrics, ModelOutputs, TrainingBatch, training_loss
from trainer.model.segments import PackedRows, StepToken, describe_rows
from trainer.model.structure_embedding import StructureEmbedding

TOKEN_STANDARD_DEVIATION = 0.02
"""Of the first embedding and head, as published. First logits deviate by 0.02 sqrt(width), so that the loss of an untied head
begins at log(vocabulary) + 0.0002 width: 0.01 above log(vocabulary) at a width of 64, 0.72 at 3,584."""


class DecodingState(NamedTuple):
    """State of a decoding: positions in the document, -1 before the first token, and each block's state."""

    positions_B: Tensor
    blocks: tuple[tuple[Any, ...], ...]


def build_block(config: ModelConfig, layer: int, vocabulary_size: int) -> nn.Module:
    """Build the block of a layer. Its `forward(hidden_BTD, rows)` returns a BlockOutput; `step` is described in `segments`."""
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

    def step(self, hidden_BD: Tensor, token: StepToken, state: tuple[Any, ...]) -> tuple[Tensor, tuple[Any, ...]]:
        """Return the hidden states after the layer for one token, and the block's state after it."""
        update_BD, state = self.block.step(self.norm(hidden_BD), token, state)
        return hidden_BD + update_BD, state


class HybridModel(nn.Module):
    """A language model over packed rows. Weights are unset until `initialize` or a checkpoint writes them."""

    def __init__(self, config: ModelConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.config = config
        self.vocabulary_size = vocabulary_size
        self.dtype: torch.dtype | None = None  # of matrix products; None: the parameters' own
        self.attention = AttentionPlan()
        self.embedding_VD = nn.Parameter(torch.empty(vocabulary_size, config.width))
        self.layers = nn.ModuleList(
            Layer(config, build_block(config, layer, vocabulary_size)) for layer in range(config.depth)
        )
        self.norm = RMSNorm(config.width, config.norm_epsilon)
        self.head_VD = None if config.is_head_tied else nn.Parameter(torch.empty(vocabulary_size, config.width))
        self.structure = StructureEmbedding(config.structure, config.width) if config.structure else None

    def parameter_specs(self) -> dict[str, ParameterSpec]:
        initializer = Normal(TOKEN_STANDARD_DEVIATION)
        specs = {"embedding_VD": ParameterSpec(initializer, ParameterKind.EMBEDDING)}
        if self.head_VD is not None:
            specs["head_VD"] = ParameterSpec(initializer, ParameterKind.HEAD)
        return specs

    def forward(
        self,
        input_ids_BT: Tensor,
        doc_ids_BT: Tensor,
        structure_kind_BT: Tensor | None = None,
        dependency_level_BT: Tensor | None = None,
    ) -> Tensor:
        """Return hidden states (B, T, D) after the final norm. Without its columns the structure embedding adds nothing."""
        return self._run(input_ids_BT, doc_ids_BT, structure_kind_BT, dependency_level_BT)[0]

    def initial_state(self, num_rows: int) -> DecodingState:
        """Return the state before the first token of `num_rows` rows that are decoded together."""
        blocks = tuple(layer.block.initial_state(num_rows) for layer in self.layers)
        positions_B = torch.full((num_rows,), -1, dtype=torch.int64, device=self.embedding_VD.device)
        return DecodingState(positions_B, blocks)

    def step(
        self, input_ids_B: Tensor, state: DecodingState, is_start_B: Tensor | None = None
    ) -> tuple[Tensor, DecodingState]:
        """Return hidden states (B, D) of one more token in each row, equal to those of the full pass, and the state after it.

        Where `is_start_B` holds, the token begins a new document; the first token does so anyway.
        """
        positions_B = state.positions_B + 1
        if is_start_B is not None:
            positions_B = positions_B.masked_fill(is_start_B, 0)
        token = StepToken(input_ids_B.long(), positions_B)
        hidden_BD = self._embed(token.input_ids_B)
        states = []
        for layer, before in zip(self.layers, state.blocks, strict=True):
            hidden_BD, after = layer.step(hidden_BD, token, before)
            states.append(after)
        return self.norm(hidden_BD), DecodingState(positions_B, tuple(states))

    def logits(self, hidden_BTD: Tensor) -> Tensor:
        """Return scores (..., V) of the next token for hidden states (..., D). For a few positions: training uses `loss`."""
        return functional.linear(hidden_BTD, self._head().to(hidden_BTD.dtype))

    def loss(self, batch: TrainingBatch, num_divisor_tokens: Tensor | None = None) -> tuple[Tensor, LossMetrics]:
        """Return the training loss of a batch and its parts; see `trainer.model.loss.training_loss`."""
        structure = batch.structure_kind_BT, batch.dependency_level_BT
        if self.structure is not None and None in structure:
            raise TrainingError(
                "batch",
                "it has no structure kinds and dependency levels",
                "both, for a model with a structure embedding",
                "Let the loader carry them, or leave `structure` out of the model.",
            )
        hidden_BTD, penalty = self._run(batch.input_ids_BT, batch.doc_ids_BT, *structure)
        outputs = ModelOutputs(
            self.config,
            hidden_BTD.flatten(0, 1),
            self._head(),
            batch.target_ids_BT.flatten(),
            batch.loss_mask_BT.flatten().bool(),
            penalty,
        )
        return training_loss(outputs, num_divisor_tokens)

    def balance_experts(self, rate: float) -> None:
        """Move the selection biases of all E layers after a training step and zero their counters."""
        for _, experts in self._expert_layers():
            experts.balance(rate)

    def _expert_layers(self) -> list[tuple[int, Experts]]:
        blocks = [layer.block for layer in self.layers]
        return [(index, block) for index, block in enumerate(blocks) if isinstance(block, Experts)]

    def _embed(self, input_ids: Tensor) -> Tensor:
        hidden = functional.embedding(input_ids, self.embedding_VD)
        multiplier = self.config.embedding_multiplier
        return hidden if multiplier is None else hidden * multiplier

    def _enter(self, rows: PackedRows) -> Tensor:
        """Return what enters the residual stream (B, T, D)."""
        hidden_BTD = self._embed(rows.input_ids_BT)
        if not (self.structure is None or rows.structure_kind_BT is None or rows.dependency_level_BT is None):
            hidden_BTD = hidden_BTD + self.structure(rows.structure_kind_BT, rows.dependency_level_BT)
        return hidden_BTD if self.dtype is None else hidden_BTD.to(self.dtype)

    def _head(self) -> Tensor:
        return self.embedding_VD if self.head_VD is None else self.head_VD

    def _run(self, input_ids_BT: Tensor, *columns: Tensor | None) -> tuple[Tensor, Tensor]:
        if input_ids_BT.shape[1] > self.config.max_row_tokens:
            raise TrainingError(
                "rows", f"they have {input_ids_BT.shape[1]} tokens", f"at most {self.config.max_row_tokens}", _TOO_LONG
            )
        rows = describe_rows(input_ids_BT, *columns, self.attention)
        hidden_BTD, penalty = self.run_layers(self._enter(rows), rows)
        return self.norm(hidden_BTD), penalty

    def run_layers(self, hidden_BTD: Tensor, rows: PackedRows) -> tuple[Tensor, Tensor]:
        """Return the residual stream after the last layer, and the sum of the layers' own terms of the loss."""
        penalty = hidden_BTD.new_zeros((), dtype=self.embedding_VD.dtype)
        for layer in self.layers:
            hidden_BTD, layer_penalty = layer(hidden_BTD, rows)
            if layer_penalty is not None:
                penalty = penalty + layer_penalty
        return hidden_BTD, penalty


_TOO_LONG = "Pack shorter rows, or raise the model's max_row_tokens."
