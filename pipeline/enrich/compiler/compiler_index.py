"""The compiler index of one source: lay out its tree, have a compile database, compile its units, and say what each file got.

Each unit is compiled once for itself, without the bodies of functions in what it includes. Headers get theirs from units
that include them: the fewest that reach all, so that each is read in one context, and it is recorded in which.
"""

import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pipeline.core.errors import StageError
from pipeline.enrich.compiler.cmake_cache import configured
from pipeline.enrich.compiler.compile_commands import Command, Database, place_of_source, read_database
from pipeline.enrich.compiler.context import context_of, count_local, tree_path, users_named_in
from pipeline.enrich.compiler.params import CompilerParams
from pipeline.enrich.compiler.source_tree import BUILD, SOURCE, Tree, files_below, lay_out
from pipeline.enrich.compiler.tools import missing_tools
from pipeline.enrich.compiler.units import Compiler, Seen, Task
from pipeline.pins.build_block import BuildBlock
from pipeline.sandbox.sandbox_child import PLACE

NOT_IN_DATABASE = "not_in_database"
NOT_SAMPLED = "not_sampled"
NUM_COVERS = 3
"""Number of attempts to read headers with their bodies, each in other units."""


@dataclass(frozen=True)
class View:
    """View of one document: what a compiler saw in it, or why none did."""

    is_seen: bool
    detail: str
    """The failure, or `partial` where the unit had errors; empty without either."""
    context: str | None = None
    mentions: Sequence[Sequence[int]] = ()
    """(start, end, symbol, call, type reference, `Mention`) by start."""
    inactive: Sequence[Sequence[int]] = ()
    """Byte ranges that the preprocessor skipped."""


@dataclass
class CompilerIndex:
    """Views of a source by path, with counts and notes for the report."""

    views: dict[str, View] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    """Units that gave nothing, and why."""
    failures_with_bodies: dict[str, str] = field(default_factory=dict)
    """Units that gave nothing where the bodies in their headers were read too."""

    def view(self, path: str) -> View:
        """The view of a document; one that no unit reaches is in no database."""
        return self.views.get(path, View(False, NOT_IN_DATABASE))


@dataclass(frozen=True)
class SourceTree:
    """Source to build: all its files, of which those in `texts` are documents, read as they are stored."""

    name: str
    files: Mapping[str, bytes]
    texts: Mapping[str, bytes]


def index_source(
    source: SourceTree, block: BuildBlock, params: CompilerParams, versions: dict[str, str], cache: Path | None
) -> CompilerIndex:
    """Compile what the block asks for. A tool that is missing or fails fails the index, never the source.

    Raises StageError where the pin names what the source does not hold.
    """
    index = CompilerIndex()
    _refuse_misnamed(source, block)
    missing = missing_tools(versions)
    if missing:
        return _failed(
            index, source, "tool_missing", f"{', '.join(missing)} not installed: pip install {' '.join(missing)}"
        )
    with tempfile.TemporaryDirectory(prefix="sluice-compiler-") as scratch:
        folder = Path(scratch).resolve()
        made = prepare(folder, source, (block, params, versions, cache))
        if isinstance(made, str):
            word, _, message = made.partition(": ")
            return _failed(index, source, word, message)
        content, tree = made
        database = read_database(content, tree)
        if not database.commands:
            index.notes.append(_no_commands(source, database))
        compiler = Compiler(folder, tree, versions, params.unit_limits(), cache)
        _compile(index, source, database, (block, compiler))
        contexts = {view.context for view in index.views.values() if view.context is not None}
        index.counts["num_local_paths_in_context"] = count_local(sorted(contexts), tree.users)
    return index


def _no_commands(source: SourceTree, database: Database) -> str:
    reasons = ", ".join(f"{number} {word}" for word, number in sorted(database.left_out.items())) or "it is empty"
    return f"The compiler index of {source.name}: the compile database has no command for any file of the source ({reasons})."


def _refuse_misnamed(source: SourceTree, block: BuildBlock) -> None:
    wanted = block.database or str(Path(block.folder) / "CMakeLists.txt")
    if wanted not in source.files:
        raise StageError(
            f"source {source.name}",
            f"it holds no {wanted}",
            "what its pin's build block names",
            "Correct `database` or `folder` in the pin, or look whether `include` and `exclude` leave the file out.",
        )


def _failed(index: CompilerIndex, source: SourceTree, word: str, message: str) -> CompilerIndex:
    index.views = {path: View(False, f"tool_failed: {word}") for path in source.texts}
    index.counts[f"num_compilations_failed_{word}"] = 1
    index.notes.append(f"The compiler index of {source.name} failed ({word}){': ' + message if message else ''}.")
    return index


def prepare(
    folder: Path, source: SourceTree, how: tuple[BuildBlock, CompilerParams, Mapping[str, str], Path | None]
) -> tuple[bytes, Tree] | str:
    """The database, and the tree that its paths are in, laid out in a folder; or why there is none.

    Documents are laid out as they are stored, so that what is seen fits their bytes; configuring changes none of them.
    """
    block, params, versions, cache = how
    stored = {**source.files, **source.texts}
    made: Mapping[str, bytes] = {}
    if block.database is not None:
        content = source.files[block.database]
        places = [(place_of_source(content, frozenset(source.files)), SOURCE)]
    else:
        answer = configured(stored, block, params.configure_limits(), versions, cache)
        if answer.database is None:
            return f"{answer.failure}: {answer.message}"
        content, made = answer.database, answer.made
        places = [(f"{PLACE}/{BUILD}", BUILD), (f"{PLACE}/{SOURCE}", SOURCE)]
    lay_out(folder, {**made, **{f"{SOURCE}/{path}": text for path, text in stored.items()}})
    others = {f"{SOURCE}/{path}": content for path, content in source.files.items() if path not in source.texts}
    files, users = frozenset(files_below(folder)), users_named_in(content)
    return content, Tree(files, tuple(places), others, users, frozenset(made) & files)


