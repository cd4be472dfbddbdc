"""Compile commands: those of a compile database, with only paths inside the tree, and the build context that is stored of one.

A command is read as its compiler reads it: `arguments` unchanged, `command` with shell quoting, response files expanded.
Options that change what the text means are kept; those for warnings, optimization and outputs, and those that only one
compiler has, are dropped. A path becomes relative to the tree, on whatever machine the database was made. The context holds
all that a compiler needs, and nothing about the machine that it ran on.
"""

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import PurePosixPath
from posixpath import isabs, join, normpath
from typing import TypeGuard

from pipeline.lexing.languages import LANGUAGES, language_of
from pipeline.stages.enrich.compiler.path_options import OPTIONS_WITH_NEXT
from pipeline.stages.enrich.compiler.source_tree import BUILD, SOURCE, SourceTree

MAX_DATABASE_BYTES = 64 << 20
"""A larger database is not read: it would need gigabytes. Chromium's has 40 MB."""

_WITH_PATH = ("-idirafter", "-include", "-imacros", "-isystem", "-iquote", "-I")
_WITH_NAME = ("-D", "-U", "-x")
_DROPPED_WITH_NEXT = frozenset(
    [
        *(option for option in OPTIONS_WITH_NEXT if option not in _WITH_PATH),
        *("-o", "-arch", "-target", "-L", "-l", "-u", "-z", "-T", "-B", "-G", "-e", "-F", "--param", "-mllvm"),
        *("-Xclang", "-Xpreprocessor", "-Xlinker", "-Xassembler", "-Xanalyzer"),
        *("-serialize-diagnostics", "-index-store-path", "-dependency-file"),
    ]
)
_KEPT = re.compile(
    r"-ansi|-pthread|-fopenmp|-ffreestanding|-fms-extensions|-trigraphs"
    r"|-f(no-)?(exceptions|rtti|signed-char|unsigned-char|short-enums|short-wchar|char8_t|builtin)"
    r"|-m(no-)?(mmx|sse[0-9a-z.]*|ssse3|avx(2|512[0-9a-z]*|vnni|ifma)?|bmi2?|fma4?|f16c|popcnt|aes|pclmul|lzcnt|adx|sha"
    r"|gfni|cx16)|-m(32|64|x32)"
)
_STANDARDS = {
    True: re.compile(r"-std=((c|gnu)(89|90|99|9x|11|1x|17|18|2x|23)|iso9899:(1990|199409|1999|199x|2011|2017|2018))"),
    False: re.compile(r"-std=(c|gnu)\+\+(98|03|0x|11|1y|14|1z|17|2a|20|2b|23|2c|26)"),
}
"""Standards that libclang supports, for C (True) and C++ (False). A unit with another one is read without it."""
_CUDA_SUFFIXES = frozenset({".cu", ".cuh"})
_KNOWN_SUFFIXES = frozenset(
    [*(".c", ".cc", ".cp", ".cpp", ".cxx", ".c++", ".ixx", ".cppm"), *(".h", ".hh", ".hpp", ".hxx")]
)
"""Suffixes whose language a compiler knows. Files with others are linker input to it unless `-x` is given."""
_DEFINITION = re.compile(r"[A-Za-z_$]\w*(\([^()]*\))?(=.*)?", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_$]\w*")
_COMPILERS = (
    ("", re.compile(r"cl|clang-cl|nvcc")),
    ("clang", re.compile(r".*clang.*|zig|c\+\+-zig")),
    ("gcc", re.compile(r".*(g\+\+|gcc|c\+\+|cc).*")),
)
_LAUNCHERS = frozenset({"ccache", "sccache", "distcc", "icecc", "env", "launch"})
_MAX_RESPONSE_FILES = 16
_MAX_PATH_LENGTH = 4096
_MAX_COMMAND_LENGTH = 1 << 20
_PATHS = {
    "-I": "include_roots",
    "-iquote": "include_roots",
    "-isystem": "system_roots",
    "-idirafter": "system_roots",
    "-include": "forced_includes",
    "-imacros": "forced_macros",
}
_LISTS = {**_PATHS, "-D": "defines", "-U": "undefines"}
"""Keys of the options that can be repeated."""
_USER = re.compile(r"(?:[\\/](?:home|Users)[\\/]+)([^/\\\"'\s]+)")


@dataclass(frozen=True)
class Command:
    """Compile command of one unit. Paths begin with `source/` or `build/`."""

    path: str
    arguments: tuple[str, ...]
    compiler: str


@dataclass
class CompileDatabase:
    """The commands of a compile database by the path of their unit, and the number of skipped entries by reason."""

    commands: dict[str, Command] = field(default_factory=dict)
    num_entries: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


