"""Structure of one file: its chunks, its provenance, and its build context."""

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import pyarrow.compute as pc

from pipeline.core.command_line import shell_command
from pipeline.core.errors import MissingError
from pipeline.core.records import PROVENANCE_CODES, ChunkKind, Mention, Provenance
from pipeline.core.table_names import ENRICHED
from pipeline.lineage.stored_build import stored_build
from pipeline.lineage.why import why
from pipeline.stages.stages import stage_with
from pipeline.store.store import Store

_COPIED = (
    "source",
    "path",
    "split",
    "language",
    "provenance",
    "provenance_detail",
    "error_fraction",
    "order_in_source",
)
_MAX_PREVIEW = 72
_NO_DOCUMENT = "it is license evidence, not a document"
_TOOL_FAILED = "tool_failed: "
_AFTER_PARTIAL = ", with errors: the result is partial"
_SENTENCES = {
    "commit": "what a commit did to a file, which is not parsed",
    "no_database": "not read by a compiler: the pin of its source has no `build` block",
    "not_in_database": "not read by a compiler: it is not a unit of the compile database, and no compiled unit includes it",
    "not_sampled": "not read by a compiler: a unit, but not one of the `max_units` that were sampled",
}


def file_structure(store: Store, corpus: str, source: str, path: str, of: str | None = None) -> dict[str, Any]:
    """Return the structure of one document of a build, as JSON. Raises MissingError naming what is missing, or what dropped it."""
    table = stored_build(store, corpus, of).part(stage_with(ENRICHED).name, source).table(ENRICHED)
    found = table.filter(pc.equal(table["path"], path)).to_pylist()
    if not found:
        last = why(store, corpus, source, path, of).steps[-1]
        gone = f"{last.stage} dropped it: {last.reason}" if last.verdict == "dropped" else _NO_DOCUMENT
        remedy = f"Run `{shell_command('pipeline why', source, path, corpus=corpus, of=of)}` for the evidence."
        raise MissingError(f"{source}/{path}", gone, "", remedy)
    return _structure(found[0])


def structure_lines(structure: Mapping[str, Any]) -> Iterator[str]:
    """Format the structure for the terminal."""
    detail, context = structure["provenance_detail"], structure["build_context"] or {}
    yield f"{structure['source']}/{structure['path']}: {structure['language']}, {structure['provenance']}" + (
        f" ({detail})" if detail else ""
    )
    yield f"  {_sentence(structure['path'], structure['provenance'], detail, context.get('unit'))}"
    shares = ", ".join(f"{name} {share:.1%}" for name, share in structure["provenance_shares"].items())
    yield f"  bytes: {structure['num_bytes']} ({shares}); inside syntax errors {structure['error_fraction']:.2%}"
    yield f"  position in the order of the source: {structure['order_in_source']}"
    if structure["includes"]:
        yield f"  includes: {_printable(' '.join(structure['includes']))}"
    for name, value in context.items():
        yield f"  {name}: {_printable(value if isinstance(value, str) else ' '.join(map(shlex.quote, value)))}"
    if structure["mentions"] is not None:
        yield "  names: " + ", ".join(f"{number} {name}" for name, number in structure["mentions"].items())
    yield f"  {len(structure['chunks'])} chunks:"
    for chunk in structure["chunks"]:
        yield f"  {chunk['start']:>9} {chunk['num_bytes']:>7}  {chunk['kind']:<13}{chunk['level']:>2}  {chunk['begins']}"


def _sentence(path: str, provenance: str, detail: str, unit: str | None) -> str:
    """Describe what the compiler index has for the file."""
    where = "compiled as a unit of its own" if unit == path else f"read by a compiler in the context of unit {unit}"
    if provenance == Provenance.BUILD_AWARE:
        return f"{where}{_AFTER_PARTIAL if detail.startswith('partial') else ''}"
    if detail.startswith(_TOOL_FAILED):
        reason = detail.removeprefix(_TOOL_FAILED)
        if unit is None:
            return f"the compiler index of its source failed: {reason}"
        return f"to be {where}, which gave nothing: {reason}"
    return _SENTENCES.get(detail, f"not parsed as a whole: {detail}" if detail else "not read by a compiler")


def _structure(row: Mapping[str, Any]) -> dict[str, Any]:
    content = row["text"].encode()
    chunks = zip(row["chunk_starts"], row["chunk_ends"], row["chunk_kinds"], row["chunk_levels"], strict=True)
    kinds = list(ChunkKind)
    return {
        **{name: row[name] for name in _COPIED},
        "num_bytes": len(content),
        "num_leaves": None if row["node_starts"] is None else len(row["node_starts"]),
        "includes": row["includes"],
        "provenance_shares": _shares(row, len(content)),
        "build_context": None if row["build_context"] is None else json.loads(row["build_context"]),
        "mentions": _mentions(row),
        "chunks": [
            {
                "start": start,
                "num_bytes": end - start,
                "kind": kinds[kind].value,
                "level": level,
                "begins": _preview(content[start:end]),
            }
            for start, end, kind, level in chunks
        ],
    }


def _shares(row: Mapping[str, Any], num_bytes: int) -> dict[str, float]:
    names = {code: provenance.value for provenance, code in PROVENANCE_CODES.items()}
    counts: Counter[str] = Counter()
    edges = pairwise([*row["provenance_starts"], num_bytes])
    for (start, end), code in zip(edges, row["provenance_codes"], strict=True):
        counts[names[code]] += end - start
    return {name: count / num_bytes for name, count in sorted(counts.items())}


def _mentions(row: Mapping[str, Any]) -> dict[str, int] | None:
    if row["definitions_and_uses"] is None:
        return None
    counts = Counter(Mention(code).name.lower() for code in row["definitions_and_uses"])
    counts["call"] = sum(call != 0 for call in row["calls"])
    counts["type reference"] = sum(reference != 0 for reference in row["type_references"])
    return dict(sorted(counts.items()))


def _preview(content: bytes) -> str:
    words = " ".join(content.decode("utf-8", "replace").split())
    printable = _printable(words)
    return printable if len(printable) <= _MAX_PREVIEW else printable[: _MAX_PREVIEW - 1] + "…"


def _printable(text: str) -> str:
    """Replace control characters, which a terminal would interpret."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)
