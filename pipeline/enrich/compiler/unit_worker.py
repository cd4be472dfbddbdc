"""Script that compiles one unit and prints the compiler's report as JSON. It is a separate process: a crash loses one unit.

Run as a script with a job on stdin:

    {"unit": path, "arguments": [...], "files": [paths to report on], "whole": bool, "cpu_seconds": n, "memory_bytes": n}

in the folder that the paths are relative to. The arguments name the overlay file system.
With `whole` the bodies of functions in headers are read too.
"""

import ctypes
import hashlib
import json
import os
import resource
import signal
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

_MAX_WRITTEN_BYTES = 512 << 20
"""Limit for each file that is written: the report, and the compiler's temporary files."""
_PR_SET_PDEATHSIG = 1
_TOO_DEEP = 400
"""Nested cursors below this depth are skipped, as in an expression of a hundred thousand brackets."""


def main() -> int:
    """Read the job, compile, print the report."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # nobody would read what it prints
    job = json.load(sys.stdin)
    seconds = int(job["cpu_seconds"])
    _limit(resource.RLIMIT_CPU, seconds, seconds + 1)
    _limit(resource.RLIMIT_AS, *(int(job["memory_bytes"]),) * 2)
    _limit(resource.RLIMIT_CORE, 0, 0)
    _limit(resource.RLIMIT_FSIZE, _MAX_WRITTEN_BYTES, _MAX_WRITTEN_BYTES)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # endless output ends the process
    from clang import cindex  # after the limits: a library that cannot be loaded within them is a failed unit

    print(json.dumps(Unit(cindex, job).seen()), flush=True)
    os._exit(0)  # the library's own cleanup takes long and can crash


def _limit(limit: int, *values: int) -> None:
    """Set the soft and the hard limit, neither above the current hard limit."""
    hard = resource.getrlimit(limit)[1]
    soft, most = values if hard == resource.RLIM_INFINITY else (min(value, hard) for value in values)
    resource.setrlimit(limit, (soft, most))


class Unit:
    """Parsed unit."""

    def __init__(self, cindex: Any, job: dict[str, Any]) -> None:
        self.cindex = cindex
        self.kinds = cindex.CursorKind
        self.files = set(job["files"])
        self.unit_path = job["unit"]
        options = 0x01 | 0x200  # a detailed preprocessing record; continue after fatal errors
        if not job["whole"]:
            options |= 0x04 | 0x40 | 0x100 | 0x800  # skip the bodies of functions in what the unit includes first
        self.unit = cindex.Index.create().parse(job["unit"], args=job["arguments"], options=options)
        self.contents: dict[str, bytes] = {}
        self.ids: dict[str, int] = {}
        self.mentions: dict[str, dict[int, list[int]]] = {path: {} for path in self.files}

    def seen(self) -> dict[str, Any]:
        """Return the report of the unit."""
        for cursor in self.unit.cursor.get_children():
            path = self._path(cursor.location)
            if path is not None and path in self.files:
                self._walk(cursor, path)
        severe = [diagnostic for diagnostic in self.unit.diagnostics if diagnostic.severity >= 3]
        return {
            "reads": sorted(self._reads() | {self.unit_path}),
            "num_errors": len(severe),
            "num_missing_includes": sum("file not found" in diagnostic.spelling for diagnostic in severe),
            "files": {
                path: {
                    "mentions": [[at, *found[at]] for at in sorted(found)],
                    "inactive": self._inactive(path),
                }
                for path, found in sorted(self.mentions.items())
            },
        }

    def _reads(self) -> set[str]:
        """Return all files that were read. `get_includes` omits those of `-include` where the preamble is precompiled."""
        found: set[str] = set()

        def note(file: Any, location: Any, depth: int, _: Any) -> None:
            found.add(_inside(self.cindex.File(file).name))

        visitor = self.cindex.callbacks["translation_unit_includes"](note)
        self.cindex.conf.lib.clang_getInclusions(self.unit, visitor, None)
        return found

    def _walk(self, top: Any, path: str) -> None:
        pending = [(top, 0, -1)]
        while pending:
            cursor, depth, callee = pending.pop()
            self._mention(cursor, path, callee)
            if depth < _TOO_DEEP:
                kind = _kind_of(cursor)
                calls = kind == self.kinds.CALL_EXPR
                for number, child in enumerate(cursor.get_children()):
                    inherits = callee if kind == self.kinds.UNEXPOSED_EXPR and number == 0 else 0
                    pending.append((child, depth + 1, 1 if calls and number == 0 else max(inherits, 0)))

    def _mention(self, cursor: Any, path: str, callee: int) -> None:
        kind = _kind_of(cursor)
        if kind is None:
            return
        if kind.is_declaration():
            named, mention = cursor, 1 if cursor.is_definition() else 2
        elif kind.is_reference() or kind in (self.kinds.DECL_REF_EXPR, self.kinds.MEMBER_REF_EXPR):
            named, mention = cursor.referenced, 3
        elif kind == self.kinds.CALL_EXPR:
            self._construction(cursor, path)
            return
        else:
            return
        if named is None or not named.spelling:
            return
        at = self._named_at(cursor, path, named.spelling.split("<")[0])
        if at is None:
            return
        symbol = self._id(named)
        is_type = (
            mention == 3 and kind in (self.kinds.TYPE_REF, self.kinds.TEMPLATE_REF) and _is_type(named, self.kinds)
        )
        calls = symbol if callee == 1 and mention == 3 and _is_function(named, self.kinds) else 0
        length = len(named.spelling.split("<")[0].encode())
        found = [at + length, symbol, calls, symbol if is_type else 0, mention]
        before = self.mentions[path].get(at)
        # Two cursors on one name, such as a type and its constructor: definitions first, then what calls.
        if before is None or (found[4], -found[2], found[1]) < (before[4], -before[2], before[1]):
            self.mentions[path][at] = found

    def _construction(self, cursor: Any, path: str) -> None:
        """Record `Name(...)` and `Name{...}`: the type's name calls the constructor."""
        target = cursor.referenced
        if target is None or _kind_of(target) != self.kinds.CONSTRUCTOR:
            return
        at = self._named_at(cursor, path, target.spelling.split("<")[0])
        if at is not None and at in self.mentions[path] and self.mentions[path][at][2] == 0:
            self.mentions[path][at][2] = self._id(target)
        elif at is not None:
            symbol = self._id(target)
            self.mentions[path][at] = [at + len(target.spelling.split("<")[0].encode()), symbol, symbol, 0, 3]

    def _named_at(self, cursor: Any, path: str, name: str) -> int | None:
        """Return the offset of the name in the file; None where other text is there, such as a macro that expands to it."""
        location = cursor.location
        if self._path(location) != path or not name:
            return None
        content = self._content(path)
        at = location.offset
        spelled = name.encode()
        if content[at : at + len(spelled)] != spelled:
            return None
        after = content[at + len(spelled) : at + len(spelled) + 1]
        return None if spelled[-1:].isalnum() and (after.isalnum() or after == b"_") else at

    def _id(self, named: Any) -> int:
        name = named.get_usr() or named.spelling
        if name not in self.ids:
            self.ids[name] = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") or 1
        return self.ids[name]

    def _path(self, location: Any) -> str | None:
        file = location.file
        return None if file is None else _inside(file.name)

    def _content(self, path: str) -> bytes:
        if path not in self.contents:
            with open(path, "rb") as file:
                self.contents[path] = file.read()
        return self.contents[path]

    def _inactive(self, path: str) -> list[list[int]]:
        """Return the byte ranges that the preprocessor skipped."""
        file = self.unit.get_file(path)
        return sorted([start, end] for start, end in _skipped(self.cindex, self.unit, file))