def _compile(index: CompilerIndex, source: SourceTree, database: Database, how: tuple[BuildBlock, Compiler]) -> None:
    block, compiler = how
    chosen = _chosen(source.name, database.commands, block.max_units)
    tasks = [Task(command, (command.path,), is_whole=False) for command in chosen]
    seen = dict(zip((command.path for command in chosen), compiler.compile(tasks), strict=True))
    for path in database.commands:
        if path not in seen:
            _put(index, path, View(False, NOT_SAMPLED, context_of(database.commands[path])))
    for command in chosen:
        _put(index, command.path, _view(seen[command.path], command, command.path))
    headers = {f"{SOURCE}/{path}" for path in source.texts} - set(database.commands)
    good = {path: database.commands[path] for path, unit in seen.items() if not unit.failure}
    views, failures = _views_of_headers(headers, {path: (good[path], seen[path]) for path in good}, compiler)
    for path, view in views.items():
        _put(index, path, view)
    index.counts += _counts(database, seen)
    index.counts["num_units_failed_with_bodies"] = len(failures)
    index.failures = {tree_path(path): unit.failure for path, unit in sorted(seen.items()) if unit.failure}
    index.failures_with_bodies = {tree_path(path): failure for path, failure in sorted(failures.items())}


def _views_of_headers(
    headers: Iterable[str], units: Mapping[str, tuple[Command, Seen]], compiler: Compiler
) -> tuple[dict[str, View], dict[str, str]]:
    """Each header as one unit sees it, with bodies; and the units that failed so.

    Where one fails, others are tried, and then the header is read without bodies: as the unit was at first, which went well.
    """
    views: dict[str, View] = {}
    reads = {path: seen.report["reads"] for path, (_, seen) in units.items()}
    left, failures = set(headers), dict[str, str]()
    for _ in range(NUM_COVERS):
        cover = cover_headers({path: found for path, found in reads.items() if path not in failures}, left)
        tasks = [Task(units[path][0], files, is_whole=True) for path, files in cover.items()]
        for task, seen in zip(tasks, compiler.compile(tasks), strict=True):
            if seen.failure:
                failures[task.command.path] = seen.failure
                continue
            views |= {path: _view(seen, task.command, path) for path in task.files}
            left -= set(task.files)
    cover = cover_headers(reads, left)
    without = [Task(units[path][0], files, is_whole=False) for path, files in cover.items()]
    for task, seen in zip(without, compiler.compile(without), strict=True):
        reason = failures.get(task.command.path, "")
        views |= {path: _without_bodies(_view(seen, task.command, path), reason) for path in task.files}
    return views, failures


def _without_bodies(view: View, failure: str) -> View:
    return replace(view, detail=f"partial: without bodies: {failure}") if view.is_seen else view


def _chosen(name: str, commands: Mapping[str, Command], max_units: int | None) -> list[Command]:
    """The units to compile, by path; where there are too many, those with the smallest keyed hash."""
    by_hash = sorted(commands, key=lambda path: hashlib.sha256(f"{name}\0{path}".encode()).digest())
    return [commands[path] for path in sorted(by_hash[:max_units])]


def cover_headers(reads: Mapping[str, Iterable[str]], headers: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """For each header that some unit reads, one unit: the unit that reads most of what is left first, ties by path."""
    left = set(headers)
    reached = {path: left.intersection(found) for path, found in sorted(reads.items())}
    cover: dict[str, tuple[str, ...]] = {}
    while True:
        best = max(reached, key=lambda path: len(reached[path]), default=None)
        if best is None or not reached[best]:
            return cover
        cover[best] = tuple(sorted(reached[best]))
        left = reached.pop(best)
        for found in reached.values():
            found -= left


def _view(seen: Seen, command: Command, path: str) -> View:
    if seen.failure:
        return View(False, f"tool_failed: {seen.failure}", context_of(command))
    file = seen.report["files"][path]
    detail = f"partial: {seen.report['num_errors']} errors" if seen.report["num_errors"] else ""
    return View(True, detail, context_of(command, seen.generated), _apart(file["mentions"]), file["inactive"])


def _apart(mentions: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    """The mentions that do not begin inside of the one before."""
    apart: list[Sequence[int]] = []
    for mention in mentions:
        if not apart or mention[0] >= apart[-1][1]:
            apart.append(mention)
    return apart


def _put(index: CompilerIndex, path: str, view: View) -> None:
    if path.startswith(f"{SOURCE}/"):
        index.views.setdefault(tree_path(path), view)


def _counts(database: Database, seen: Mapping[str, Seen]) -> Counter[str]:
    counts: Counter[str] = Counter(
        num_database_entries=database.num_entries, num_units=len(database.commands), num_units_compiled=len(seen)
    )
    counts.update({f"num_entries_{word}": number for word, number in database.left_out.items()})
    failures: Any = Counter(f"num_units_failed_{unit.failure}" for unit in seen.values() if unit.failure)
    counts.update(failures)
    counts["num_missing_includes"] = sum(unit.report.get("num_missing_includes", 0) for unit in seen.values())
    counts["num_units_with_errors"] = sum(bool(unit.report.get("num_errors")) for unit in seen.values())
    return counts
