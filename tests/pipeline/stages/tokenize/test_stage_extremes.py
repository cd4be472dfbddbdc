"""Documents and rows of odd sizes: nothing is lost, nothing is cropped, and what a gate looks at stays sound."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline.contracts.training_row import NUM_SENTINELS
from pipeline.core.records import EnrichedDocument, Split
from pipeline.core.schema import table_of_records
from pipeline.stages.tokenize.columns.list_column import ListColumn
from pipeline.stages.tokenize.params import TokenizeParams
from pipeline.stages.tokenize.rows.pack import Documents, pack
from pipeline.stages.tokenize.stage import pack_split, tokenize
from pipeline.stages.tokenize.vocabulary import Vocabulary
from pipeline.stages.verify.packed_rows import count_boundary_mismatches, count_documents_not_rebuilt
from pipeline.stages.verify.tokens import count_special_ids
from pipeline.stages.verify.training_rows import count_structures_that_differ, count_training_rows_that_differ

TEN_MILLION = 10_000_000
SPELLINGS = "".join(f"<|{name}|>" for name in ("pad", "bos", "eos", "fim_prefix", "fim_middle", "fim_suffix", "repo"))


@pytest.mark.parametrize("row_length", [16, 128])
@pytest.mark.parametrize("shape", ["a row shorter than every chunk", "one token", "every special spelled"])
def test_odd_documents_are_packed_whole(
    shape: str, row_length: int, enriched: pa.Table, vocabulary: Vocabulary, make_document: Callable[..., Any]
) -> None:
    documents: dict[str, list[EnrichedDocument]] = {
        "one token": [make_document(1, ["x"]), make_document(2, ["\n"])],
        "every special spelled": [
            make_document(1, [SPELLINGS * 9, f"// {SPELLINGS}\n"]),
            make_document(2, [SPELLINGS]),
        ],
    }
    texts = table_of_records(EnrichedDocument, documents[shape]) if shape in documents else enriched
    tokens = tokenize(texts, vocabulary)
    if shape == "one token":
        assert ListColumn.from_arrow(tokens["input_ids"]).lengths.tolist() == [1, 1]
    params = TokenizeParams(vocabulary="tiny-1024", row_length=row_length, with_structure=True)
    tables = pack_split(tokens, texts, Split.TRAIN, (params, vocabulary))
    packed, hot = tables["packed_train.parquet"], tables["rows_train.arrow"]

    no_text = _, bos, eos = tuple(vocabulary.specials[f"<|{name}|>"] for name in ("pad", "bos", "eos"))
    assert count_special_ids(tokens, vocabulary.specials.values()) == 0
    assert count_documents_not_rebuilt(tokens, {"train": packed}, bos, eos) == 0
    assert count_boundary_mismatches(packed, row_length, vocabulary.specials) == 0
    assert count_training_rows_that_differ(packed, hot) == 0
    assert count_structures_that_differ(tokens, packed, hot, no_text, True) == 0


@pytest.mark.parametrize("every", [0, 70, 5000], ids=["no chunk", "chunks", "chunks longer than a row"])
def test_a_document_of_ten_million_tokens_is_cut_and_not_cropped(every: int) -> None:
    lengths = np.array([TEN_MILLION, 1])
    starts = [np.arange(0, TEN_MILLION, every) if every else [], []]
    chunks = ListColumn.of(starts, np.dtype(np.uint32))
    none = ListColumn.of([[], []], np.dtype(np.uint32))
    rows = pack(Documents(["a", "b"], lengths, chunks, none, np.arange(2)), TokenizeParams(row_length=2048))
    pieces = sorted((piece.document, piece.start, piece.end) for row in rows for piece in row)
    whole = [piece for piece in pieces if piece[0] == 0]
    assert whole[0][1] == 0
    assert whole[-1][2] == TEN_MILLION
    assert all(before[2] == after[1] for before, after in pairwise(whole))
    assert pieces[-1] == (1, 0, 1)
    assert max(sum(piece.num_slots + NUM_SENTINELS for piece in row) for row in rows) <= 2048