@cache
def _inside(path: str) -> str:
    """Return the path relative to the tree, if it is inside: a precompiled preamble makes its paths absolute."""
    here = os.getcwd() + "/"
    return os.path.normpath(path.removeprefix(here))


def _kind_of(cursor: Any) -> Any:
    """Return the kind of a cursor; None for a kind that the Python binding does not have."""
    try:
        return cursor.kind
    except ValueError:
        return None


def _is_type(named: Any, kinds: Any) -> bool:
    return _kind_of(named) not in (kinds.NAMESPACE, kinds.NAMESPACE_ALIAS, kinds.FUNCTION_TEMPLATE)


def _is_function(named: Any, kinds: Any) -> bool:
    return _kind_of(named) in (
        kinds.FUNCTION_DECL,
        kinds.CXX_METHOD,
        kinds.CONSTRUCTOR,
        kinds.DESTRUCTOR,
        kinds.CONVERSION_FUNCTION,
        kinds.FUNCTION_TEMPLATE,
    )


def _skipped(cindex: Any, unit: Any, file: Any) -> Iterator[tuple[int, int]]:
    class Ranges(ctypes.Structure):
        _fields_ = (("count", ctypes.c_uint), ("ranges", ctypes.POINTER(cindex.SourceRange)))

    function = cindex.conf.lib.clang_getSkippedRanges
    function.argtypes, function.restype = [cindex.TranslationUnit, cindex.File], ctypes.POINTER(Ranges)
    found = function(unit, file)
    for number in range(found.contents.count):
        extent = found.contents.ranges[number]
        yield extent.start.offset, extent.end.offset


if __name__ == "__main__":
    sys.exit(main())
