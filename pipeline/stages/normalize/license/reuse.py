"""Annotations of REUSE.toml and its predecessor `.reuse/dep5`, which state licenses of files outside the files.

Source: REUSE specification 3.3 (annotations, precedence) and Debian's copyright format 1.0.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

import re2

from pipeline.core.toml_text import parse_toml

MAX_ANNOTATIONS = 2_000
"""Globs of one file of annotations: each is compared with each path of a source."""
MAX_GLOB = 1_024
"""Characters of a glob: a compiled one takes a thousand times its bytes."""


class Precedence(StrEnum):
    """Precedence between an annotation and what the file states itself."""

    CLOSEST = "closest"
    AGGREGATE = "aggregate"
    OVERRIDE = "override"


@dataclass(frozen=True)
class Annotation:
    """One statement about the files under `folder` that match `pattern`.

    `where` is its file and number. `problem` is why it cannot be read; then it states nothing.
    """

    folder: str
    pattern: Any
    precedence: Precedence
    expressions: tuple[str, ...]
    where: str
    problem: str | None = None

    def covers(self, path: str) -> bool:
        """Return whether the path is in the folder and matches the pattern."""
        if self.folder and not path.startswith(self.folder + "/"):
            return False
        return bool(self.pattern.fullmatch(path[len(self.folder) + 1 if self.folder else 0 :]))


def read_reuse_toml(path: str, content: bytes) -> list[Annotation]:
    """Read the annotations of a REUSE.toml, in its order. A broken file or entry gives an annotation with its problem."""
    folder = _folder_of(path)
    try:
        entries = parse_toml(content).get("annotations", [])
    except ValueError as error:
        return [_broken(folder, path, f"is not TOML ({str(error)[:80]})")]
    if not isinstance(entries, list):
        return [_broken(folder, path, "has no list of annotations")]
    found = []
    for number, entry in enumerate(entries, start=1):
        found += _annotations_of(entry, folder, f"{path}: annotation {number}")
        if len(found) > MAX_ANNOTATIONS:
            return [_broken(folder, path, f"has more than {MAX_ANNOTATIONS} globs")]
    return found


def _annotations_of(entry: object, folder: str, where: str) -> list[Annotation]:
    """Return one annotation for each glob; none for an entry about copyright alone."""
    if not isinstance(entry, dict):
        return [_broken(folder, where, "is not a table")]
    globs = _as_strings(entry.get("path"))
    expressions = tuple(_as_strings(entry.get("SPDX-License-Identifier")))
    named = entry.get("precedence", "closest")
    problem = None
    if not isinstance(named, str) or named not in set(Precedence):
        problem = f"has the unknown precedence {str(named)[:60]!r}"
    elif not globs:
        problem = "has no path"
    elif not expressions and "SPDX-License-Identifier" in entry:
        problem = "has a license that is not a string"
    if any(len(glob) > MAX_GLOB for glob in globs):
        return [_broken(folder, where, f"has a path of more than {MAX_GLOB} characters")]
    globs = list(dict.fromkeys(globs))
    if len(globs) > MAX_ANNOTATIONS:
        return [_broken(folder, where, f"has more than {MAX_ANNOTATIONS} paths")]
    if problem:
        return [_broken(folder, where, problem, glob) for glob in globs or ["**"]]
    precedence = Precedence(str(named))
    return [Annotation(folder, _reuse_glob(glob), precedence, expressions, where) for glob in globs if expressions]


def _broken(folder: str, where: str, problem: str, glob: str = "**") -> Annotation:
    return Annotation(folder, _reuse_glob(glob), Precedence.CLOSEST, (), where, problem)


def read_dep5(path: str, content: bytes) -> list[Annotation]:
    """Read the `Files` stanzas of a `.reuse/dep5`, in its order. Globs cross folders, as Debian's do."""
    folder = _folder_of(_folder_of(path))
    found = []
    for number, stanza in enumerate(re.split(r"\n\s*\n", content.decode("utf-8", "replace")), start=1):
        fields = {
            match[1].lower(): " ".join(match[2].split())
            for match in re.finditer(r"^(\S+?):((?:.*\n?)(?:[ \t]+.*\n?)*)", stanza, re.M)
        }
        expression = fields.get("license", "")
        where = f"{path}: stanza {number}"
        globs = list(dict.fromkeys(fields.get("files", "").split())) if expression else []
        if any(len(glob) > MAX_GLOB for glob in globs):
            found.append(_broken(folder, where, f"has a path of more than {MAX_GLOB} characters"))
            continue
        stated = (_dep5_expression(stanza),)
        if len(found) + len(globs) > MAX_ANNOTATIONS:
            return [_broken(folder, path, f"has more than {MAX_ANNOTATIONS} globs")]
        found += [Annotation(folder, _dep5_glob(glob), Precedence.AGGREGATE, stated, where) for glob in globs]
    return found


def closest(annotations: Iterable[Annotation], path: str) -> Annotation | None:
    """Return the annotation that applies to a path: an override in the highest folder, else the last one in the deepest."""
    covering = [annotation for annotation in annotations if annotation.covers(path)]
    overriding = [annotation for annotation in covering if annotation.precedence is Precedence.OVERRIDE]
    if overriding:
        highest = min(annotation.folder.count("/") + bool(annotation.folder) for annotation in overriding)
        return [each for each in overriding if each.folder.count("/") + bool(each.folder) == highest][-1]
    if not covering:
        return None
    deepest = max(len(annotation.folder) for annotation in covering)
    return [annotation for annotation in covering if len(annotation.folder) == deepest][-1]


def _folder_of(path: str) -> str:
    parent = str(PurePosixPath(path).parent)
    return "" if parent == "." else parent


def _as_strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _dep5_expression(stanza: str) -> str:
    # The first line of the field is the short name, what follows is the license text.
    match = re.search(r"^License:[ \t]*(.*)$", stanza, re.MULTILINE | re.IGNORECASE)
    return match[1].strip() if match else ""


def _reuse_glob(glob: str) -> Any:
    """Compile a glob: `*` stays inside a folder, `**` crosses folders, a backslash takes the next character literally."""
    parts = re.findall(r"\\.|\*+|[^\\*]+|\\", glob)
    return _compiled(_reuse_piece(part) for part in parts)


def _reuse_piece(part: str) -> str:
    """Return a part of a glob as an expression. More stars than two are two."""
    if part.startswith("*"):
        return "[^/]*" if part == "*" else ".*"
    return str(re2.escape(part[1:] if part[:1] == "\\" and part[1:] else part))


def _dep5_glob(glob: str) -> Any:
    parts = re.findall(r"\*+|\?|[^*?]+", glob)
    return _compiled({"*": ".*", "?": "."}.get(part[:1], re2.escape(part)) for part in parts)


def _compiled(parts: Iterable[str]) -> Any:
    """Compile in RE2, whose time is linear in the path: a glob of many stars takes the standard library years."""
    return re2.compile("".join(parts))
