"""Segments of packed rows: bounds of documents, derived once for attention, scans, convolutions, Engram and the loss.

Shapes: B rows, T tokens of a row.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from trainer.model.document_attention import AttentionPlan, Layout, lay_out

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
    """Everything that blocks need to know of a batch, computed once for all layers."""
    segments = derive_segments(doc_ids_BT)
    layout = lay_out(segments.segment_ids_BT, attention)
    return PackedRows(input_ids_BT.long(), segments, layout, structure_kind_BT, dependency_level_BT)
