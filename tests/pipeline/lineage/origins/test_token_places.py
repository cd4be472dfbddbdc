"""Tokens of rows are those of their documents, in order; a slot that is of no file is refused in words."""

import pytest

from pipeline.core.errors import MissingError
from pipeline.core.records import Split
from pipeline.core.table_names import PACKED, TOKENS
from pipeline.lineage.origins.token_places import RowsOfSource, TokenPlace, row_name
from pipeline.lineage.stored_build import StoredBuild, stored_build
from pipeline.store.store import Store


@pytest.fixture(scope="module")
def build(tiny_store: Store) -> StoredBuild:
    return stored_build(tiny_store, "tiny")


def _token(build: StoredBuild, name: str, slot: int) -> TokenPlace:
    row = row_name(name)
    return RowsOfSource(build, row.source, row.split).token(row, slot)


def test_the_tokens_of_a_document_are_those_of_its_pieces_in_order(build: StoredBuild) -> None:
    tokens = build.part("tokenize", "lantern").table(TOKENS).to_pylist()
    document = max(tokens, key=lambda row: len(row["input_ids"]))
    rows = RowsOfSource(build, "lantern", Split.TRAIN)
    pieces = rows.pieces(document["document_id"])
    found = [
        rows.token(piece.row, piece.first_slot + 1 + place) for piece in pieces for place in range(piece.num_tokens)
    ]

    assert len(pieces) > 3
    assert [token.token_id for token in found] == document["input_ids"]
    assert [token.start for token in found[1:]] == [token.end for token in found[:-1]]
    assert found[-1].end == document["num_bytes"]


@pytest.mark.parametrize(
    ("row", "slot", "words"),
    [
        ("lantern/train/3", 0, r"it is <\|bos\|>, a special token.*expected 1 to"),
        ("lantern/train/3", 4096, "a row has 128 slots; expected 0 to 127"),
        ("lantern/train/100000", 1, "source lantern has [0-9]+ rows in split train"),
        ("lantern/trian/3", 1, "not the name of a row; expected SOURCE/SPLIT/PACK_ID"),
        ("lantern/train/0000000000003", 1, "not the name of a row"),
        ("lantern/held_out/0", 1, "source lantern has 0 rows in split held_out; expected a row of another split"),
        ("lanter/train/3", 1, "no such source.*Did you mean lantern"),
    ],
)
def test_a_slot_that_is_of_no_file_is_refused_in_words(build: StoredBuild, row: str, slot: int, words: str) -> None:
    with pytest.raises(MissingError, match=words):
        _token(build, row, slot)


def test_padding_and_the_end_of_a_document_are_refused_in_words(build: StoredBuild) -> None:
    rows = build.part("tokenize", "lantern").table(PACKED[Split.TRAIN]).to_pylist()
    short = next(row for row in rows if row["slack_tokens"])
    ends = next(row for row in rows if 2 in row["input_ids"])

    with pytest.raises(MissingError, match=r"it is padding.*expected 1 to"):
        _token(build, f"lantern/train/{short['pack_id']}", short["valid_token_count"])
    with pytest.raises(MissingError, match=r"it is <\|eos\|>"):
        _token(build, f"lantern/train/{ends['pack_id']}", ends["input_ids"].index(2))
