"""Enrich: the syntax parse beside the bare parser, chunks beside the functions that a compiler sees, and the compiler index.

Times are of the processor, on one core, except for the compiler index, which runs processes side by side.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tree_sitter import Parser

from pipeline.build.recipes import FULL_BUILT
from pipeline.build.stage_objects import parts_of
from pipeline.core.records import ChunkKind
from pipeline.lexing.languages import C, Language
from pipeline.pins.build_block import BuildBlock
from pipeline.stages.enrich.compiler.compiler_index import CompilerIndex, IndexRequest, index_source, prepare
from pipeline.stages.enrich.compiler.tools import ToolFailedError, system_arguments, tool_versions
from pipeline.stages.enrich.document import ParsedDocument, parse_document, record_of
from pipeline.stages.enrich.params import CompilerParams, SyntaxParams
from pipeline.stages.enrich.syntax.branches import conditionals_of, unbalanced_branches
from pipeline.stages.enrich.syntax.grammar import load_grammar
from pipeline.stages.enrich.syntax.parse import Syntax
from pipeline.store.store import Store
from tests.benchmarks.figure import Figure
from tests.benchmarks.pipeline.slices import collected, place_digest, texts

NUM_BYTES = 6_000_000
NUM_UNITS = 20
BLANK_ROW = dict.fromkeys(
    ("document_id", "source", "split", "text_sha256", "filepath_stable_id", "file_local_commit_index"), ""
)


def syntax() -> list[Figure]:
    """Time from a text to its row, and tree-sitter's parse of the same texts with the same grammars, in turn."""
    seconds, num_bytes = {_parse_row: 0.0, _bare_parse: 0.0}, 0
    _parse_row(_rows()[0], C)  # unmeasured: what is imported and loaded once a process
    for number, row in enumerate(_rows()):
        language = parse_document(row, SyntaxParams()).syntax.language  # unmeasured: both find the text in the caches
        num_bytes += len(row["text"].encode())
        for way in (_parse_row, _bare_parse) if number % 2 else (_bare_parse, _parse_row):
            started = time.process_time()
            way(row, language)
            seconds[way] += time.process_time() - started
    parsed, bare = seconds.values()
    speed, peer, ratio = num_bytes / 1e6 / parsed, num_bytes / 1e6 / bare, bare / parsed
    return [
        Figure("syntax", round(speed, 2), "MB/s", "reported", True, "tree-sitter's bare parse", round(peer, 2)),
        Figure("syntax/ratio", round(ratio, 3), "x", ">= 0.5 x", ratio >= 0.5),
    ]


def _parse_row(row: dict[str, str], language: Language) -> None:
    record_of(parse_document(row, SyntaxParams()), 0)


def _bare_parse(row: dict[str, str], language: Language) -> None:
    Parser(load_grammar(language)).parse(row["text"].encode())


def error_bytes() -> list[Figure]:
    """Bytes inside syntax errors with the branches blanked that do not balance, beside the same texts unchanged.

    The bound is on all texts, though blanking removes no error that a macro or a dialect makes. It is reported with the texts
    that have errors and branches out of balance.
    """
    readings = [parse_document(row, SyntaxParams()).syntax for row in _rows()]
    broken = [one for one in readings if one.num_error_bytes_unblanked]
    unbalanced = [one for one in broken if unbalanced_branches(conditionals_of(one.content))]
    share, num_bytes = _left(broken), sum(len(one.content) for one in readings)
    left = sum(one.num_error_bytes for one in readings) / num_bytes
    return [
        Figure("error-bytes", round(share, 3), "of before", "<= 0.6", share <= 0.6),
        Figure("error-bytes/texts", len(broken), "texts", "reported", True),
        Figure("error-bytes/unbalanced", round(_left(unbalanced), 3), "of before", "reported", True),
        Figure("error-bytes/unbalanced/texts", len(unbalanced), "texts", "reported", True),
        Figure("error-bytes/share", round(left, 4), "of all bytes", "reported", True),
    ]


def _left(readings: list[Syntax]) -> float:
    """Bytes in errors, of those that there were before anything was blanked."""
    before = sum(one.num_error_bytes_unblanked for one in readings)
    return sum(one.num_error_bytes for one in readings) / max(1, before)


def chunks() -> list[Figure]:
    """Of the functions that libclang sees in a unit, those that are one func_sig and one func_body chunk."""
    figures = []
    for name in sorted(FULL_BUILT.builds):
        found = [judgment for unit in _units(name) for judgment in unit]
        share = sum(found) / max(1, len(found))
        figures.append(Figure(f"chunks/{name}", round(share, 4), "of functions", ">= 0.97", share >= 0.97))
        figures.append(Figure(f"chunks/{name}/functions", len(found), "functions", ">= 1", len(found) >= 1))
    return figures


