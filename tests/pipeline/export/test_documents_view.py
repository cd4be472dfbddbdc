"""The documents of the view are those of the snapshot, each with its text, its origin and the evidence of its license."""

import hashlib

from pipeline.core.table_names import TOKENS
from pipeline.export.documents_view import OF_DOCUMENT, OF_ENRICHED, documents_of, documents_schema
from pipeline.stages.tokenize.vocabulary import load_vocabulary
from pipeline.store.snapshot import Snapshot
from tests.support.paths import ROOT


def test_each_document_has_its_own_text_origin_and_evidence(snapshot: Snapshot) -> None:
    vocabulary = load_vocabulary("tiny-1024")
    for source in snapshot.sources:
        table = documents_of(snapshot, source)
        rows = snapshot.store.read(source.rows).table(TOKENS)
        assert table.select(rows.column_names).to_pylist() == rows.to_pylist()
        for row in table.to_pylist():
            assert vocabulary.decode_bytes(row["input_ids"]) == row["text"].encode()
            assert hashlib.sha256(row["text"].encode()).hexdigest() == row["text_sha256"]
            if source.name != "loom":  # a bundle: its files lie in no folder
                content = (ROOT / "pipeline/build/made_corpus" / row["source"] / row["path"]).read_bytes()
                assert hashlib.sha256(content).hexdigest() == row["blob_sha256"]
            assert row["revision"] == snapshot.content["pins"][row["source"]]["revision"]
            assert row["license_evidence"]
            assert row["license_detail"]
            assert row["provenance_detail"]


def test_its_columns_are_those_of_tokens_then_the_others(snapshot: Snapshot) -> None:
    schema = documents_schema()
    assert tuple(schema.names[-len(OF_DOCUMENT + OF_ENRICHED) :]) == OF_DOCUMENT + OF_ENRICHED
    assert documents_of(snapshot, snapshot.sources[0]).schema == schema
