"""Models of each preset's own layers and experts, and batches whose documents could reach each other.

Each preset keeps its pattern, its depth and its experts: their number, choices and gate. Widths are small, so that a CPU
computes it.
"""

import torch
from torch import Tensor

from trainer.config.model import AttentionConfig, EngramConfig, M2RNNConfig, Mamba3Config, ModelConfig
from trainer.config.presets import preset
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize

NUM_ROWS, ROW_LENGTH, VOCABULARY = 4, 256, 512
SEED = 42


def scaled(name: str) -> ModelConfig:
    """Return a preset with small widths."""
    config = preset(name)
    engram = EngramConfig(layers=config.attention.engram.layers, head_size=4, min_table_rows=200)
    return config.model_copy(
        update={
            "width": 32,
            "attention": AttentionConfig(num_query_heads=2, num_key_value_heads=1, head_size=16, engram=engram),
            "experts": config.experts.model_copy(update={"expert_size": 32, "shared_size": 32}),
            "mamba3": Mamba3Config(head_size=32, state_size=16, chunk_size=64),
            "m2rnn": M2RNNConfig(num_heads=2, key_size=8, value_size=8),
        }
    )


def model_of(config: ModelConfig, seed: int = SEED) -> HybridModel:
    """Return a model with its first weights; no weight that begins at zero is left there, so that every block counts."""
    model = HybridModel(config, VOCABULARY)
    initialize(model, seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.any():
                parameter.normal_(0, 0.02, generator=generator)
    return model.eval()


def batch(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return ids, other ids and the documents of rows of two to four documents; ids are as rare as Zipf has them."""
    generator = torch.Generator().manual_seed(seed)
    ranks_2BT = torch.rand(2, NUM_ROWS, ROW_LENGTH, generator=generator) * torch.log(torch.tensor(float(VOCABULARY)))
    doc_ids_BT = torch.ones(NUM_ROWS, ROW_LENGTH, dtype=torch.int64)
    for row in range(NUM_ROWS):
        cuts = torch.randperm(ROW_LENGTH - 2, generator=generator)[: 1 + row % 3] + 1
        doc_ids_BT[row, cuts.sort().values] = 2
        doc_ids_BT[row] = 1 + (doc_ids_BT[row] == 2).cumsum(0)
    ids_2BT = torch.exp(ranks_2BT).long().clamp(max=VOCABULARY) - 1
    return ids_2BT[0], ids_2BT[1], doc_ids_BT
