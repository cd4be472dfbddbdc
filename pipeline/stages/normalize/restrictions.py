"""Restriction: words of a kept text that its license does not explain, and the search for them.

The words are in `restrictions.toml` with their sources. The gate on what is stored searches with them, and nothing here is shared
with the rule that decides licenses, so that neither hides a mistake of the other: it reads no comments, sentences or license texts,
but the characters of the whole document. A license that a person has concluded explains every word.
"""

import tomllib
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import re2

if TYPE_CHECKING:
    import pyarrow as pa

RESTRICTIONS_FILE = "restrictions.toml"
_MAX_MEMORY = 64 << 20
"""Bytes of the automaton of one expression. Beyond it the search is slower, and linear all the same."""
_SIGNS = " \t\r\f\v*/#;|!%\"'`\\<>{}_=-"
"""Signs that comments begin and end their lines with."""


@dataclass(frozen=True)
class Restriction:
    """A finding: the name of the words, and the line from 1 on which they begin."""

    name: str
    line: int


@dataclass(frozen=True)
class RestrictionWords:
    """An entry of the table: the expression, and the pieces of an SPDX expression that explain what it finds."""

    name: str
    words: Any
    explained: tuple[str, ...]

    def is_explained(self, expression: str) -> bool:
        """Return whether a license expression says what the words say."""
        return any(piece in expression.lower() for piece in self.explained)


def find_restrictions(text: str, expression: str) -> list[Restriction]:
    """Return the restrictions of a text that a license expression does not explain, sorted by line and name."""
    lines = [" ".join(line.strip(_SIGNS).split()) for line in text.lower().split("\n")]
    plain = " ".join(filter(None, lines))
    # One search for all expressions would be slower than one for each: its automaton outgrows every bound.
    searched = (entry for entry in load_restrictions() if not entry.is_explained(expression))
    entries = [entry for entry in searched if entry.words.search(plain)]
    if not entries:
        return []
    plain = load_harmless().sub(lambda match: "." * len(match[0]), plain)
    starts = list(accumulate((len(line) + bool(line) for line in lines), initial=0))
    found = {
        Restriction(entry.name, bisect_right(starts, match.start()))
        for entry in entries
        for match in entry.words.finditer(plain)
    }
    return sorted(found, key=lambda each: (each.line, each.name))


def restrictions_in_rows(documents: "pa.Table") -> Iterator[tuple[str, Restriction]]:
    """Yield path and finding of the documents whose words their license does not explain, but for those that a person decided."""
    columns = (documents[name].to_pylist() for name in ("path", "license", "license_evidence"))
    for path, expression, evidence, text in zip(*columns, documents["text"], strict=True):
        if evidence != "decision":
            yield from ((path, found) for found in find_restrictions(text.as_py(), expression))


@cache
def load_restrictions() -> list[RestrictionWords]:
    """Return the table, in its order."""
    options = re2.Options()
    options.max_mem = _MAX_MEMORY
    return [
        RestrictionWords(entry["name"], re2.compile(entry["words"], options), tuple(entry.get("explained", ())))
        for entry in _read_table()["restriction"]
    ]


@cache
def load_harmless() -> Any:
    """Return the search for the words of licenses that forbid nothing but their names' use."""
    return re2.compile("|".join(f"(?:{words})" for words in _read_table()["harmless"]))


@cache
def _read_table() -> dict[str, Any]:
    return tomllib.loads(files("pipeline.stages.normalize").joinpath(RESTRICTIONS_FILE).read_text(encoding="utf-8"))
