"""ReceivedDocument: a document of a build, the file that it was made of as it was received, and the map between their bytes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from pipeline.build.stage_objects import evidence_of, stage_params
from pipeline.contracts.part import LISTING_SUFFIX
from pipeline.core.errors import DamagedError, StoreError
from pipeline.core.table_names import DOCUMENTS, DROPPED, FILES, LISTED
from pipeline.formats.tables import find_rows
from pipeline.lineage.origins.received_bytes import ReceivedBytes, received_bytes
from pipeline.lineage.queries import with_revision
from pipeline.lineage.stored_build import StoredBuild
from pipeline.pins.local_tree import encoded_name, printable_path
from pipeline.stages.collect.kinds.source_kinds import origin_of
from pipeline.stages.normalize.scrub.finding import Replacement
from pipeline.stages.stages import listing_stage, stage_with
from pipeline.store.objects import StoredObject

_OTHER_RULES = "the rules that are installed make another text of it: ask with the version that built it"
_ERASED = "its bytes were erased"
_NO_MEMBER = "the version that built it did not keep the name of its member: build again"


@dataclass(frozen=True)
class ReceivedDocument:
    """A document, and where it comes from. `missing` says why `member` or `bytes_map` is None, and is empty where neither is."""

    document: Mapping[str, Any]
    """Its row of the table of documents."""
    archive: Mapping[str, Any]
    """Identity of what was collected: `kind`, `origin` and `revision`, the digest of an archive or a tree, or the commit."""
    member: str | None
    """Name of what holds the file in what was collected: a member of an archive as it has it, a line of JSON, or a path."""
    num_bytes: int | None
    """Bytes of the file."""
    bytes_map: ReceivedBytes | None
    missing: str = ""


def received_document(build: StoredBuild, source: str, document_id: str) -> ReceivedDocument:
    """Read a document of a build and map it to the bytes that were collected, if the store has them."""
    rules = build.part(stage_with(DOCUMENTS).name, source)
    document = only_row(rules, DOCUMENTS, "document_id", document_id)
    try:
        collected = build.part(listing_stage().name, source)
        file = only_row(collected, FILES, "path", document["path"], ("path", "content", "num_bytes", "git_blob_id"))
        member = _member(build, collected, source, file)
    except StoreError as error:
        archive = {"kind": None, "origin": None, "revision": document["revision"]}
        missing = f"the collected bytes are not in the store any more ({error})"
        return ReceivedDocument(document, archive, None, None, None, missing)
    pin = collected.identity
    archive = {"kind": pin["kind"], "origin": origin_of(pin).text, "revision": pin["revision"]}
    is_erased = bool(file["num_bytes"]) and not file["content"]
    bytes_map = None if is_erased else _map(build, rules, document, file["content"])
    missing = _ERASED if is_erased else _OTHER_RULES if bytes_map is None else _NO_MEMBER if member is None else ""
    return ReceivedDocument(document, archive, member, file["num_bytes"], bytes_map, missing)


def only_row(
    part: StoredObject, table: str, column: str, value: str, columns: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the row with a value in a column, or some columns of it. Raises DamagedError where that is not one."""
    found = find_rows(part.paths(table), column, value, columns)
    if len(found) != 1:
        subject = f"table {table} of object {part.object_id[:12]}"
        raise DamagedError(subject, f"{len(found)} of its rows have {column} {value}", "one", "Build again.")
    return with_revision(part, found[0])


def _member(build: StoredBuild, collected: StoredObject, source: str, file: Mapping[str, Any]) -> str | None:
    """Return what the listing of a source names as that which holds a file; its path where that is listed under no other name.

    None for a listing of a version without such names.
    """
    listing_id = evidence_of(build.stage(listing_stage().name)).get(f"{source}{LISTING_SUFFIX}")
    if listing_id is None:
        return str(file["path"])
    names = ("member", "other_path", "git_blob_id")
    listed = find_rows(build.store.read(listing_id).paths(LISTED), "path", encoded_name(file["path"]), names)
    if listed and "member" not in listed[0]:
        return None
    same = [row for row in listed if row["git_blob_id"] in (None, file["git_blob_id"])]
    if (
        len(same) > 1
    ):  # lines of JSON with one path: the first became the file that was no drop, whose detail is its number
        details = collected.table(DROPPED, ["detail"])["detail"].to_pylist()
        dropped = {detail.partition(":")[0] for detail in details}
        same = [row for row in same if row["other_path"] not in dropped]
    if not same or same[0]["member"] is None:
        return str(file["path"])
    return printable_path(unquote_to_bytes(same[0]["member"]).decode("utf-8", "surrogateescape"))


def _map(build: StoredBuild, rules: StoredObject, document: Mapping[str, Any], content: bytes) -> ReceivedBytes | None:
    """Return the map of a document to the file of these bytes; None where the rules that are installed make another text."""
    encoding, edits, text = document["encoding"], document["edits"], document["text"]
    if not document["num_redactions"]:
        return received_bytes(content, encoding, edits, text)
    from pipeline.stages.normalize.decided_files import SourceDecisions  # most texts have no placeholder
    from pipeline.stages.normalize.params import NormalizeParams
    from pipeline.stages.normalize.scrub.scrub import source_scrubber

    params = stage_params(build.stage(stage_with(DOCUMENTS).name))
    assert isinstance(params, NormalizeParams)
    decisions = SourceDecisions.of_identity(rules.identity.get("decisions", ()))
    waived = decisions.about(document["path"], document["blob_sha256"]).waived

    def scrub(found: str, record: Callable[[Sequence[Replacement]], None]) -> str:
        return source_scrubber(params.scrub).scrub(document["path"], found, waived, record).text

    return received_bytes(content, encoding, edits, text, scrub)
