"""Globs of paths in pins: `*` and `?` match within a folder, `**` matches any number of folders."""

from collections.abc import Iterable

import re2

MAX_NUM_CHARACTERS = 10_000
"""Characters of all globs of a list: compiled they take a hundred times their bytes."""


class Globs:
    """A list of globs, compiled; a path takes time linear in its length. Raises ValueError for more than MAX_NUM_CHARACTERS."""

    def __init__(self, globs: Iterable[str]) -> None:
        named = list(globs)
        if sum(map(len, named)) > MAX_NUM_CHARACTERS:
            raise ValueError(f"globs of at most {MAX_NUM_CHARACTERS} characters together")
        self._pattern = re2.compile("(?s)" + "|".join(f"(?:{_expression(glob)})" for glob in named))

    def match_any(self, path: str) -> bool:
        """Return whether one of the globs matches the whole path. Bytes that are no UTF-8 count as one character each."""
        return self._pattern.fullmatch(path.encode("utf-8", "replace").decode()) is not None


def _expression(glob: str) -> str:
    *folders, last = glob.split("/")
    above = "".join("(?:[^/]+/)*" if folder == "**" else _segment(folder) + "/" for folder in folders)
    return above + (".+" if last == "**" else _segment(last))


def _segment(segment: str) -> str:
    return "".join({"*": "[^/]*", "?": "[^/]"}.get(character, re2.escape(character)) for character in segment)
