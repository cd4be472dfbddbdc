"""One token at a time: what a step knows of its token, and windows over the tokens before it.

Each block has `initial_state(num_rows)` and `step(hidden_BD, token, state)`, which returns its update and the state after
the token. A step equals the full pass: same formulas, same order of the sums that have one. States live in the dtype and
on the device of the block's parameters.

Shapes: B rows that are decoded side by side, W tokens of a window, the newest last, C channels.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from trainer.model.segments import Segments


class StepToken(NamedTuple):
    """The token of a step in each row: its id, and its position in its document. A position of 0 starts a new one."""

    input_ids_B: Tensor
    positions_B: Tensor

    @property
    def is_start(self) -> Tensor:
        """Rows in which a document starts."""
        return self.positions_B == 0


def push(window_BW: Tensor, newest_B: Tensor) -> Tensor:
    """Return the window one token later: the oldest leaves, the newest is last."""
    return torch.cat((window_BW[:, 1:], newest_B.unsqueeze(1)), dim=1)


def window_segments(token: StepToken, num_tokens: int) -> Segments:
    """Segments under which the last token of a window of `num_tokens` sees those of its document. The others mean nothing."""
    positions_BW = token.positions_B.unsqueeze(1).expand(-1, num_tokens)
    return Segments(positions_BW, positions_BW == 0, positions_BW, torch.zeros_like(positions_BW, dtype=torch.bool))
