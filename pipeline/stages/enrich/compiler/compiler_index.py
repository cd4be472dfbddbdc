"""Compiler index of one source: lay out its tree, read its compile database, compile its units, and report on each file.

Each unit is compiled once for itself, without the bodies of functions in what it includes. Headers are indexed with units
that include them: the fewest that read all, so that each header has one context, which is recorded.
"""

import hashlib
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pipeline.core.errors import StageError
from pipeline.pins.build_block import BuildBlock
from pipeline.sandbox.sandbox_child import PLACE
from pipeline.stages.enrich.compiler.cmake import DATABASE, configure
from pipeline.stages.enrich.compiler.compile_commands import (
    Command,
    CompileDatabase,
    context_of,
    place_of_source,
    read_database,
    tree_path,
    users_named_in,
)
from pipeline.stages.enrich.compiler.local_paths import count_local, users_of
from pipeline.stages.enrich.compiler.source_tree import BUILD, SOURCE, SourceTree, files_below, lay_out
from pipeline.stages.enrich.compiler.tools import ToolFailedError, missing_tools
from pipeline.stages.enrich.compiler.units import Compiler, UnitRequest, UnitResult
from pipeline.stages.enrich.params import CompilerParams

NOT_IN_DATABASE = "not_in_database"
NOT_SAMPLED = "not_sampled"
NUM_ATTEMPTS = 3
"""Number of attempts to index headers with their bodies, each with other units."""


@dataclass(frozen=True)
class IndexRequest:
    """Source to index, and how. `versions` are those of the tools; `cache` is a folder or None."""

    name: str
    files: Mapping[str, bytes]
    """All files of the source."""
    texts: Mapping[str, bytes]
    """The documents, as they are stored: each replaces the file of its path."""
    block: BuildBlock
    params: CompilerParams
    versions: Mapping[str, str]
    cache: Path | None


@dataclass(frozen=True)
class FileIndex:
    """Index of one file: what a compiler found in it, or why none read it."""

    is_indexed: bool
    detail: str
    """The failure, or `partial` where the unit had errors; empty without either."""
    context: str | None = None
    mentions: Sequence[Sequence[int]] = ()
    """(start, end, symbol, call, type reference, `Mention`) by start."""
    inactive: Sequence[Sequence[int]] = ()
    """Byte ranges that the preprocessor skipped."""


@dataclass
class CompilerIndex:
    """Index of each file of a source by path, with counts and notes for the report."""

    files: dict[str, FileIndex] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    """Units that could not be compiled, and why."""
    failures_with_bodies: dict[str, str] = field(default_factory=dict)
    """Units that could not be compiled with the bodies in their headers."""

    def file(self, path: str) -> FileIndex:
        """Return the index of a file. One that no unit reads is in no database."""
        return self.files.get(path, FileIndex(False, NOT_IN_DATABASE))

    def add(self, path: str, file: FileIndex) -> None:
        """Add the index of a file of the tree, if it is one of the source and the first for this file."""
        if path.startswith(f"{SOURCE}/"):
            self.files.setdefault(tree_path(path), file)


def index_source(request: IndexRequest) -> CompilerIndex:
    """Compile the units that the block selects. A tool that is missing or fails fails the index, never the source.

    Raises StageError where the pin names a file that the source does not have.
    """
    _check_block(request)
    index = CompilerIndex()
    try:
        with tempfile.TemporaryDirectory(prefix="sluice-compiler-") as scratch:
            _index(index, request, Path(scratch).resolve())
    except ToolFailedError as error:
        failure, message = error.args
        index.files = {path: FileIndex(False, f"tool_failed: {failure}") for path in request.texts}
        index.counts[f"num_compilations_failed_{failure}"] = 1
        reason = f"({failure}): {message}" if message else f"({failure})"
        index.notes.append(f"The compiler index of {request.name} failed {reason}.")
    return index


def _check_block(request: IndexRequest) -> None:
    wanted = request.block.database or str(Path(request.block.folder) / "CMakeLists.txt")
    if wanted not in request.files:
        raise StageError(
            f"source {request.name}",
            f"it has no {wanted}",
            "the file that its pin's build block names",
            "Correct `database` or `folder` in the pin, or see whether `include` and `exclude` leave the file out.",
        )


def _index(index: CompilerIndex, request: IndexRequest, folder: Path) -> None:
    missing = " ".join(missing_tools(request.versions))
    if missing:
        raise ToolFailedError("tool_missing", f"{missing.replace(' ', ', ')} not installed: pip install {missing}")
    content, tree = prepare(folder, request)
    database = read_database(content, tree)
    if not database.commands:
        reasons = ", ".join(f"{number} {reason}" for reason, number in sorted(database.left_out.items()))
        index.notes.append(
            f"The compiler index of {request.name}: the compile database has no command for any file of the source "
            f"({reasons or 'it is empty'})."
        )
    compiler = Compiler(folder, tree, request.versions, request.params.unit_limits(), request.cache)
    _compile(index, request, database, compiler)
    contexts = {file.context for file in index.files.values() if file.context is not None}
    index.counts["num_local_paths_in_context"] = count_local(sorted(contexts), users_of(content))


