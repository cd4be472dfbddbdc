"""Compile databases: from `compile_commands.json` to one command a unit, with the paths inside the tree and nothing else.

A command is read as its compiler would: `arguments` as they stand, `command` with a shell's quotes, response files in
their place. Of the options those stay that change what the text means; warnings, optimisation, outputs and what only
one compiler knows go. A path becomes relative to the tree, whatever machine the database was made on.
"""

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from posixpath import isabs, join, normpath

SOURCE = "source"
"""First part of the path of a file of the source."""
BUILD = "build"
"""First part of the path of a file that configuring made."""

_WITH_PATH = ("-I", "-isystem", "-iquote", "-idirafter", "-include", "-imacros")
_WITH_WORD = ("-D", "-U", "-x", "-std")
_DROPPED_WITH_NEXT = frozenset(
    [
        *("-o", "-MF", "-MT", "-MQ", "-MJ", "-arch", "-target", "-isysroot", "--sysroot", "-L", "-l", "-u", "-z", "-T"),
        *("-B", "-G", "-e", "-F", "-framework", "-Xclang", "-Xpreprocessor", "-Xlinker", "-Xassembler", "-mllvm"),
        *("-wrapper", "-aux-info", "--param", "-dumpbase", "-dumpdir", "-iprefix", "-iwithprefix"),
        "-serialize-diagnostics",
    ]
)
_KEPT = re.compile(
    r"-ansi|-pthread|-fopenmp|-ffreestanding|-fms-extensions|-trigraphs"
    r"|-f(no-)?(exceptions|rtti|signed-char|unsigned-char|short-enums|short-wchar|char8_t|builtin)"
    r"|-m(no-)?(32|64|x32|mmx|sse[0-9a-z.]*|ssse3|avx[0-9a-z-]*|bmi2?|fma4?|f16c|popcnt|aes|pclmul|lzcnt|adx|sha|gfni|cx16)"
)
_COMPILERS = (
    ("msvc", re.compile(r"cl|clang-cl")),
    ("nvcc", re.compile(r"nvcc")),
    ("clang", re.compile(r".*clang.*|zig|c\+\+-zig")),
    ("gcc", re.compile(r".*(g\+\+|gcc|c\+\+|cc).*")),
)
_LOCAL_PATH = re.compile(
    r"(?<![\w./<>+-])(?:~|[A-Za-z]:[\\/]|file:/)?/?(?:(?<=/)|(?<=\\)|(?<=~))[\w.@+-]+(?:[\\/][^\s\"'<>;,]*)?"
)
_PERSONAL = re.compile(
    r"\w*(?:USER|USERNAME|HOST|HOSTNAME|HOME|EMAIL|BUILT_BY|PASSWORD|TOKEN|SECRET)\b(?:=|$)", re.IGNORECASE
)
_LAUNCHERS = frozenset({"ccache", "sccache", "distcc", "icecc", "env", "launch"})
_MAX_RESPONSE_FILES = 16


@dataclass(frozen=True)
class Command:
    """How one unit is compiled. Paths begin with `source/` or `build/`."""

    path: str
    arguments: tuple[str, ...]
    compiler: str


@dataclass
class Database:
    """The commands of a compile database by the path of their unit, and how many entries were left out, and why."""

    commands: dict[str, Command] = field(default_factory=dict)
    num_entries: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Tree:
    """The files below `source/` and `build/`, and where those two lay on the machine that made the database."""

    files: frozenset[str]
    places: tuple[tuple[str, str], ...]
    """(absolute folder, `source` or `build`), the deepest first."""
    texts: Mapping[str, bytes]
    """What response files hold, by path."""

    def inside(self, directory: str, path: str) -> str | None:
        """The path inside the tree; None where it leads elsewhere."""
        absolute = normpath(join(directory, path))
        for place, folder in self.places:
            if absolute == place or absolute.startswith(place.rstrip("/") + "/"):
                return normpath(join(folder, absolute[len(place.rstrip("/")) + 1 :]))
        return None

    def scrubbed(self, value: str) -> str | None:
        """A definition with the paths of the tree inside it, and no other path; None where it names who built it."""
        if _PERSONAL.match(value):
            return None
        for place, folder in self.places:
            if len(place) > 1:
                value = value.replace(place, folder)
        return _LOCAL_PATH.sub("elsewhere", value)


