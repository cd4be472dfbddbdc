"""Structure embedding of a token: the kind of its chunk, and the dependency level of its document.

    s = W_out (E_kind[kind] + E_level[level])        added to the token's embedding

W_out starts at zero: the embedding has no effect at first. Codes beyond the tables count as the last row.

Shapes: B rows, T tokens of a row, K kinds, L levels, N bottleneck, D width.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.config.model import StructureConfig
from trainer.model.initialization import Constant, Normal, ParameterKind, ParameterSpec


class StructureEmbedding(nn.Module):
    """Two small tables and one projection."""

    def __init__(self, config: StructureConfig, width: int) -> None:
        super().__init__()
        self.kinds_KN = nn.Parameter(torch.empty(config.num_kinds, config.bottleneck_size))
        self.levels_LN = nn.Parameter(torch.empty(config.num_levels, config.bottleneck_size))
        self.out_DN = nn.Parameter(torch.empty(width, config.bottleneck_size))

    def parameter_specs(self) -> dict[str, ParameterSpec]:
        table = ParameterSpec(Normal(1.0), ParameterKind.EMBEDDING)
        out = ParameterSpec(Constant(0.0), ParameterKind.MATRIX)
        return {"kinds_KN": table, "levels_LN": table, "out_DN": out}

    def forward(self, structure_kind_BT: Tensor, dependency_level_BT: Tensor) -> Tensor:
        """Return the term that is added to the token embeddings (B, T, D). Codes are of any integer type and not negative."""
        kind_BTN = _row_of(self.kinds_KN, structure_kind_BT)
        level_BTN = _row_of(self.levels_LN, dependency_level_BT)
        return functional.linear(kind_BTN + level_BTN, self.out_DN)


def _row_of(table_RN: Tensor, codes_BT: Tensor) -> Tensor:
    return functional.embedding(codes_BT.long().clamp(max=len(table_RN) - 1), table_RN)
