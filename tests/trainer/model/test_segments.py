"""Segments are runs of equal document ids."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.model.document_attention import causal_mask
from trainer.model.segments import derive_segments, describe_rows


def test_segments_count_runs_positions_restart_and_padding_is_its_own_run() -> None:
    doc_ids_BT = torch.tensor([[1, 1, 1, 2, 3, 3, -1, -1], [1, 1, 1, 1, 1, 1, 1, 1]], dtype=torch.int32)

    segments = derive_segments(doc_ids_BT)

    assert segments.segment_ids_BT.tolist() == [[0, 0, 0, 1, 2, 2, 3, 3], [0] * 8]
    assert segments.positions_BT.tolist() == [[0, 1, 2, 0, 0, 1, 0, 1], [0, 1, 2, 3, 4, 5, 6, 7]]
    assert segments.document_starts_BT.int().tolist() == [[1, 0, 0, 1, 1, 0, 1, 0], [1, 0, 0, 0, 0, 0, 0, 0]]
    assert segments.is_padding_BT.int().tolist() == [[0, 0, 0, 0, 0, 0, 1, 1], [0] * 8]


@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=8), num_padding=st.integers(0, 5))
def test_segments_are_those_of_the_document_lengths(lengths: list[int], num_padding: int) -> None:
    runs = [*lengths, num_padding] if num_padding else lengths
    doc_ids = [document for document, length in enumerate(lengths, start=1) for _ in range(length)]

    segments = derive_segments(torch.tensor([doc_ids + [-1] * num_padding]))

    assert segments.positions_BT[0].tolist() == [position for length in runs for position in range(length)]
    assert segments.segment_ids_BT[0].tolist() == [run for run, length in enumerate(runs) for _ in range(length)]
    assert segments.document_starts_BT.sum() == len(runs)
    assert segments.is_padding_BT.sum() == num_padding


def test_the_values_of_document_ids_do_not_matter_only_their_changes() -> None:
    plain = derive_segments(torch.tensor([[1, 1, 2, 2, 3]]))
    renamed = derive_segments(torch.tensor([[7, 7, 1, 1, 7]]))

    for left, right in zip(plain, renamed, strict=True):
        assert torch.equal(left, right)


def test_a_token_sees_itself_and_what_is_before_it_in_its_document() -> None:
    mask = causal_mask(torch.tensor([[0, 0, 1, 1]]))

    assert mask.int().tolist() == [[[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]]]


def test_every_token_of_a_padded_row_sees_at_least_itself() -> None:
    rows = describe_rows(torch.zeros(1, 5, dtype=torch.int32), torch.tensor([[1, 2, -1, -1, -1]]))

    assert rows.attention.mask_B1TT.any(-1).all()
    assert rows.input_ids_BT.dtype == torch.int64
