"""Parsed documents: syntax, chunks, and what the compiler index holds of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pipeline.core.records import PROVENANCE_CODES, ChunkKind, EnrichedDocument, Provenance
from pipeline.enrich.chunking.chunks import Chunk, chunks_of
from pipeline.enrich.chunking.sizes import sized_chunks
from pipeline.enrich.compiler.compiler_index import View
from pipeline.enrich.params import SyntaxParams
from pipeline.enrich.syntax.grammar import languages_to_parse
from pipeline.enrich.syntax.parse import Syntax, leaves_of_syntax, read_syntax

NO_DATABASE = "no_database"
"""Detail of a document without a compile database: nothing failed, there was nothing to run."""

_KIND_CODES = {kind: code for code, kind in enumerate(ChunkKind)}
_BLANKS = b" \t\r\n"

DocumentRow = Mapping[str, str]


@dataclass(frozen=True)
class ParsedDocument:
    """A document with its syntax and chunks. `view` is what the compiler index holds of it; None without a build."""

    row: DocumentRow
    syntax: Syntax
    chunks: Sequence[Chunk]
    provenance: Provenance
    provenance_detail: str
    view: View | None = None

    @property
    def num_bytes_changed(self) -> int:
        """Bytes by which the chunks, put together, differ from the text."""
        content = self.syntax.content
        joined = b"".join(content[chunk.start : chunk.end] for chunk in self.chunks)
        text = self.row["text"].encode()
        if joined == text:
            return 0
        return sum(a != b for a, b in zip(joined, text, strict=False)) + abs(len(joined) - len(text))


def read_document(document: DocumentRow, params: SyntaxParams, view: View | None = None) -> ParsedDocument:
    """Parse one document and cut it into chunks. A document that cannot be parsed is degraded, never dropped."""
    content = document["text"].encode()
    syntax = _best_syntax(document["path"], content, params)
    provenance, detail = _provenance(syntax, params, view)
    chunks = sized_chunks(syntax, chunks_of(syntax), params.max_chunk_bytes)
    return ParsedDocument(document, syntax, chunks, provenance, detail, view)


def record_of(parsed: ParsedDocument, order_in_source: int) -> EnrichedDocument:
    """Return the row of a parsed document."""
    row, chunks, view = parsed.row, parsed.chunks, parsed.view
    return EnrichedDocument(
        document_id=row["document_id"],
        source=row["source"],
        path=row["path"],
        split=row["split"],
        text=row["text"],
        text_sha256=row["text_sha256"],
        language=parsed.syntax.language.name,
        provenance=parsed.provenance.value,
        provenance_detail=parsed.provenance_detail,
        chunk_starts=tuple(chunk.start for chunk in chunks),
        chunk_ends=tuple(chunk.end for chunk in chunks),
        chunk_kinds=tuple(_KIND_CODES[chunk.kind] for chunk in chunks),
        chunk_levels=tuple(chunk.level for chunk in chunks),
        includes=parsed.syntax.includes,
        error_fraction=parsed.syntax.error_fraction,
        order_in_source=order_in_source,
        build_context=None if view is None else view.context,
        filepath_stable_id=row["filepath_stable_id"],
        file_local_commit_index=cast(int | None, row["file_local_commit_index"]),
        **_mention_columns(parsed),
        **_node_columns(parsed),
        **provenance_columns(parsed),
    )


def _best_syntax(path: str, content: bytes, params: SyntaxParams) -> Syntax:
    """Parse a text in the language with the fewest errors. Another one is tried only where the one before leaves some."""
    first, *others = languages_to_parse(path, content)
    best = read_syntax(content, first, params)
    for language in others:
        if best.num_error_bytes:
            best = min(best, read_syntax(content, language, params), key=lambda syntax: syntax.num_error_bytes)
    return best


def _provenance(syntax: Syntax, params: SyntaxParams, view: View | None) -> tuple[Provenance, str]:
    if syntax.limit:
        return Provenance.DEGRADED, syntax.limit
    if syntax.error_fraction > params.max_error_fraction:
        return Provenance.DEGRADED, "max_error_fraction"
    if view is None:
        return Provenance.SYNTAX_ONLY, NO_DATABASE
    if view.is_seen:
        return Provenance.BUILD_AWARE, view.detail
    return Provenance.DEGRADED if view.detail.startswith("tool_failed") else Provenance.SYNTAX_ONLY, view.detail


def _node_columns(parsed: ParsedDocument) -> dict[str, Any]:
    leaves = leaves_of_syntax(parsed.syntax)
    if leaves is None:
        return dict.fromkeys(("node_starts", "node_depths", "node_siblings", "node_types"))
    return {
        "node_starts": leaves.starts,
        "node_depths": leaves.depths,
        "node_siblings": leaves.siblings,
        "node_types": leaves.types,
    }


def _mention_columns(parsed: ParsedDocument) -> dict[str, Any]:
    """Return the columns of the compiler index. An extent takes the blanks before its name, as leaves do."""
    names = ("symbol_ends", "symbols", "calls", "type_references", "definitions_and_uses")
    view = parsed.view
    if view is None or not view.is_seen:
        return dict.fromkeys(("symbol_starts", *names))
    content, starts, end = parsed.syntax.content, [], 0
    for mention in view.mentions:
        starts.append(end + len(content[end : mention[0]].rstrip(_BLANKS)))
        end = mention[1]
    columns = zip(*(mention[1:] for mention in view.mentions), strict=True) if view.mentions else ((),) * len(names)
    return {"symbol_starts": tuple(starts), **dict(zip(names, map(tuple, columns), strict=True))}


def provenance_columns(parsed: ParsedDocument) -> dict[str, Any]:
    """Return the provenance of each byte: the document's, but degraded where it did not parse, syntax_only where not compiled."""
    num_bytes, code = len(parsed.syntax.content), PROVENANCE_CODES[parsed.provenance]
    inactive = parsed.view.inactive if parsed.view is not None and parsed.provenance is Provenance.BUILD_AWARE else ()
    if not inactive and not parsed.syntax.errors:
        return {"provenance_starts": (0,) if num_bytes else (), "provenance_codes": (code,) if num_bytes else ()}
    errors = parsed.syntax.errors
    edges = sorted({0, num_bytes, *(edge for span in (*errors, *inactive) for edge in span)})
    place = {edge: index for index, edge in enumerate(edges)}
    codes = [code] * (len(edges) - 1)
    for spans, provenance in ((inactive, Provenance.SYNTAX_ONLY), (errors, Provenance.DEGRADED)):
        for start, end in spans:
            codes[place[start] : place[end]] = [PROVENANCE_CODES[provenance]] * (place[end] - place[start])
    starts = [index for index, found in enumerate(codes) if index == 0 or found != codes[index - 1]]
    return {
        "provenance_starts": [edges[index] for index in starts],
        "provenance_codes": [codes[index] for index in starts],
    }
