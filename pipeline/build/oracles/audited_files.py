"""Oracles of stored rows: whether a file is what its columns say, a document has its own name, and the reason of a drop holds.

They share no code with the stages. Reasons that would need the rule itself are not judged: `docs/architecture.md` lists them.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_from_bytes

from pipeline.build.oracles.audited_changes import may_be_no_link
from pipeline.build.oracles.drops.drop_rules import DROP_RULES, OF_COMMENTS, is_shifted
from pipeline.build.oracles.withheld_names import rows_as_collected
from pipeline.contracts.part import Tables
from pipeline.core.records import PROVENANCE_CODES, Provenance, Split
from pipeline.core.table_names import COMPILER_RECORD, DOCUMENTS, ENRICHED, EVIDENCE, FILES, TREE

if TYPE_CHECKING:
    import pyarrow as pa

DOCUMENT_NAME = ("source", "path", "text_sha256", "document_id")
"""The columns of a document from the first three of which the last is made."""
OF_REVISION = ("source", "path", "revision")
"""The columns in which a document is as its file."""
_LINE = re.compile(r"line [1-9][0-9]*(?=:|\Z)")
IRREGULAR = frozenset({"link", "special", "submodule"})
"""Reasons of drops of what is no regular file."""
OF_COMPILERS = (
    "build_context",
    "symbols",
    "calls",
    "type_references",
    "definitions_and_uses",
    "symbol_starts",
    "symbol_ends",
)
"""Columns of a document that are empty unless a compiler read it."""
_UNREAD = {
    Provenance.SYNTAX_ONLY: {"no_database"},
    Provenance.DEGRADED: {"max_error_fraction", "max_num_bytes", "max_operations_per_byte"},
    Provenance.CHANGE: {"commit"},
}
"""Provenance -> details of a document of a source that no compiler reads: the limit of the parser that was hit."""
COPIES = frozenset({"exact_duplicate", "near_duplicate", "contained", "container"})
"""Reasons of drops in favor of a document that is kept."""
_MAX_UNITS = 8
"""Bytes that one byte of a decoded text had at most: a line end of two characters in UTF-32."""
_ESCAPE = re.compile(rb"\\(?:\\|x([0-9a-f]{2}))")


def is_code(path: str, suffixes: Iterable[str]) -> bool:
    """Return whether a path has one of the suffixes, as written or in lower case."""
    name = path.rpartition("/")[2]
    at = name.rfind(".")
    suffix = name[at:] if 0 < at < len(name) - 1 else ""
    return suffix != "" and (suffix in suffixes or suffix.lower() in suffixes)


def misread_files(files: "pa.Table", suffixes: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield source and path of the files whose digests, size or mark as evidence are not those of their content and path."""
    for row in files.to_pylist():
        content = row["content"]
        git_id = hashlib.sha1(b"blob %d\0%s" % (len(content), content), usedforsecurity=False).hexdigest()
        sha256 = hashlib.sha256(content).hexdigest()
        found = (row["git_blob_id"], row["blob_sha256"], row["num_bytes"], row["is_evidence"])
        if found != (git_id, sha256, len(content), not is_code(row["path"], suffixes)):
            yield row["source"], row["path"]


def misread_tree(
    source: str, stored: Tables, contents: Mapping[tuple[str, str], Collection[str]]
) -> Iterator[tuple[str, str]]:
    """Yield source and path of the files for a build that have other bytes than the source lists under their name. Ids of a
    repository with longer ones are not listed.
    """
    table = stored.table(TREE)
    for path, content in zip(table["path"].to_pylist(), table["content"], strict=True):
        data, listed = content.as_py(), contents.get((source, encoded_path(path)))
        git_id = hashlib.sha1(b"blob %d\0%s" % (len(data), data), usedforsecurity=False).hexdigest()
        if listed is not None and git_id not in listed:
            yield source, path


