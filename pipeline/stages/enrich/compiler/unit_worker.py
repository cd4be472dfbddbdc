"""Script that compiles one unit and prints the compiler's report as JSON. It is a separate process: a crash loses one unit.

Run as a script with a job on stdin:

    {"unit": path, "arguments": [...], "files": [paths to report on], "with_bodies": bool, "cpu_seconds": n, "memory_bytes": n}

in the folder that the paths are relative to. The arguments name the overlay file system.
With `with_bodies` the bodies of functions in headers are read too.
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
from pathlib import Path
from typing import Any

_MAX_WRITTEN_BYTES = 512 << 20
"""Limit for each file that is written: the report, and the compiler's temporary files."""
_PR_SET_PDEATHSIG = 1
_MAX_DEPTH = 400
"""Cursors nested deeper are skipped, as in an expression of a hundred thousand brackets."""


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

    print(json.dumps(Unit(cindex, job).report()), flush=True)
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
        if not job["with_bodies"]:
            options |= 0x04 | 0x40 | 0x100 | 0x800  # skip the bodies of functions in what the unit includes first
        self.unit = cindex.Index.create().parse(job["unit"], args=job["arguments"], options=options)
        self.contents: dict[str, bytes] = {}
        self.ids: dict[str, int] = {}
        self.mentions: dict[str, dict[int, list[int]]] = {path: {} for path in self.files}

    def report(self) -> dict[str, Any]:
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
            "files": {path: self._file(path) for path in sorted(self.mentions)},
        }

    def _file(self, path: str) -> dict[str, Any]:
        found = self.mentions[path]
        inactive = sorted(_skipped(self.cindex, self.unit, path))
        return {"mentions": [[start, *found[start]] for start in sorted(found)], "inactive": inactive}

    def _reads(self) -> set[str]:
        """Return all files that were read. `get_includes` omits those of `-include` where the preamble is precompiled."""
        found: set[str] = set()

        def visit(file: Any, location: Any, depth: int, _: Any) -> None:
            found.add(_inside(self.cindex.File(file).name))

        visitor = self.cindex.callbacks["translation_unit_includes"](visit)
        self.cindex.conf.lib.clang_getInclusions(self.unit, visitor, None)
        return found

    def _walk(self, top: Any, path: str) -> None:
        pending = [(top, 0, False)]
        while pending:
            cursor, depth, is_callee = pending.pop()
            self._mention(cursor, path, is_callee)
            if depth < _MAX_DEPTH:
                kind = _kind_of(cursor)
                is_first_callee = kind == self.kinds.CALL_EXPR or (is_callee and kind == self.kinds.UNEXPOSED_EXPR)
                for number, child in enumerate(cursor.get_children()):
                    pending.append((child, depth + 1, is_first_callee and number == 0))

    def _mention(self, cursor: Any, path: str, is_callee: bool) -> None:
        """Record what a cursor names, if its name is in the file."""
        kind, kinds = _kind_of(cursor), self.kinds
        if kind is None:
            return
        is_declaration, is_call = kind.is_declaration(), kind == kinds.CALL_EXPR
        if not (
            is_declaration or is_call or kind.is_reference() or kind in (kinds.DECL_REF_EXPR, kinds.MEMBER_REF_EXPR)
        ):
            return
        named = cursor if is_declaration else cursor.referenced
        if named is None or (is_call and _kind_of(named) != kinds.CONSTRUCTOR):
            return
        start, end = self._range(cursor, path, named.spelling.split("<")[0].encode())
        if start == end:
            return
        symbol, before = self._id(named), self.mentions[path].get(start)
        if is_call:  # `Name(...)` and `Name{...}`: the type's name calls the constructor
            found = [end, symbol, symbol, 0, 3] if before is None or before[2] else [*before[:2], symbol, *before[3:]]
        elif is_declaration:
            found = [end, symbol, 0, 0, 1 if cursor.is_definition() else 2]
        else:
            is_type = kind in (kinds.TYPE_REF, kinds.TEMPLATE_REF) and _is_type(named, kinds)
            calls = is_callee and _is_function(named, kinds)
            found = [end, symbol, symbol if calls else 0, symbol if is_type else 0, 3]
        # Two cursors on one name, such as a type and its constructor: definitions first, then what calls.
        if is_call or before is None or (found[4], -found[2], found[1]) < (before[4], -before[2], before[1]):
            self.mentions[path][start] = found

    def _range(self, cursor: Any, path: str, name: bytes) -> tuple[int, int]:
        """Return the bytes of the name in the file; none where other text is there, such as a macro that expands to it."""
        location = cursor.location
        if not name or self._path(location) != path:
            return 0, 0
        content, start = self._content(path), location.offset
        end = start + len(name)
        after = content[end : end + 1]
        is_part = name[-1:].isalnum() and (after.isalnum() or after == b"_")
        return (0, 0) if content[start:end] != name or is_part else (start, end)

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
            self.contents[path] = Path(path).read_bytes()
        return self.contents[path]


@cache
def _inside(path: str) -> str:
    """Return the path relative to the tree, if it is inside: a precompiled preamble makes its paths absolute."""
    return os.path.normpath(path.removeprefix(f"{os.getcwd()}/"))


def _kind_of(cursor: Any) -> Any:
    """Return the kind of a cursor; None for a kind that the Python binding does not have."""
    try:
        return cursor.kind
    except ValueError:
        return None


def _is_type(named: Any, kinds: Any) -> bool:
    return _kind_of(named) not in (kinds.NAMESPACE, kinds.NAMESPACE_ALIAS, kinds.FUNCTION_TEMPLATE)


def _is_function(named: Any, kinds: Any) -> bool:
    methods = (kinds.CXX_METHOD, kinds.CONSTRUCTOR, kinds.DESTRUCTOR, kinds.CONVERSION_FUNCTION)
    return _kind_of(named) in (kinds.FUNCTION_DECL, kinds.FUNCTION_TEMPLATE, *methods)


def _skipped(cindex: Any, unit: Any, path: str) -> Iterator[list[int]]:
    """Yield the byte ranges of a file that the preprocessor skipped."""

    class Ranges(ctypes.Structure):
        _fields_ = (("count", ctypes.c_uint), ("ranges", ctypes.POINTER(cindex.SourceRange)))

    function = cindex.conf.lib.clang_getSkippedRanges
    function.argtypes, function.restype = [cindex.TranslationUnit, cindex.File], ctypes.POINTER(Ranges)
    found = function(unit, unit.get_file(path)).contents
    for extent in found.ranges[: found.count]:
        yield [extent.start.offset, extent.end.offset]


if __name__ == "__main__":
    sys.exit(main())
