"""Source tree to compile: its files below `source/`, generated files below `build/`, and the original folders of both.

It is written to a scratch folder. The compiler reads it through an overlay file system that holds nothing else but the
headers of the tool chain: no device, pipe or other file of the machine can be included, by any name.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from posixpath import isabs, join, normpath

from pipeline.core.errors import StageError
from pipeline.sandbox.sandbox_child import NAME_ERRORS
from pipeline.stages.enrich.compiler.definition_scrubber import scrub_definition

SOURCE = "source"
"""First part of the path of a file of the source."""
BUILD = "build"
"""First part of the path of a generated file."""

_PRECOMPILED = frozenset({".gch", ".pch", ".pcm", ".ast"})
"""Never written: clang loads such a file beside a header that `-include` names, and trusts its content."""
_ESCAPED = re.compile("[\x7f-\x9f\ufeff\ufffe\uffff]")
"""Characters that must be escaped in YAML, not in JSON."""


@dataclass(frozen=True)
class SourceTree:
    """The files below `source/` and `build/`, and the folders of both on the machine that made the database."""

    files: frozenset[str]
    places: tuple[tuple[str, str], ...]
    """(absolute folder, `source` or `build`), the deepest first."""
    texts: Mapping[str, bytes]
    """Content of response files, by path."""
    users: frozenset[str] = frozenset()
    """Users whose folders the database names."""
    generated: frozenset[str] = frozenset()
    """Files that cmake generated."""

    def inside(self, directory: str, path: str) -> str | None:
        """Return the path inside the tree; None outside it."""
        absolute = normpath(join(directory, path))
        for place, folder in self.places:
            if absolute == place or absolute.startswith(place.rstrip("/") + "/"):
                return normpath(join(folder, absolute[len(place.rstrip("/")) + 1 :]))
        return None

    def scrubbed(self, value: str) -> str | None:
        """Return a definition with paths of the tree and none of the machine; None where it names a user or a secret."""
        return scrub_definition(value, self.places, self.users)


def lay_out(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files below a folder, all as regular files. Skip a file whose name the file system does not allow.

    Raises StageError where a file cannot be written completely.
    """
    for top in (SOURCE, BUILD):
        (folder / top).mkdir()
    for path, content in sorted(files.items()):
        if _PRECOMPILED.isdisjoint(PurePosixPath(part).suffix.lower() for part in PurePosixPath(path).parts):
            try:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(content)
            except OSError as error:
                if error.errno not in NAME_ERRORS:
                    raise StageError(
                        f"laying out the tree to compile below {folder}",
                        f"{path}: {os.strerror(error.errno or 0)}",
                        "space for all files of the source",
                        "Free space there, or set TMPDIR to a folder with more.",
                    ) from None


def write_overlay(folder: Path, places: Sequence[tuple[str, str]], tool_chain: Path) -> Path:
    """Write the overlay file system: the tree at its folder and at its original one, and the tool chain's headers."""
    roots = {str(tool_chain): str(tool_chain), **{str(folder / top): str(folder / top) for top in (SOURCE, BUILD)}}
    for place, top in places:
        if isabs(place) and not any(_overlap(place, root) for root in roots):
            roots[place] = str(folder / top)
    overlay = folder / "overlay.yaml"
    kind = {"type": "directory-remap"}
    description = {
        "version": 0,
        "case-sensitive": True,
        "use-external-names": True,
        "redirecting-with": "redirect-only",
        "roots": [{**kind, "name": name, "external-contents": contents} for name, contents in roots.items()],
    }
    text = _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(description, ensure_ascii=False))
    overlay.write_text(text, encoding="utf-8", errors="surrogateescape")
    return overlay


def _overlap(place: str, root: str) -> bool:
    first, second = sorted((place.rstrip("/") + "/", root.rstrip("/") + "/"), key=len)
    return second.startswith(first)


def files_below(folder: Path) -> Iterator[str]:
    """Yield the sorted paths of the regular files of a written tree."""
    for top in (SOURCE, BUILD):
        files = (path for path in (folder / top).rglob("*") if path.is_file() and not path.is_symlink())
        yield from sorted(str(path.relative_to(folder)) for path in files)
