"""The packing rule, judged from stored tables: what `pack` makes with any Params follows it, and other cuts or rows do not."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from tokenizers import Tokenizer

from pipeline.core.records import Split
from pipeline.core.table_names import ENRICHED, PACKED, TOKENS
from pipeline.stages.tokenize.params import Packing, TokenizeParams
from pipeline.stages.tokenize.rows import pack
from pipeline.stages.tokenize.stage import pack_split
from pipeline.stages.tokenize.vocabulary import load_vocabulary
from pipeline.stages.verify.packing_rule import count_pieces_cut_otherwise, count_rows_not_filled
from pipeline.store.store import Store

PARAMS = TokenizeParams(vocabulary="tiny-1024")
Counts = Callable[..., tuple[int, int]]


@pytest.fixture(scope="module")
def counts(tiny_store: Store) -> Counts:
    """Return a function that packs a source of the made corpus and counts what does not follow the rule."""
    vocabulary = load_vocabulary(PARAMS.vocabulary)
    tokenizer = Tokenizer.from_str(vocabulary.tokenizer_json.decode())
    verify_id = tiny_store.ref("tiny", "tokenize") or ""
    parts = [tiny_store.read(name) for name in tiny_store.read(verify_id).manifest.inputs.values()]
    rows = next(
        part for part in parts if part.has(TOKENS) and set(part.table(TOKENS)["split"].to_pylist()) == {"train"}
    )
    tokens = rows.table(TOKENS)
    enriched = tiny_store.read(rows.manifest.inputs["enriched"]).table(ENRICHED).combine_chunks()

    def count(asked: TokenizeParams = PARAMS, **given: Any) -> tuple[int, int]:
        packed = pack_split(tokens, enriched, Split.TRAIN, (asked, vocabulary))[PACKED[Split.TRAIN]]
        rule = asked.model_copy(update=given).model_dump(mode="json")
        return count_pieces_cut_otherwise(tokens, packed, tokenizer, rule), count_rows_not_filled(tokens, packed, rule)

    return count


@pytest.mark.parametrize("row_length", [32, 100, 512, 4096])
@pytest.mark.parametrize("fraction", [0.0, 1 / 64, 0.3, 1.0])
def test_what_is_packed_follows_the_rule(counts: Counts, row_length: int, fraction: float) -> None:
    for window_pieces in (1, 7, 2048):
        given = {"row_length": row_length, "max_cut_waste_fraction": fraction, "window_pieces": window_pieces}
        assert counts(PARAMS.model_copy(update=given)) == (0, 0)


def test_a_row_a_piece_follows_its_own_rule_alone(counts: Counts) -> None:
    single = PARAMS.model_copy(update={"packing": Packing.SINGLE_DOC})

    assert counts(single) == (0, 0)
    assert counts(single, packing=Packing.BEST_FIT)[1] > 5
    assert counts(PARAMS, packing=Packing.SINGLE_DOC)[1] > 5


def test_rows_of_a_smaller_window_are_not_filled(counts: Counts) -> None:
    assert counts(PARAMS.model_copy(update={"window_pieces": 2}), window_pieces=2048)[1] > 2


@pytest.mark.parametrize("num_tokens", [100, 505])
def test_pieces_that_end_elsewhere_are_counted(
    counts: Counts, monkeypatch: pytest.MonkeyPatch, num_tokens: int
) -> None:
    def shortened(total: int, *given: Any) -> list[tuple[int, int]]:
        return [(start, min(start + num_tokens, total)) for start in range(0, total, num_tokens)]

    monkeypatch.setattr(pack, "cut", shortened)
    assert counts()[0] > 3


def test_documents_that_are_not_in_the_rows_have_no_pieces() -> None:
    tokens = pa.table({"document_id": ["a"], "input_ids": [[5]], "chunk_starts": [[0]], "provenance": ["x"]})
    tokens = tokens.append_column("license", [["MIT"]]).append_column("license_class", [["allowed"]])
    columns = ("source_doc_ids", "piece_indices", "source_doc_token_lengths", "filepath_stable_id")
    packed = pa.table({name: [] for name in columns})
    rule = PARAMS.model_dump(mode="json")

    assert (
        count_pieces_cut_otherwise(
            tokens, packed, Tokenizer.from_str(load_vocabulary("tiny-1024").tokenizer_json.decode()), rule
        )
        == 0
    )
    assert count_rows_not_filled(tokens, packed, rule) == 0
