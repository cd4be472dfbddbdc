"""Segments of packed rows: bounds of documents, derived once for attention, scans, convolutions, Engram and the loss.

For decoding, one token at a time, each block has `initial_state(num_rows)` and `step(hidden_BD, token, state)`, which returns
its update and the state after the token. A step equals the full pass: same formulas, same order of the sums that have one.
States have the dtype and the device of the block's parameters.

Shapes: B rows, packed or decoded together; T tokens of a row; W tokens of a window, the newest last.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from trainer.model.document_attention import AttentionPlan, Layout, plan_inputs

PADDING_DOC_ID = -1


class Segments(NamedTuple):
    """The runs of equal `doc_ids` in each row. Nothing crosses the start of a run.

    `segment_ids_BT` counts runs from 0 in each row, int64; padding is a run of its own. `document_starts_BT` is true on
    a run's first token; `positions_BT` counts from 0 within a run; `is_padding_BT` is true on padding.
    """

    segment_ids_BT: Tensor
    document_starts_BT: Tensor
    positions_BT: Tensor
    is_padding_BT: Tensor


class PackedRows(NamedTuple):
    """Inputs of a block besides its hidden states. `attention` is the mask.

    The last two, if the batch has them, are the kind of each token's chunk and its document's dependency level.
    """

    input_ids_BT: Tensor
    segments: Segments
    attention: Layout
    structure_kind_BT: Tensor | None = None
    dependency_level_BT: Tensor | None = None


class StepToken(NamedTuple):
    """The token of a step in each row: its id, and its position in its document. A position of 0 starts a new one."""

    input_ids_B: Tensor
    positions_B: Tensor

    @property
    def is_start(self) -> Tensor:
        """Rows in which a document starts."""
        return self.positions_B == 0


def derive_segments(doc_ids_BT: Tensor) -> Segments:
    """Return the segments of rows whose `doc_ids` are 1..N for documents and -1 for padding (any integer type)."""
    changes = doc_ids_BT[:, 1:] != doc_ids_BT[:, :-1]
    document_starts_BT = torch.nn.functional.pad(changes, (1, 0), value=True)
    indices_T = torch.arange(doc_ids_BT.shape[1], device=doc_ids_BT.device)
    start_indices_BT = (document_starts_BT * indices_T).cummax(dim=1).values
    return Segments(
        segment_ids_BT=document_starts_BT.long().cumsum(dim=1) - 1,
        document_starts_BT=document_starts_BT,
        positions_BT=indices_T - start_indices_BT,
        is_padding_BT=doc_ids_BT == PADDING_DOC_ID,
    )


def describe_rows(
    input_ids_BT: Tensor,
    doc_ids_BT: Tensor,
    structure_kind_BT: Tensor | None = None,
    dependency_level_BT: Tensor | None = None,
    attention: AttentionPlan = AttentionPlan(),  # noqa: B008  # a tuple
) -> PackedRows:
    """Return what blocks need of a batch besides its hidden states, computed once for all layers."""
    segments = derive_segments(doc_ids_BT)
    layout = plan_inputs(segments.segment_ids_BT, attention)
    return PackedRows(input_ids_BT.long(), segments, layout, structure_kind_BT, dependency_level_BT)


def push(window_BW: Tensor, newest_B: Tensor) -> Tensor:
    """Return the window one token later: the oldest leaves, the newest is last."""
    return torch.cat((window_BW[:, 1:], newest_B.unsqueeze(1)), dim=1)


def window_segments(token: StepToken, num_tokens: int) -> Segments:
    """Return segments in which the last token of a window of `num_tokens` sees its document; the other tokens' mean nothing."""
    positions_BW = token.positions_B.unsqueeze(1).expand(-1, num_tokens)
    return Segments(positions_BW, positions_BW == 0, positions_BW, torch.zeros_like(positions_BW, dtype=torch.bool))