def prepare(folder: Path, request: IndexRequest) -> tuple[bytes, SourceTree]:
    """Lay out the tree in a folder, and return its compile database and the tree. Raises ToolFailedError.

    Documents are laid out as they are stored, so that offsets fit their bytes; configuring changes none of them.
    """
    block, stored = request.block, {**request.files, **request.texts}
    made: dict[str, bytes] = {}
    if block.database is not None:
        content = request.files[block.database]
        places = [(place_of_source(content, frozenset(request.files)), SOURCE)]
    else:
        made = configure(stored, block, request.params.configure_limits(), request.versions, request.cache)
        content = made.pop(DATABASE)
        places = [(f"{PLACE}/{BUILD}", BUILD), (f"{PLACE}/{SOURCE}", SOURCE)]
    lay_out(folder, {**made, **{f"{SOURCE}/{path}": text for path, text in stored.items()}})
    others = {f"{SOURCE}/{path}": file for path, file in request.files.items() if path not in request.texts}
    files, users = frozenset(files_below(folder)), users_named_in(content)
    return content, SourceTree(files, tuple(places), others, users, frozenset(made) & files)


def _compile(index: CompilerIndex, request: IndexRequest, database: CompileDatabase, compiler: Compiler) -> None:
    chosen = _chosen(request.name, database.commands, request.block.max_units)
    results = compiler.compile([UnitRequest(command, (path,), with_bodies=False) for path, command in chosen.items()])
    units = dict(zip(chosen, results, strict=True))
    for path, command in database.commands.items():
        if path in units:
            index.add(path, _file_index(units[path], command, path))
        else:
            index.add(path, FileIndex(False, NOT_SAMPLED, context_of(command)))
    headers = {f"{SOURCE}/{path}" for path in request.texts} - set(database.commands)
    good = {path: (chosen[path], unit) for path, unit in units.items() if not unit.failure}
    files, failures = _index_headers(headers, good, compiler)
    for path, file in files.items():
        index.add(path, file)
    index.counts += _counts(database, units.values())
    index.counts["num_units_failed_with_bodies"] = len(failures)
    index.failures = {tree_path(path): unit.failure for path, unit in sorted(units.items()) if unit.failure}
    index.failures_with_bodies = {tree_path(path): failure for path, failure in sorted(failures.items())}


def _chosen(name: str, commands: Mapping[str, Command], max_units: int | None) -> dict[str, Command]:
    """Return the units to compile, by path; where there are too many, those with the smallest keyed hash."""
    by_hash = sorted(commands, key=lambda path: hashlib.sha256(f"{name}\0{path}".encode()).digest())
    return {path: commands[path] for path in sorted(by_hash[:max_units])}


def _index_headers(
    headers: Iterable[str], units: Mapping[str, tuple[Command, UnitResult]], compiler: Compiler
) -> tuple[dict[str, FileIndex], dict[str, str]]:
    """Index each header with one unit, bodies included. Return also the units that failed so.

    Where one fails, others are tried, and at last the header is read without bodies: as the unit was before, without failure.
    """
    files: dict[str, FileIndex] = {}
    left, failures = set(headers), dict[str, str]()
    for with_bodies in (*[True] * NUM_ATTEMPTS, False):
        readers = {path: unit for path, (_, unit) in units.items() if not (with_bodies and path in failures)}
        assigned = assign_headers({path: unit.report["reads"] for path, unit in readers.items()}, left)
        requests = [UnitRequest(units[path][0], assigned[path], with_bodies) for path in assigned]
        for request, result in zip(requests, compiler.compile(requests), strict=True):
            command = request.command
            if result.failure and with_bodies:
                failures[command.path] = result.failure
                continue
            for path in request.files:
                file = _file_index(result, command, path)
                if file.is_indexed and not with_bodies:
                    file = replace(file, detail=f"partial: without bodies: {failures.get(command.path, '')}")
                files[path] = file
            left.difference_update(request.files)
    return files, failures


def assign_headers(reads: Mapping[str, Iterable[str]], headers: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Assign each header that some unit reads to one: the unit that reads most of what is left first, ties by path."""
    left = set(headers)
    reached = {path: left.intersection(found) for path, found in sorted(reads.items())}
    assigned: dict[str, tuple[str, ...]] = {}
    while True:
        best = max(reached, key=lambda path: len(reached[path]), default=None)
        if best is None or not reached[best]:
            return assigned
        assigned[best] = tuple(sorted(reached[best]))
        left = reached.pop(best)
        for found in reached.values():
            found -= left


def _file_index(unit: UnitResult, command: Command, path: str) -> FileIndex:
    if unit.failure:
        return FileIndex(False, f"tool_failed: {unit.failure}", context_of(command))
    file, num_errors = unit.report["files"][path], unit.report["num_errors"]
    mentions: list[Sequence[int]] = []
    for mention in file["mentions"]:
        if not mentions or mention[0] >= mentions[-1][1]:  # none that begins inside of the one before
            mentions.append(mention)
    detail = f"partial: {num_errors} errors" if num_errors else ""
    return FileIndex(True, detail, context_of(command, unit.generated), mentions, file["inactive"])


def _counts(database: CompileDatabase, units: Collection[UnitResult]) -> Counter[str]:
    counts: Counter[str] = Counter(
        num_database_entries=database.num_entries, num_units=len(database.commands), num_units_compiled=len(units)
    )
    counts.update({f"num_entries_{reason}": number for reason, number in database.left_out.items()})
    counts.update(Counter(f"num_units_failed_{unit.failure}" for unit in units if unit.failure))
    counts["num_missing_includes"] = sum(unit.report.get("num_missing_includes", 0) for unit in units)
    counts["num_units_with_errors"] = sum(bool(unit.report.get("num_errors")) for unit in units)
    return counts
