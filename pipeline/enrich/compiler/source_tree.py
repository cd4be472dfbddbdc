"""The tree that is compiled: its files below `source/`, what configuring made below `build/`, and where the two once lay.

It is laid out in a scratch folder, and a compiler sees it through a file system of its own, in which there is nothing else
but the headers of the tool chain: no device, no pipe, no file of the machine can be included, by whatever name.
"""

import errno
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from posixpath import isabs, join, normpath

from pipeline.core.errors import StageError

SOURCE = "source"
"""First part of the path of a file of the source."""
BUILD = "build"
"""First part of the path of a file that configuring made."""
OVERLAY = "overlay.yaml"
"""The compiler's file system, in the scratch folder."""

_PRECOMPILED = frozenset({".gch", ".pch", ".pcm", ".ast"})
"""Never laid out: clang loads one that lies beside a header that `-include` names, and trusts what is in it."""
_LOCAL = re.compile(
    r"(?<![\w./<>+-])(?:~|[A-Za-z]:[\\/]|file:/)?/?(?:(?<=/)|(?<=\\)|(?<=~))[\w.@+-]+(?:[\\/][^\s\"'<>;,]*)?"
    r"|(?<!\\)\\{2,}+\w[^\s\"'<>;,]*|(?:\.\./)+[^\s\"'<>;,]*|(?<![\w.+-])[\w.+-]+@[\w-]+\.\w[\w.-]*"
)
_PERSONAL = re.compile(
    r"\w*(?:USER|USERNAME|HOST|HOSTNAME|HOME|EMAIL|BUILT_BY|PASSWORD|TOKEN|SECRET)\b(?:=|$)", re.IGNORECASE
)
_ELSEWHERE = "elsewhere"
_OPTIONS = "|".join(rf"(?<=[^\w./~+-]-{name})" for name in ("[A-Za-z]", "isystem", "iquote", "include", "imacros"))
_BEFORE_PLACE = rf"(?:(?<![\w./~+-])|(?<=:/)|(?<=://)|{_OPTIONS})"
_BEHIND_PLACE = r"(?![\w.@+-])"
"""What stands around a whole path: neither is a part of a name."""
_MISNAMED = frozenset({errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST})
"""A name that is too long, or that a folder or a file above it has."""
_ESCAPED = re.compile("[\x7f-\x9f\ufeff\ufffe\uffff]")
"""Signs that YAML wants escaped and JSON does not."""


@dataclass(frozen=True)
class Tree:
    """The files below `source/` and `build/`, and where those two lay on the machine that made the database."""

    files: frozenset[str]
    places: tuple[tuple[str, str], ...]
    """(absolute folder, `source` or `build`), the deepest first."""
    texts: Mapping[str, bytes]
    """What response files hold, by path."""
    users: frozenset[str] = frozenset()
    """Users whose folders the database names."""
    generated: frozenset[str] = frozenset()
    """The files that configuring made."""

    def inside(self, directory: str, path: str) -> str | None:
        """The path inside the tree; None where it leads elsewhere."""
        absolute = normpath(join(directory, path))
        for place, folder in self.places:
            if absolute == place or absolute.startswith(place.rstrip("/") + "/"):
                return normpath(join(folder, absolute[len(place.rstrip("/")) + 1 :]))
        return None

    def scrubbed(self, value: str) -> str | None:
        """A definition with the paths of the tree inside it, and none of the machine; None where it names who built it."""
        if _PERSONAL.match(value):
            return None
        for place, folder in self.places:
            if len(place) > 1:
                value = re.sub(_BEFORE_PLACE + re.escape(place) + _BEHIND_PLACE, folder, value)
        value = _LOCAL.sub(_ELSEWHERE, value)
        for user in sorted(self.users):
            value = re.sub(rf"\b{re.escape(user)}\b", _ELSEWHERE, value)
        return value


def lay_out(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files below a folder, all of them plain. One whose name no file system can hold is missing then.

    Raises StageError where a file cannot be written whole.
    """
    for top in (SOURCE, BUILD):
        (folder / top).mkdir()
    for path, content in sorted(files.items()):
        if _PRECOMPILED.isdisjoint(PurePosixPath(part).suffix.lower() for part in PurePosixPath(path).parts):
            try:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(content)
            except OSError as error:
                if error.errno not in _MISNAMED:
                    raise _not_written(folder, path, error) from None


def _not_written(folder: Path, path: str, error: OSError) -> StageError:
    return StageError(
        f"laying out the tree to compile below {folder}",
        f"{path}: {os.strerror(error.errno or 0)}",
        "room for all files of the source",
        "Make room there, or set TMPDIR to a folder with more.",
    )


def write_overlay(folder: Path, places: Sequence[tuple[str, str]], tool_chain: Path) -> Path:
    """Describe the compiler's file system: the tree at its folder and where it once lay, and the tool chain's headers."""
    roots = {str(tool_chain): str(tool_chain), **{str(folder / top): str(folder / top) for top in (SOURCE, BUILD)}}
    for place, top in places:
        if isabs(place) and not any(_overlap(place, root) for root in roots):
            roots[place] = str(folder / top)
    overlay = folder / OVERLAY
    description = {
        "version": 0,
        "case-sensitive": True,
        "use-external-names": True,
        "redirecting-with": "redirect-only",
        "roots": [
            {"type": "directory-remap", "name": name, "external-contents": contents} for name, contents in roots.items()
        ],
    }
    text = _ESCAPED.sub(lambda sign: f"\\u{ord(sign[0]):04x}", json.dumps(description, ensure_ascii=False))
    overlay.write_text(text, encoding="utf-8", errors="surrogateescape")
    return overlay


def _overlap(place: str, root: str) -> bool:
    first, second = sorted((place.rstrip("/") + "/", root.rstrip("/") + "/"), key=len)
    return second.startswith(first)


def files_below(folder: Path) -> Iterator[str]:
    """The paths of the plain files of a tree that was laid out, in order."""
    for top in (SOURCE, BUILD):
        yield from sorted(
            str(path.relative_to(folder))
            for path in (folder / top).rglob("*")
            if path.is_file() and not path.is_symlink()
        )
