"""Rows of a stage that contradict themselves, what they were made of, or the request, by all oracles that judge rows."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

from pipeline.build.oracles.audited_changes import mischanged_files, miscompared_changes, redated_documents
from pipeline.build.oracles.audited_decisions import uncompared_items, undecided_files
from pipeline.build.oracles.audited_details import misdetailed_documents, of_details
from pipeline.build.oracles.audited_files import (
    DOCUMENT_NAME,
    encoded_path,
    is_code,
    misbuilt_documents,
    miscalled_drops,
    misjudged_copies,
    misjudged_drops,
    mismeasured_drops,
    misnamed_documents,
    misread_files,
    misread_tree,
    misrevised_documents,
    misstated_drops,
    misstated_evidence,
    unlike_copies,
)
from pipeline.build.oracles.audited_history import misrecorded_history
from pipeline.build.oracles.audited_licenses import (
    misallowed_rows,
    misdropped_licenses,
    mislicensed_documents,
    mispinned_documents,
    misstated_licenses,
)
from pipeline.build.oracles.audited_parts import (
    Listing,
    Name,
    StoredParts,
    evidence_beside,
    listed_sources,
    source_files,
    source_of_name,
)
from pipeline.build.oracles.audited_structure import OF_STRUCTURE, misstructured_documents
from pipeline.build.oracles.copies.copied_columns import miscopied_documents
from pipeline.build.oracles.copies.similar_copies import dissimilar_copies, kept_copies_of_copyleft
from pipeline.build.oracles.drops.late_drops import unfounded_drops
from pipeline.contracts.part import LISTING_SUFFIX, PartJob, Tables
from pipeline.core.records import DroppedRecord, DuplicateRecord, TreeFile
from pipeline.core.table_names import DOCUMENTS, ENRICHED, EVIDENCE, FILES, KEPT, LISTED
from pipeline.formats.snapshot_json import SNAPSHOT_ROWS
from pipeline.stages.stages import STAGES, kinds_with, tables_of

if TYPE_CHECKING:
    import pyarrow as pa


def flaws_of_rows(job: PartJob, before: StoredParts, after: StoredParts) -> Iterator[Name]:
    """Yield the names of rows that contradict their own columns, and of drops whose reason does not hold."""
    stage, request = job.identity["stage"], job.identity
    listing = (
        Listing.of(after) if LISTED in {table.name for kind in STAGES[stage].parts for table in kind.tables} else None
    )
    for name, stored in sorted(before.items()):
        if stored.kind in kinds_with(EVIDENCE):
            beside = [each for other, each in before.items() if source_of_name(other) == source_of_name(name)]
            shards = [each for each in beside if each.kind in kinds_with(FILES)]
            yield from misstated_evidence(source_of_name(name), stored, shards, request["suffixes"])
    for name, stored in sorted(after.items()):
        if name.startswith(SNAPSHOT_ROWS):
            yield from misallowed_rows(source_of_name(name), stored, request["licenses"])
        if stored.kind in kinds_with(DOCUMENTS):
            yield from _flaws_of_documents(job, before, name, stored)
        for table in tables_of(stored.kind) if stored.kind.startswith(f"{stage}/") else ():
            if table.name == FILES:
                yield from misread_files(stored.table(FILES), request["suffixes"])
                yield from mischanged_files(name, stored, request)
                if listed := after.get(f"{name}{LISTING_SUFFIX}"):
                    yield from misrecorded_history(name, stored, listed, request)
            elif table.lists_kept and "text_sha256" in {field.name for field in fields(table.record)}:
                yield from misnamed_documents(stored.table(table.name, DOCUMENT_NAME))
                yield from redated_documents(stored, before.get(name))
                yield from miscopied_documents(stored, table, _made_of(before, name))
                if table.name == ENRICHED:
                    num_shards = sum(source_of_name(each) == source_of_name(name) for each in after)
                    yield from job.count(_misstructured, stored.table(ENRICHED, OF_STRUCTURE), request, num_shards)
                    source = source_of_name(name)
                    yield from misbuilt_documents(source, stored, request["pins"].get(source, {}).get("build"))
            elif table.record is TreeFile and request["pins"].get(name, {}).get("build") is not None and listing:
                yield from misread_tree(name, stored, listing.contents)
            elif table.record is DroppedRecord:
                yield from _flaws_of_drops(job, before, name, stored.table(table.name), listing)
            elif table.record is DuplicateRecord:
                yield from _flaws_of_copies(job, before, after, stored, table.name)


def _flaws_of_documents(job: PartJob, before: StoredParts, name: str, stored: Tables) -> Iterator[Name]:
    """Yield the documents whose license, details, decisions or revision do not hold, and drops beside them."""
    request = job.identity
    pin = request["pins"].get(source_of_name(name), {})
    yield from mislicensed_documents(stored)
    yield from mispinned_documents(stored, pin)
    yield from job.count(misdetailed_documents, of_details(stored), request["limits"])
    for files in source_files(before, name):  # what makes documents of them has decisions and items
        yield from undecided_files(source_of_name(name), stored, request.get("decisions", ()))
        yield from uncompared_items(source_of_name(name), stored, request["evaluation_sha256"])
        yield from misrevised_documents(files, stored)
        evidence = evidence_beside(before, name)
        yield from misdropped_licenses(stored, files, evidence)
        yield from misstated_licenses(stored, files, evidence, pin)
        read_as_c = partial(is_code, suffixes=request["commented_like_c"])
        yield from unfounded_drops(stored, files, job.places, request["contamination"], read_as_c)


def _flaws_of_drops(
    job: PartJob, before: StoredParts, name: str, dropped: "pa.Table", listing: Listing | None
) -> Iterator[Name]:
    """Yield the drops whose reason does not hold, or that the listing of the source calls otherwise."""
    request, rows = job.identity, dropped.to_pylist()
    for made_of in _made_of(before, name):
        if made_of is None or made_of.kind in kinds_with(FILES):  # reasons of a stage after these are its own
            yield from misjudged_drops(rows, made_of, request)
    for files in source_files(before, name):
        yield from misstated_drops(rows, files)
    if listing is not None:
        stated = [{each: row[each] for each in ("source", "path", "reason")} for row in rows]
        encoded = [row | {"path": encoded_path(row["path"])} for row in stated]  # as listings write them
        yield from miscalled_drops(encoded, listing.irregular, listed_sources(request))
        yield from mismeasured_drops(encoded, listing.sizes, request["limits"]["max_file_bytes"])


def _flaws_of_copies(
    job: PartJob, before: StoredParts, after: StoredParts, stored: Tables, table: str
) -> Iterator[Name]:
    """Yield the copies that are none by their texts or keepers, and what is kept although it is one."""
    documents, limits = _documents_by_id(after), job.identity["copies"]
    kept = {row["document_id"]: row["source"] for row in stored.table(KEPT).to_pylist()}
    copies = stored.table(table).to_pylist()
    yield from (*misjudged_copies(copies, documents, kept), *unlike_copies(copies, documents, limits))
    yield from miscompared_changes(copies, after.values(), documents)
    yield from dissimilar_copies(copies, before.values(), after.values(), job.identity["commented_like_c"])
    yield from kept_copies_of_copyleft(kept, after.values(), before.values(), limits["min_jaccard_inside_source"])
    yield from ((at, name) for name, at in kept.items() if documents.get(name, {}).get("source", at) != at)


def _made_of(before: StoredParts, name: str) -> list[Tables | None]:
    """Return the parts that a part was made of: its own, or the shards that it joins; None for one of the first stage."""
    shards = [part for each, part in before.items() if source_of_name(each) == name]
    return [before[name]] if name in before else [*shards] or [None]


def _misstructured(enriched: Any, request: Mapping[str, Any], num_shards: int) -> list[Name]:
    like_c, limit, languages = (request[name] for name in ("commented_like_c", "max_error_fraction", "languages"))
    others = request.get("not_preprocessed", ())
    return list(misstructured_documents(enriched, like_c, limit, languages, others, num_shards))


def _documents_by_id(parts: StoredParts) -> dict[str, dict[str, Any]]:
    """Return the names, digests and sizes of the texts of all documents, and their splits, by their ids."""
    found = (stored for stored in parts.values() if stored.kind in kinds_with(DOCUMENTS))
    columns = [*DOCUMENT_NAME, "num_bytes", "split"]
    return {row["document_id"]: row for stored in found for row in stored.table(DOCUMENTS, columns).to_pylist()}
