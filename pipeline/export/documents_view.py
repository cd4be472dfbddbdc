"""Documents of the view: each with its ids, its text, and the evidence of where it is from and why it may be used."""

from typing import TYPE_CHECKING

from pipeline.core.records import Document, EnrichedDocument, TokenizedDocument
from pipeline.core.schema import arrow_schema
from pipeline.core.table_names import DOCUMENTS, ENRICHED, TOKENS
from pipeline.store.snapshot import Snapshot, SnapshotSource

if TYPE_CHECKING:
    import pyarrow as pa

OF_DOCUMENT = (
    *("revision", "blob_sha256", "text", "encoding", "edits", "num_redactions", "commit_hash"),
    *("license_branch", "license_evidence", "license_detail"),
)
"""Columns of `Document`: the revision and the digest of the file as received, and what was found of its license, and where."""
OF_ENRICHED = ("language", "provenance_detail", "build_context")
"""Columns of `EnrichedDocument`."""


def documents_schema() -> "pa.Schema":
    """Return the columns of the documents of the view: those of `TokenizedDocument`, then the others."""
    schema = arrow_schema(TokenizedDocument)
    for record, names in ((Document, OF_DOCUMENT), (EnrichedDocument, OF_ENRICHED)):
        for name in names:
            schema = schema.append(arrow_schema(record).field(name))
    return schema.remove_metadata()


def documents_of(snapshot: Snapshot, source: SnapshotSource) -> "pa.Table":
    """Read the documents of a source, in the order of its rows. Raises MissingError where evidence is not in the store."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = snapshot.store.read(source.rows)
    found = rows.table(TOKENS)
    enriched = [snapshot.store.read(shard.manifest.inputs["enriched"]) for shard in rows.shards]
    rules = snapshot.store.read(snapshot.stored.manifest.inputs[f"rules/{source.name}"])
    for stored, table, names in (([rules], DOCUMENTS, OF_DOCUMENT), (enriched, ENRICHED, OF_ENRICHED)):
        other = pa.concat_tables(each.table(table, ["document_id", *names]) for each in stored)
        places = pc.index_in(found["document_id"].combine_chunks(), value_set=other["document_id"].combine_chunks())
        taken = other.take(places)
        for name in names:
            found = found.append_column(name, taken[name])
    schema = documents_schema()
    absent = {
        field.name: pa.nulls(found.num_rows, field.type) for field in schema if field.name not in found.column_names
    }
    return pa.table({name: absent[name] if name in absent else found[name] for name in schema.names}, schema=schema)
