"""Globs of paths in pins: `*` and `?` match within a folder, `**` matches any number of folders."""

import re
from collections.abc import Iterable


def any_of(globs: Iterable[str]) -> re.Pattern[str]:
    """Compile an expression that matches a whole path if one of the globs does."""
    return re.compile("|".join(f"(?:{_expression(glob)})" for glob in globs), re.DOTALL)


def _expression(glob: str) -> str:
    *folders, last = glob.split("/")
    above = "".join("(?:[^/]+/)*" if folder == "**" else _segment(folder) + "/" for folder in folders)
    return above + (".+" if last == "**" else _segment(last))


def _segment(segment: str) -> str:
    return "".join({"*": "[^/]*", "?": "[^/]"}.get(character, re.escape(character)) for character in segment)