class LeftOutError(Exception):
    """Entry that yields no command; the message is the reason, one word."""


def read_database(content: bytes, tree: SourceTree) -> CompileDatabase:
    """Return the commands of a database. A bad entry is skipped and counted; an unreadable file is `not_a_database`."""
    database = CompileDatabase()
    entries = _entries(content)
    if entries is None:
        database.left_out["not_a_database"] += 1
        return database
    for entry in entries:
        database.num_entries += 1
        try:
            command = _command(entry, tree)
        except LeftOutError as reason:
            database.left_out[str(reason)] += 1
            continue
        before = database.commands.get(command.path)
        if before is not None:
            database.left_out["duplicate"] += 1
            command = min(before, command, key=lambda one: one.arguments)
        database.commands[command.path] = command
    database.commands = dict(sorted(database.commands.items()))
    return database


def place_of_source(content: bytes, files: frozenset[str]) -> str:
    """Return the folder of the source when its database was made: the one that contains most of its files.

    `files` are the paths of the source, without `source/`.
    """
    votes: Counter[str] = Counter()
    depth = max((path.count("/") + 1 for path in files), default=1)
    for entry in _entries(content) or []:
        directory, path = _text(entry, "directory") or "/", _text(entry, "file")
        whole = normpath(join("/", directory, path or "")).lstrip("/")
        starts = [0, *(at + 1 for at, character in enumerate(whole) if character == "/")][-depth:]
        found = next((start for start in starts if whole[start:] in files), None)
        if found is not None:
            votes["/" + whole[:found].rstrip("/")] += 1
    return min(votes, key=lambda place: (-votes[place], place), default="/")


def is_c(path: str, arguments: Sequence[str]) -> bool:
    """Return whether a unit is C: by `-x`, else by its extension."""
    if "-x" in arguments:
        return arguments[len(arguments) - arguments[::-1].index("-x")] in ("c", "c-header")
    language = language_of(path)
    return language is not None and language.compiled_as == "c"


def context_of(command: Command, generated: Sequence[str] = ()) -> str:
    """Return the context of a unit as JSON: its path, compiler, language, standard, roots, definitions and other options.

    `generated` are the generated files that it read.
    """
    context: dict[str, object] = {"unit": tree_path(command.path), "compiler": command.compiler}
    if generated:
        context["generated"] = [tree_path(path) for path in generated]
    lists: dict[str, list[str]] = {}
    following = iter(command.arguments)
    for argument in following:
        if argument in _LISTS:
            value = next(following)
            lists.setdefault(_LISTS[argument], []).append(tree_path(value) if argument in _PATHS else value)
        elif argument == "-x":
            context["language"] = next(following)
        elif argument.startswith("-std="):
            context["standard"] = argument.removeprefix("-std=")
        else:
            lists.setdefault("options", []).append(argument)
    return json.dumps({**context, **lists}, sort_keys=True, ensure_ascii=False)


def tree_path(path: str) -> str:
    """Return the path within the source, or below `<build>` for a generated file."""
    if path == SOURCE or path.startswith(f"{SOURCE}/"):
        return path[len(SOURCE) + 1 :] or "."
    return f"<{BUILD}>{path[len(BUILD) :]}"


def users_named_in(database: bytes) -> frozenset[str]:
    """Return the users whose home folders a database names."""
    text = json.dumps(_entries(database) or [], ensure_ascii=False)
    return frozenset(_USER.findall(text))


def _entries(content: bytes) -> list[object] | None:
    if len(content) > MAX_DATABASE_BYTES:
        return None
    try:
        entries = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return entries if isinstance(entries, list) else None


def _text(entry: object, name: str, max_length: int = _MAX_PATH_LENGTH) -> str | None:
    value = entry.get(name) if isinstance(entry, dict) else None
    return value if _is_text(value, max_length) else None


def _is_text(value: object, max_length: int) -> TypeGuard[str]:
    """Return whether a JSON value can be an argument or a path: a string without NUL and lone surrogates."""
    return (
        isinstance(value, str)
        and len(value) <= max_length
        and "\0" not in value
        and not any("\ud800" <= character <= "\udfff" for character in value)
    )


def _command(entry: object, tree: SourceTree) -> Command:
    path, directory = _text(entry, "file"), _text(entry, "directory") or ""
    if not path:
        raise LeftOutError("malformed")
    if not isabs(directory):
        directory = join(tree.places[-1][0], directory)
    inside = tree.inside(directory, path)
    if inside is None:
        raise LeftOutError("outside_the_source")
    if inside not in tree.files:
        raise LeftOutError("missing_file")
    arguments = _without_launchers(_expanded(_split(entry), directory, tree))
    compiler = _compiler_of(arguments[0])
    return Command(inside, _as_language(inside, list(_kept(arguments[1:], directory, tree))), compiler)