class LeftOutError(Exception):
    """An entry that no command can be had from; the message is the reason, a word."""


def read_database(content: bytes, tree: Tree) -> Database:
    """The commands of a database. A bad entry is left out and counted; where nothing can be read, `not_a_database`."""
    database = Database()
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
    """Where the source lay when its database was made: the folder that most of its files are then found below.

    `files` are the paths of the source, without `source/`.
    """
    votes: Counter[str] = Counter()
    for entry in _entries(content) or []:
        directory, path = _words(entry, "directory") or "/", _words(entry, "file")
        parts = PurePosixPath(normpath(join("/", directory, path or ""))).parts
        for start in range(1, len(parts)):
            if "/".join(parts[start:]) in files:
                votes[join(*parts[:start])] += 1
                break
    return min(votes, key=lambda place: (-votes[place], place), default="/")


def _entries(content: bytes) -> list[object] | None:
    try:
        entries = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return entries if isinstance(entries, list) else None


def _words(entry: object, name: str) -> str | None:
    value = entry.get(name) if isinstance(entry, dict) else None
    return value if isinstance(value, str) and "\0" not in value else None


def _command(entry: object, tree: Tree) -> Command:
    path, directory = _words(entry, "file"), _words(entry, "directory") or ""
    if not path:
        raise LeftOutError("malformed")
    if not isabs(directory):
        directory = join(tree.places[-1][0], directory)
    inside = tree.inside(directory, path)
    if inside is None:
        raise LeftOutError("outside_the_source")
    if inside not in tree.files:
        raise LeftOutError("missing_file")
    words = _skip_launchers(_expanded(_split(entry), directory, tree))
    compiler = _compiler_of(words[0])
    return Command(inside, tuple(_kept(words[1:], directory, tree)), compiler)


def _split(entry: object) -> list[str]:
    arguments = entry.get("arguments") if isinstance(entry, dict) else None
    if isinstance(arguments, list) and arguments and all(isinstance(word, str) for word in arguments):
        return arguments
    command = _words(entry, "command")
    if not command:
        raise LeftOutError("malformed")
    try:
        words = shlex.split(command)
    except ValueError:
        raise LeftOutError("bad_quoting") from None
    if not words:
        raise LeftOutError("malformed")
    return words


def _expanded(words: Sequence[str], directory: str, tree: Tree) -> list[str]:
    """The words with those of response files in their place. One that is missing is left out of the command."""
    pending, done, num_files = list(reversed(words)), [], 0
    while pending:
        word = pending.pop()
        text = tree.texts.get(tree.inside(directory, word[1:]) or "") if word.startswith("@") else None
        if text is None:
            done.append(word)
            continue
        num_files += 1
        if num_files > _MAX_RESPONSE_FILES:
            raise LeftOutError("response_files")
        try:
            pending += reversed(shlex.split(text.decode("utf-8", "replace")))
        except ValueError:
            raise LeftOutError("bad_quoting") from None
    return done


def _skip_launchers(words: list[str]) -> list[str]:
    at = 0
    while at < len(words) - 1 and (PurePosixPath(words[at]).stem in _LAUNCHERS or "=" in words[at]):
        at += 1
    return words[at:]


def _compiler_of(word: str) -> str:
    name = PurePosixPath(word.replace("\\", "/")).name.lower().removesuffix(".exe")
    family = next((family for family, pattern in _COMPILERS if pattern.fullmatch(name)), None)
    if family is None or family in ("msvc", "nvcc"):
        raise LeftOutError("other_compiler")
    return family


def _kept(words: Sequence[str], directory: str, tree: Tree) -> Iterator[str]:
    """The options that change what the text means, those with a path made relative to the tree."""
    following = iter(words)
    for word in following:
        name = next((name for name in (*_WITH_PATH, *_WITH_WORD) if word.startswith(name)), None)
        if word in _DROPPED_WITH_NEXT:
            next(following, None)
        elif name is not None:
            value = word[len(name) :].removeprefix("=") if name == "-std" else word[len(name) :]
            value = value or next(following, "")
            if name in _WITH_PATH:
                kept = tree.inside(directory, value) if value else None
            else:
                kept = tree.scrubbed(value) if name == "-D" else value
            if kept:
                yield from (f"-std={kept}",) if name == "-std" else (name, kept)
        elif _KEPT.fullmatch(word):
            yield word
