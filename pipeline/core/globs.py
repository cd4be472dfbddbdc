"""Globs of paths, as pins write them: `*` and `?` stay within a folder, `**` stands for any folders, or none."""

import re
from collections.abc import Iterable


def any_of(globs: Iterable[str]) -> re.Pattern[str]:
    """An expression that matches a whole path if one of the globs does."""
    return re.compile("|".join(f"(?:{_expression(glob)})" for glob in globs), re.DOTALL)


def _expression(glob: str) -> str:
    *folders, last = glob.split("/")
    above = "".join("(?:[^/]+/)*" if folder == "**" else _segment(folder) + "/" for folder in folders)
    return above + (".+" if last == "**" else _segment(last))


def _segment(segment: str) -> str:
    return "".join({"*": "[^/]*", "?": "[^/]"}.get(character, re.escape(character)) for character in segment)