def _split(entry: object) -> list[str]:
    arguments = entry.get("arguments") if isinstance(entry, dict) else None
    if not isinstance(arguments, list) or not arguments:
        arguments = _shell_split(_text(entry, "command", _MAX_COMMAND_LENGTH) or "")
    is_sound = arguments and all(_is_text(argument, _MAX_COMMAND_LENGTH) for argument in arguments)
    if not is_sound or sum(map(len, arguments)) > _MAX_COMMAND_LENGTH:
        raise LeftOutError("malformed")
    return arguments


def _shell_split(text: str) -> list[str]:
    if len(text) > _MAX_COMMAND_LENGTH:
        raise LeftOutError("malformed")
    try:
        return shlex.split(text)
    except ValueError:
        raise LeftOutError("bad_quoting") from None


def _expanded(arguments: Sequence[str], directory: str, tree: SourceTree) -> list[str]:
    """Return the arguments with response files expanded in place. A missing one stays an argument, which `_kept` drops."""
    pending, done, num_files = list(reversed(arguments)), [], 0
    while pending:
        argument = pending.pop()
        text = tree.texts.get(tree.inside(directory, argument[1:]) or "") if argument.startswith("@") else None
        if text is None:
            done.append(argument)
            continue
        num_files += 1
        if num_files > _MAX_RESPONSE_FILES:
            raise LeftOutError("response_files")
        pending += reversed(_shell_split(text.decode("utf-8", "replace").replace("\0", "")))
    return done


def _without_launchers(arguments: list[str]) -> list[str]:
    start = 0
    while start < len(arguments) - 1 and (
        PurePosixPath(arguments[start]).stem in _LAUNCHERS or "=" in arguments[start]
    ):
        start += 1
    return arguments[start:]


def _compiler_of(program: str) -> str:
    name = PurePosixPath(program.replace("\\", "/")).name.lower().removesuffix(".exe")
    family = next((family for family, pattern in _COMPILERS if pattern.fullmatch(name)), "")
    if not family:
        raise LeftOutError("other_compiler")
    return family


def _as_language(path: str, arguments: list[str]) -> tuple[str, ...]:
    """Return the arguments, with a language and standard that libclang supports. Compilers only warn of others."""
    suffix, language = PurePosixPath(path).suffix.lower(), language_of(path)
    named = {value for name, value in pairwise(arguments) if name == "-x"}
    compiled_as = language.compiled_as if language is not None and suffix not in _CUDA_SUFFIXES else ""
    compiled = {each.compiled_as for each in LANGUAGES if each.compiled_as}
    if not named <= {*compiled, *(f"{each}-header" for each in compiled)} or not (named or compiled_as):
        raise LeftOutError("other_language")
    if not named and suffix not in _KNOWN_SUFFIXES:
        arguments = [*arguments, "-x", compiled_as]
    supported = _STANDARDS[is_c(path, arguments)]
    return tuple(each for each in arguments if not each.startswith("-std=") or supported.fullmatch(each))


def _kept(arguments: Sequence[str], directory: str, tree: SourceTree) -> Iterator[str]:
    """Yield the options that change what the text means, with paths relative to the tree."""
    following = iter(arguments)
    for argument in following:
        if argument in _DROPPED_WITH_NEXT or argument.startswith("-Xarch_"):
            next(following, None)
        elif argument in ("-std", "--std") or argument.startswith(("-std=", "--std=")):
            yield f"-std={argument.partition('=')[2] or next(following, '')}"
        elif _KEPT.fullmatch(argument):
            yield argument
        else:
            yield from _with_value(argument, following, directory, tree)


def _with_value(argument: str, following: Iterator[str], directory: str, tree: SourceTree) -> Iterator[str]:
    """Yield an option and its value, which is attached to it or the next argument."""
    name = next((name for name in (*_WITH_PATH, *_WITH_NAME) if argument.startswith(name)), None)
    if name is None or argument == "-I-" or argument.startswith("-include-"):
        return
    value = argument[len(name) :] or next(following, "")
    if name in _WITH_PATH:
        kept = tree.inside(directory, value) if value else None
    elif name == "-D":
        kept = tree.scrubbed(value) if _DEFINITION.fullmatch(value) else None
    else:
        kept = value if name == "-x" or _NAME.fullmatch(value) else None
    if kept and (name != "-x" or kept != "none"):
        yield from (name, kept)
