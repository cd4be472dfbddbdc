"""Licences that a source states file by file, outside the files: REUSE.toml and its predecessor `.reuse/dep5`.

Source: REUSE specification 3.3 (annotations, precedence) and Debian's copyright format 1.0.
"""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath


class Precedence(StrEnum):
    """How an annotation stands to what the file says itself."""

    CLOSEST = "closest"
    AGGREGATE = "aggregate"
    OVERRIDE = "override"


@dataclass(frozen=True)
class Annotation:
    """One statement about the files under `folder` that match `pattern`.

    `where` is the file and number it was read from.
    """

    folder: str
    pattern: re.Pattern[str]
    precedence: Precedence
    expressions: tuple[str, ...]
    where: str

    def covers(self, path: str) -> bool:
        """Whether the path lies in the folder and matches the pattern."""
        if self.folder and not path.startswith(self.folder + "/"):
            return False
        return bool(self.pattern.fullmatch(path[len(self.folder) + 1 if self.folder else 0 :]))


def read_reuse_toml(path: str, content: bytes) -> list[Annotation]:
    """The annotations of a REUSE.toml, in its order.

    A broken file or entry states nothing: what it would have covered stays unclear.
    """
    try:
        entries = tomllib.loads(content.decode()).get("annotations", [])
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return []
    found = []
    for number, entry in enumerate(entries if isinstance(entries, list) else [], start=1):
        if not isinstance(entry, dict) or entry.get("precedence", "closest") not in set(Precedence):
            continue
        expressions = tuple(_as_strings(entry.get("SPDX-License-Identifier")))
        for glob in _as_strings(entry.get("path")) if expressions else ():
            precedence = Precedence(entry.get("precedence", "closest"))
            where = f"{path}: annotation {number}"
            found.append(Annotation(_folder_of(path), _reuse_glob(glob), precedence, expressions, where))
    return found


def read_dep5(path: str, content: bytes) -> list[Annotation]:
    """The `Files` stanzas of a `.reuse/dep5`, in its order. Globs cross folders, as Debian's do."""
    folder = _folder_of(_folder_of(path))
    found = []
    for number, stanza in enumerate(re.split(r"\n\s*\n", content.decode("utf-8", "replace")), start=1):
        fields = {
            match[1].lower(): " ".join(match[2].split())
            for match in re.finditer(r"^(\S+?):((?:.*\n?)(?:[ \t]+.*\n?)*)", stanza, re.M)
        }
        expression = fields.get("license", "")
        for glob in fields.get("files", "").split() if expression else ():
            where = f"{path}: stanza {number}"
            found.append(Annotation(folder, _dep5_glob(glob), Precedence.AGGREGATE, (_dep5_expression(stanza),), where))
    return found


def closest(annotations: Iterable[Annotation], path: str) -> Annotation | None:
    """The annotation that holds for a path: an override in the highest folder, else the last one in the deepest."""
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
    # The first line of the field is the short name, what follows is the licence text.
    match = re.search(r"^License:[ \t]*(.*)$", stanza, re.MULTILINE | re.IGNORECASE)
    return match[1].strip() if match else ""


def _reuse_glob(glob: str) -> re.Pattern[str]:
    """`*` stays inside a folder, `**` crosses folders, a backslash takes the next character literally."""
    pieces = {r"**": ".*", "*": "[^/]*"}
    parts = re.findall(r"\\.|\*\*|\*|[^\\*]+|\\", glob)
    return re.compile(
        "".join(pieces.get(part) or re.escape(part[1:] if part[:1] == "\\" and part[1:] else part) for part in parts)
    )


def _dep5_glob(glob: str) -> re.Pattern[str]:
    return re.compile(
        "".join({"*": ".*", "?": "."}.get(part, re.escape(part)) for part in re.findall(r"[*?]|[^*?]+", glob))
    )