def misstated_evidence(
    source: str, evidence: Tables, shards: Iterable[Tables], suffixes: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield source and path of the evidence beside the shards of a source that has other bytes than the file of its path, or is
    missing: all files that are no code, but sidecars of one file.
    """
    table = evidence.table(EVIDENCE)
    rows = zip(table["path"].to_pylist(), table["content"], strict=True)
    found = {path: hashlib.sha256(content.as_py()).hexdigest() for path, content in rows}
    for shard in shards:
        for row in shard.table(FILES, ["path", "blob_sha256"]).to_pylist():
            is_needed = not is_code(row["path"], suffixes) and not row["path"].endswith(".license")
            if found.pop(row["path"], "" if is_needed else row["blob_sha256"]) != row["blob_sha256"]:
                yield source, row["path"]
    yield from ((source, path) for path in sorted(found))


def misnamed_documents(documents: "pa.Table") -> Iterator[tuple[str, str]]:
    """Yield source and path of the documents whose id is not that of source, path and text."""
    for row in documents.to_pylist():
        *named, found = (row[column] for column in DOCUMENT_NAME)
        if _name_of(*named) != found:
            yield row["source"], row["path"]


def _name_of(source: str, path: str, digest: str) -> str:
    """Return the id of a document, or of a drop."""
    parts = (each.encode("utf-8", "surrogateescape") for each in (source, path, digest))
    return hashlib.sha256(b"".join(b"%d:%b" % (len(part), part) for part in parts)).hexdigest()


def misrevised_documents(files: Tables, cleaned: Tables) -> Iterator[tuple[str, str]]:
    """Yield source and path of the documents that are called as of another revision than the file of their path."""
    revisions = {row["path"]: row["revision"] for row in files.table(FILES, OF_REVISION).to_pylist()}
    for row in cleaned.table(DOCUMENTS, OF_REVISION).to_pylist():
        if revisions.get(row["path"], row["revision"]) != row["revision"]:
            yield row["source"], row["path"]


def misbuilt_documents(source: str, stored: Tables, block: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Yield source and path of the documents that were read otherwise than a pin's `build` block asks; None: by no compiler."""
    if block is None:
        yield from uncompiled_documents(source, stored.table(ENRICHED))
    columns = ["path", "provenance", "provenance_codes", "file_local_commit_index", *OF_COMPILERS]
    for row in stored.table(ENRICHED, columns).to_pylist():
        is_change = (row["provenance"] == Provenance.CHANGE) == (row["file_local_commit_index"] is not None)
        if not (is_change and _is_read_as_stated(row)):
            yield source, row["path"]
    if block is None:
        return
    if not stored.has(COMPILER_RECORD):
        yield source, "its build block"


def _is_read_as_stated(row: Mapping[str, Any]) -> bool:
    """Return whether a document has all that a compiler says of one, each column of one length, if it says that one read it.

    One that is degraded may have it too, as the parser has read it by itself. No name begins before the one before it has ended.
    """
    if row["provenance"] == Provenance.DEGRADED:
        return PROVENANCE_CODES[Provenance.BUILD_AWARE] not in (row["provenance_codes"] or ())
    context, *mentions = (row[name] for name in OF_COMPILERS)
    if row["provenance"] != Provenance.BUILD_AWARE:
        is_read = PROVENANCE_CODES[Provenance.BUILD_AWARE] in (row["provenance_codes"] or ())
        return not is_read and all(each is None for each in mentions)
    if None in (context, *mentions) or len(set(map(len, mentions))) != 1:
        return False
    edges = [edge for pair in zip(row["symbol_starts"], row["symbol_ends"], strict=True) for edge in pair]
    return edges == sorted(edges)


def uncompiled_documents(source: str, enriched: "pa.Table") -> Iterator[tuple[str, str]]:
    """Yield source and path of the documents that say of themselves what only a compiler can, or another reason why none did."""
    of_provenance = ("path", "provenance", "provenance_detail", "provenance_codes")
    for row in enriched.select([*of_provenance, *OF_COMPILERS]).to_pylist():
        is_read = row["provenance_detail"] not in _UNREAD.get(row["provenance"], ())
        is_read = is_read or PROVENANCE_CODES[Provenance.BUILD_AWARE] in (row["provenance_codes"] or ())
        if is_read or any(row[name] is not None for name in OF_COMPILERS):
            yield source, row["path"]


def misjudged_drops(
    dropped: Iterable[Mapping[str, Any]], files: Tables | None, request: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield source and path of the drops whose reason does not hold for what was dropped.

    `files` holds the files that the stage read; None for the stage that reads the source itself.
    """
    if files is None:
        yield from ((row["source"], row["path"]) for row in dropped if not _of_source(row, request))
        return
    dropped = list(dropped)
    # A copy has a keeper, and is in the table that names it.
    yield from ((row["source"], row["path"]) for row in dropped if row["reason"] in COPIES)
    reasons = {row["path"]: (row["source"], row["reason"]) for row in dropped if row["reason"] in DROP_RULES}
    table = files.table(FILES, ["path", "content"]) if reasons else None
    for path, content in [] if table is None else zip(table["path"], table["content"], strict=True):
        source, reason = reasons.get(path.as_py(), ("", ""))
        if reason and not _of_text(reason, path.as_py(), content.as_py(), request):
            yield source, path.as_py()


def miscalled_drops(
    dropped: Iterable[Mapping[str, Any]], irregular: Mapping[tuple[str, str], int], listed: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield source and path of the drops of listed sources as a link or the like, of which more are dropped than listed as such.

    `irregular` counts the listed names that are no regular files.
    """
    found = Counter((row["source"], row["path"]) for row in dropped if row["reason"] in IRREGULAR)
    yield from (name for name, number in sorted(found.items()) if name[0] in listed and number > irregular.get(name, 0))


def mismeasured_drops(
    dropped: Iterable[Mapping[str, Any]], sizes: Mapping[tuple[str, str], int], limit: int
) -> Iterator[tuple[str, str]]:
    """Yield source and path of the drops as too large whose listed content is not. What is not listed is not judged."""
    for row in dropped:
        name = (row["source"], row["path"])
        if row["reason"] == "too_large" and sizes.get(name, limit + 1) <= limit:
            yield name


def misstated_drops(dropped: Iterable[Mapping[str, Any]], files: Tables) -> Iterator[tuple[str, str]]:
    """Yield source and path of the drops of stored files that say another size or name, give no detail, or say that a text was made
    of what a filter dropped before, or that it had a license.

    The name is made of source, path, and the digest of the text, or of the file where none was made.
    """
    table = files.table(FILES, ["path", "num_bytes", "blob_sha256"])
    stated = {row["path"]: (row["num_bytes"], row["blob_sha256"]) for row in table.to_pylist()}
    dropped = list(dropped)
    for row, named in zip(dropped, rows_as_collected(dropped, stated), strict=True):
        num_bytes, digest = stated.get(named["path"], (row["num_bytes"], None))
        name = None if digest is None else _name_of(row["source"], row["path"], row["text_sha256"] or digest)
        is_late = (row["text_sha256"], row["license"]) != (None, None)
        is_told = bool(row["detail"]) and not (is_late and row["reason"] in DROP_RULES)
        if not is_told or row["num_bytes"] != num_bytes or row["record_id"] != (name or row["record_id"]):
            yield row["source"], row["path"]


def misjudged_copies(
    duplicates: Iterable[Mapping[str, Any]],
    documents: Mapping[str, Mapping[str, Any]],
    kept_ids: Collection[str],
) -> Iterator[tuple[str, str]]:
    """Yield source and path of the copies that are called otherwise than their documents, or in another cluster than that of their
    keeper, or whose keeper is not kept, is itself, is called otherwise, has another text than an exact copy, or is trained on
    where the copy is held out.

    `documents` have the columns of DOCUMENT_NAME, their sizes and splits, by document id. Copyleft copies have keepers that are
    never kept and are called as their documents where these are stored.
    """
    for row in duplicates:
        copy, keeper = (documents.get(row[name], {}) for name in ("document_id", "keeper_id"))
        is_copy = row["document_id"] != row["keeper_id"] and 0 < row["jaccard"] <= 1 and row["num_keepers"] > 0
        is_named = all(
            row[prefix + name] == document.get(name)
            for prefix, document in (("", copy), ("keeper_", keeper))
            for name in ("source", "path")
            if document or row["reason"] in COPIES
        )
        is_named = is_named and row["num_bytes"] == copy.get("num_bytes", row["num_bytes"])
        is_copy = is_copy and (copy.get("split"), keeper.get("split")) != (Split.HELD_OUT, Split.TRAIN)
        is_named = is_named and row["cluster_id"] == row["keeper_id"]
        if row["reason"] == "exact_duplicate":
            is_copy = is_copy and copy.get("text_sha256") == keeper.get("text_sha256")
        if not is_named or (row["reason"] in COPIES and not (is_copy and row["keeper_id"] in kept_ids)):
            yield row["source"], row["path"]


def unlike_copies(
    duplicates: Iterable[Mapping[str, Any]], documents: Mapping[str, Mapping[str, Any]], limits: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield source and path of the near copies whose similarity is below the limit of their kind. Nothing is measured again.

    An equal text may be a copy of what another is a copy of, and has the similarity of that. The copy of a contained document
    has a share of its own, so that of those with one keeper the largest counts. Of a container it is the share of the whole, which
    has no limit where one held-out part is enough.
    """
    rows = list(duplicates)
    shares: dict[tuple[str, str], float] = {}
    likeness = set()
    for row in rows:
        kind = (row["keeper_id"], row["reason"])
        shares[kind] = max(row["jaccard"], shares.get(kind, 0))
        if row["jaccard"] >= _least_likeness(row, documents, limits):
            likeness.add(_likeness(row, documents))
    for row in rows:
        is_near = row["reason"] not in ("near_duplicate", "copyleft_copy") or _likeness(row, documents) in likeness
        is_other = row["reason"] != "contained"
        if not is_near or not (is_other or shares[row["keeper_id"], row["reason"]] >= limits["min_containment"]):
            yield row["source"], row["path"]


def _likeness(row: Mapping[str, Any], documents: Mapping[str, Mapping[str, Any]]) -> tuple[Any, ...]:
    text = documents.get(row["document_id"], {}).get("text_sha256")
    return row["keeper_id"], row["reason"], row["jaccard"], text


def _least_likeness(
    row: Mapping[str, Any], documents: Mapping[str, Mapping[str, Any]], limits: Mapping[str, Any]
) -> float:
    """Return the limit of a near copy: siblings are of one source and one split, of a copyleft text of one source."""
    splits = {documents.get(row[name], {}).get("split") for name in ("document_id", "keeper_id")}
    are_siblings = row["source"] == row["keeper_source"] and (row["reason"] == "copyleft_copy" or len(splits) == 1)
    return float(limits["min_jaccard_inside_source" if are_siblings else "min_jaccard_between_sources"])


def _of_source(row: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    """Return whether a file of a source may be dropped for its reason, as far as that shows without its bytes."""
    pin = request["pins"].get(row["source"], {})
    match row["reason"]:
        case "other_language":
            return not is_code(row["path"], request["suffixes"])
        case "too_large":
            return bool(row["num_bytes"] > request["limits"]["max_file_bytes"])
        case "excluded":
            return bool(pin.get("include") or pin.get("exclude"))
        case "withdrawn":
            return any(
                text.startswith("sha256:") or text.split("/")[0] == row["source"] for text in request["withdrawn"]
            )
        case "bad_line":
            return pin.get("kind") == "jsonl" or pin.get("kind") not in request["listed"]
    return row["reason"] in IRREGULAR or may_be_no_link(row, pin) or pin.get("kind") not in request["listed"]


def _of_text(reason: str, path: str, content: bytes, request: Mapping[str, Any]) -> bool:
    """Return whether a rule about texts may have dropped a file. A text that is not ASCII is judged by its size alone."""
    limits = request["limits"]
    if not content.isascii() or is_shifted(content):
        return reason != "too_small" or len(content) < _MAX_UNITS * limits["min_num_bytes"]
    if reason in OF_COMMENTS and not is_code(path, request["commented_like_c"]):
        return True
    return DROP_RULES[reason](content.replace(b"\r\n", b"\n").replace(b"\r", b"\n"), path, limits)


JUDGED_REASONS = frozenset({*DROP_RULES, *IRREGULAR, "other_language", "too_large", "excluded", "withdrawn"})
"""The reasons of drops that are judged again."""


def line_of_drop(detail: str) -> str:
    """Return the number, as in `line 3`, that the detail of a drop of JSON lines begins with; nothing for another detail."""
    found = _LINE.match(detail)
    return found[0] if found else ""


def encoded_path(path: str) -> str:
    """Return a path as listings write it: percent-encoded bytes, the escapes of a printable path undone."""
    text = path.encode("utf-8", "surrogateescape")
    return quote_from_bytes(_ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()) if match[1] else b"\\", text))
