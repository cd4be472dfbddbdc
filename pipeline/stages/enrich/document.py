"""Parsed documents: the syntax and the chunks of each, what the compiler index has on it, and its row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pipeline.core.change_text import hunk_starts
from pipeline.core.records import PROVENANCE_CODES, ChunkKind, EnrichedDocument, Provenance
from pipeline.stages.enrich.chunking.chunks import chunks_of
from pipeline.stages.enrich.chunking.sizes import sized_chunks
from pipeline.stages.enrich.chunking.spans import KIND_CODES, Chunk
from pipeline.stages.enrich.params import SyntaxParams
from pipeline.stages.enrich.syntax.grammar import languages_to_parse
from pipeline.stages.enrich.syntax.parse import Syntax, leaves_of_syntax, parse_text

if TYPE_CHECKING:
    from pipeline.stages.enrich.compiler.compiler_index import FileIndex

COMMIT = "commit"
"""Detail of a document of change: what a commit did is no text of a language, and is not parsed."""
NO_DATABASE = "no_database"
"""Detail of a document without a compile database: nothing failed, there was nothing to run."""

_BLANKS = b" \t\r\n"

DocumentRow = Mapping[str, Any]
"""Columns of a Document that an EnrichedDocument has too."""


@dataclass(frozen=True)
class ParsedDocument:
    """A document with its syntax and chunks. `index` is what the compiler index has on it; None without a build."""

    row: DocumentRow
    syntax: Syntax
    chunks: Sequence[Chunk]
    provenance: Provenance
    provenance_detail: str
    index: "FileIndex | None" = None


def parse_document(document: DocumentRow, params: SyntaxParams, index: "FileIndex | None" = None) -> ParsedDocument:
    """Parse one document and cut it into chunks. A document that cannot be parsed is degraded, never dropped."""
    if has_chronology(document):
        return _change(document)
    syntax = _best_syntax(document["path"], document["text"].encode(), params)
    chunks = sized_chunks(syntax, chunks_of(syntax), params.max_chunk_bytes)
    return ParsedDocument(document, syntax, chunks, *_provenance(syntax, params, index), index)


def has_chronology(document: DocumentRow) -> bool:
    """Return whether a document is what a commit did to a file."""
    return document["file_local_commit_index"] is not None


def _change(document: DocumentRow) -> ParsedDocument:
    """Return a document of change, cut where the lines before and after each hunk begin."""
    content = document["text"].encode()
    language = languages_to_parse(document["path"], content)[0]
    edges = [0, *hunk_starts(document["text"]), len(content)]
    chunks = [Chunk(start, end, ChunkKind.OTHER, 0) for start, end in pairwise(edges)]
    return ParsedDocument(document, Syntax(content, language, None, (), (), 0, 0), chunks, Provenance.CHANGE, COMMIT)


def record_of(parsed: ParsedDocument, order_in_source: int = 0) -> EnrichedDocument:
    """Return the row of a parsed document, in the first place unless another is given."""
    chunks, index = parsed.chunks, parsed.index
    return EnrichedDocument(
        **parsed.row,
        language=parsed.syntax.language.name,
        provenance=parsed.provenance.value,
        provenance_detail=parsed.provenance_detail,
        chunk_starts=tuple(chunk.start for chunk in chunks),
        chunk_ends=tuple(chunk.end for chunk in chunks),
        chunk_kinds=tuple(KIND_CODES[chunk.kind] for chunk in chunks),
        chunk_levels=tuple(chunk.level for chunk in chunks),
        includes=parsed.syntax.includes,
        error_fraction=parsed.syntax.error_fraction,
        order_in_source=order_in_source,
        build_context=None if index is None else index.context,
        **_mention_columns(parsed),
        **_node_columns(parsed),
        **_provenance_columns(parsed),
    )


def _best_syntax(path: str, content: bytes, params: SyntaxParams) -> Syntax:
    """Parse a text in the language that leaves the fewest errors. Another is tried only where the one before leaves some."""
    first, *others = languages_to_parse(path, content)
    best = parse_text(content, first, params)
    for language in others:
        if best.num_error_bytes:
            best = min(best, parse_text(content, language, params), key=lambda syntax: syntax.num_error_bytes)
    return best


def _provenance(syntax: Syntax, params: SyntaxParams, index: "FileIndex | None") -> tuple[Provenance, str]:
    if syntax.limit:
        return Provenance.DEGRADED, syntax.limit
    if syntax.error_fraction > params.max_error_fraction:
        return Provenance.DEGRADED, "max_error_fraction"
    if index is None:
        return Provenance.SYNTAX_ONLY, NO_DATABASE
    if index.is_indexed:
        return Provenance.BUILD_AWARE, index.detail
    return Provenance.DEGRADED if index.detail.startswith("tool_failed") else Provenance.SYNTAX_ONLY, index.detail


def _node_columns(parsed: ParsedDocument) -> dict[str, Any]:
    leaves = leaves_of_syntax(parsed.syntax)
    names = ("starts", "depths", "siblings", "types")
    return {f"node_{name}": leaves and getattr(leaves, name) for name in names}


def _mention_columns(parsed: ParsedDocument) -> dict[str, Any]:
    """Return the columns of the compiler index. An extent takes the blanks before its name, as leaves do."""
    names = ("symbol_starts", "symbol_ends", "symbols", "calls", "type_references", "definitions_and_uses")
    if parsed.index is None or not parsed.index.is_indexed:
        return dict.fromkeys(names)
    content, rows, end = parsed.syntax.content, [], 0
    for start, *rest in parsed.index.mentions:
        rows.append((end + len(content[end:start].rstrip(_BLANKS)), *rest))
        end = rest[0]
    return {name: tuple(row[column] for row in rows) for column, name in enumerate(names)}


def _provenance_columns(parsed: ParsedDocument) -> dict[str, Any]:
    """Return the provenance of each byte: the document's, but degraded where it did not parse, syntax_only where not compiled."""
    num_bytes, errors = len(parsed.syntax.content), parsed.syntax.errors
    inactive = parsed.index.inactive if parsed.index and parsed.provenance is Provenance.BUILD_AWARE else ()
    edges = sorted({0, num_bytes, *(edge for span in (*errors, *inactive) for edge in span)})
    place = {edge: index for index, edge in enumerate(edges)}
    codes = [PROVENANCE_CODES[parsed.provenance]] * (len(edges) - 1)
    for spans, provenance in ((inactive, Provenance.SYNTAX_ONLY), (errors, Provenance.DEGRADED)):
        for start, end in spans:
            codes[place[start] : place[end]] = [PROVENANCE_CODES[provenance]] * (place[end] - place[start])
    changes = [index for index, code in enumerate(codes) if index == 0 or code != codes[index - 1]]
    return {
        "provenance_starts": [edges[index] for index in changes],
        "provenance_codes": [codes[index] for index in changes],
    }