def compiler_index() -> list[Figure]:
    """lightgbm whole and a sample of z3: from nothing, and again with all units cached.

    SLUICE_BENCH_UNITS bounds the units of each source, SLUICE_BENCH_SOURCES names the sources, where time is short.
    """
    figures = []
    for name, block in sorted(FULL_BUILT.builds.items()):
        if name not in os.environ.get("SLUICE_BENCH_SOURCES", name).split(","):
            continue
        most = os.environ.get("SLUICE_BENCH_UNITS")
        if most is not None:
            block = block.model_copy(update={"max_units": int(most)})
        with tempfile.TemporaryDirectory() as folder:
            cold, first = _timed_index(_request(name, block, Path(folder)))
            warm, second = _timed_index(_request(name, block, Path(folder)))
        ratio = cold / warm
        seen = sum(file.is_indexed for file in first.files.values())
        num_units = first.counts["num_units_compiled"]
        failed = sum(number for word, number in first.counts.items() if word.startswith("num_units_failed"))
        figures += [
            Figure(f"compiler/{name}", round(cold / num_units, 2), "s/unit", "reported", True),
            Figure(
                f"compiler/{name}/warm", round(ratio, 1), "x", ">= 20 x", ratio >= 20 and first.files == second.files
            ),
            Figure(f"compiler/{name}/units", num_units, "units", "reported", True),
            Figure(f"compiler/{name}/units-failed", failed, "units", "0", failed == 0),
            Figure(f"compiler/{name}/files", seen, "files seen", "reported", True),
        ]
    return figures


def _timed_index(request: IndexRequest) -> tuple[float, CompilerIndex]:
    started = time.monotonic()
    index = index_source(request)
    return time.monotonic() - started, index


@cache
def _rows() -> list[dict[str, str]]:
    """Documents of the full slice, drawn by their place, about NUM_BYTES in all."""
    rows, size = [], 0
    for place in sorted(texts(FULL_BUILT.name), key=place_digest):
        text = texts(FULL_BUILT.name)[place]
        if size < NUM_BYTES and len(text) <= 400_000:
            rows.append({"path": place[1], "text": text} | BLANK_ROW)
            size += len(text.encode())
    return rows


def _request(name: str, block: BuildBlock, cache: Path | None) -> IndexRequest:
    return IndexRequest(name, *_source(name), block, CompilerParams(), tool_versions(block.cmake), cache)


@cache
def _source(name: str) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return all files of a source, and the texts of its documents."""
    store = Store(collected(FULL_BUILT.name))
    parts = parts_of(store.read(store.ref(FULL_BUILT.name, "collect") or ""))
    files = {
        row["path"]: row["content"]
        for table in ("files.parquet", "tree.parquet")
        for row in store.read(parts[name]).table(table, ["path", "content"]).to_pylist()
    }
    documents = {path: text.encode() for (source, path), text in texts(FULL_BUILT.name).items() if source == name}
    return files, documents


def _units(name: str) -> Iterator[list[bool]]:
    """For each of NUM_UNITS units, whether each of its functions is a func_sig and a func_body chunk."""
    from clang import cindex

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch).resolve()
        try:
            database = prepare(folder, _request(name, FULL_BUILT.builds[name], None))
        except ToolFailedError as error:
            raise SystemExit(f"{name} was not configured: {error}") from error
        from pipeline.stages.enrich.compiler.compile_commands import read_database

        commands = read_database(*database).commands
        before = os.getcwd()
        os.chdir(folder)
        for path in sorted(commands, key=lambda path: place_digest((name, path)))[:NUM_UNITS]:
            arguments = [*commands[path].arguments, *system_arguments(path.endswith(".c"))]
            unit = cindex.Index.create().parse(path, args=arguments)
            text = (folder / path).read_text(encoding="utf-8")
            row = {"path": path, "text": text} | BLANK_ROW
            yield [
                _is_cut_well(function, parse_document(row, SyntaxParams()))
                for function in _functions(unit, path, cindex)
            ]
        os.chdir(before)


def _functions(unit: Any, path: str, cindex: Any) -> Iterator[Any]:
    """The definitions of functions with a body and a name in the unit's own text, those inside of functions left out."""
    kinds = cindex.CursorKind
    functions = (kinds.FUNCTION_DECL, kinds.CXX_METHOD, kinds.CONSTRUCTOR, kinds.DESTRUCTOR, kinds.FUNCTION_TEMPLATE)
    content = Path(path).read_bytes()
    pending = [
        cursor for cursor in unit.cursor.get_children() if cursor.location.file and cursor.location.file.name == path
    ]
    while pending:
        cursor = pending.pop()
        if cursor.kind not in functions:
            if cursor.kind.is_declaration():
                pending += cursor.get_children()
            continue
        has_body = any(child.kind == kinds.COMPOUND_STMT for child in cursor.get_children())
        name = cursor.spelling.split("<")[0].encode()
        if cursor.is_definition() and has_body and content[cursor.location.offset :].startswith(name):
            yield cursor


def _is_cut_well(function: Any, reading: ParsedDocument) -> bool:
    body = [child for child in function.get_children() if child.kind.name == "COMPOUND_STMT"][-1].extent
    at, start, end = function.location.offset, body.start.offset, body.end.offset
    signature = [chunk for chunk in reading.chunks if chunk.start <= at < chunk.end]
    bodies = [chunk for chunk in reading.chunks if chunk.start < end and start < chunk.end]
    kinds = [chunk.kind for chunk in (*signature, *bodies)]
    return kinds == [ChunkKind.FUNC_SIG, ChunkKind.FUNC_BODY] and signature[0].end <= start
