"""Restriction: words of a kept text that its license does not explain, and the search for them.

The words are in `restrictions.toml` with their sources. The gate on what is stored searches with them, and nothing here is shared
with the rule that decides licenses, so that neither hides a mistake of the other: it reads no sentences or license texts, but the
characters of the whole document. What a string of the program says is shown to its users and says nothing of the file, unless what
it is for has the name of a license. A license that a person has concluded explains every word.
"""

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import re2

from pipeline.core.records import LicenseEvidence
from pipeline.lexing.languages import is_source

if TYPE_CHECKING:
    import pyarrow as pa

RESTRICTIONS_FILE = "restrictions.toml"
_MAX_MEMORY = 64 << 20
"""Bytes of the automaton of one expression. Beyond it the search is slower, and linear all the same."""
_INHERITED = frozenset({LicenseEvidence.LICENSE_TEXT, LicenseEvidence.PACKAGE})
"""Evidence of documents that state no license themselves."""
_LICENSE_NAME = re2.compile(
    r"(?i)(?:licen[cs]es?|copying|unlicen[cs]e|notice|copyright)(?:[-_. ](?:[^.]*|.*\.(?:txt|md|rst)))?"
)
_SIGNS = " \t\r\f\v*/#;|!%\"'`\\<>{}_=-"
"""Signs that comments begin and end their lines with."""
_IS_SIGN = np.isin(np.arange(256), list(_SIGNS.encode()))
_BOUND = re.compile(r"\{(\d+),\d+\}")
_QUOTED = re.compile(
    r"""//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)|R"[^()\\\s"]{0,16}\(|"(?:[^"\\\n]|\\(?s:.))*+"?|'(?:[^'\\\n]|\\[^\n]){1,4}'"""
)
"""A comment, the beginning of a raw literal, or a literal: whichever begins first has the other signs in it."""
_STATES = re2.compile(r"(?i)(?:licen[cs]e|copyright)\w*[\]\[ \t\n]*(?:=[ \t\n]*|[({,][ \t\n]*)+(?:\w+\([ \t\n]*)?$")
"""Words before a literal that states the license of the file: `MODULE_LICENSE(`, `const char license[] =`."""
_NUM_BEFORE = 80
_GROUP = re.compile(r"\{([a-z]\w*)\}")
_WIDTHLESS = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
"""Characters that a reader does not see, within words."""
_DIVIDED = re2.compile(r"([a-z])-\n[ \t]*(?://+|\*+|#+)?[ \t]*([a-z]+)")
"""A word that a hyphen divides at a line's end. It is put together before the line end, so that lines keep their numbers."""


@dataclass(frozen=True)
class Restriction:
    """A finding: the name of the words, and the line from 1 on which they begin."""

    name: str
    line: int


@dataclass(frozen=True)
class RestrictionWords:
    """An entry of the table: the expression, and the pieces of an SPDX expression that explain what it finds.

    `is_notice` says that the words are those of a notice only at the margin: within code they speak of the program.
    """

    name: str
    words: Any
    explained: tuple[str, ...]
    is_notice: bool
    unbounded: Any
    """The same without upper bounds of repetitions: faster, as it counts none, and true wherever `words` is."""

    def is_explained(self, expression: str) -> bool:
        """Return whether a license expression says what the words say."""
        return any(piece in expression.lower() for piece in self.explained)


def find_restrictions(text: str, expression: str, *, is_code: bool = True) -> list[Restriction]:
    """Return the restrictions of a text that a license expression does not explain, sorted by line and name."""
    text = text if text.isascii() else _WIDTHLESS.sub("", text)
    content, _ = _plain_lines(_lowered(text))
    # One search for all expressions would be slower than one for each: its automaton outgrows every bound.
    table = load_restrictions()
    possible = (table[index] for index in sorted(_literals().Match(content, potential=True) or ()))
    entries = [entry for entry in possible if not entry.is_explained(expression) and entry.unbounded.search(content)]
    if not entries:
        return []
    said = _without_literals(text) if is_code else text
    found = set(_found(said, [entry for entry in entries if not entry.is_notice]))
    if notices := [entry for entry in entries if entry.is_notice]:
        found |= set(_found(_at_the_margin(said) if is_code else said, notices))
    return sorted(found, key=lambda each: (each.line, each.name))


def _found(text: str, entries: list[RestrictionWords]) -> Iterator[Restriction]:
    """Yield what entries find in a text."""
    content, lengths = _plain_lines(_lowered(text))
    plain = load_harmless().sub(lambda match: "." * len(match[0]), content.decode("utf-8", "surrogatepass"))
    starts = list(accumulate((int(length) + bool(length) for length in lengths), initial=0))
    for entry in entries:
        for match in entry.words.finditer(plain):
            yield Restriction(entry.name, bisect_right(starts, match.start()))


def _lowered(text: str) -> str:
    return _DIVIDED.sub(r"\1\2\n", text.lower()) if "-\n" in text else text.lower()


def _without_literals(text: str) -> str:
    """Return a text with nothing but line ends in the literals of its code, but for those that state a license."""
    parts: list[str] = []
    at = 0
    is_kept = False
    while match := _QUOTED.search(text, at):
        start, stop = match.span()
        if match[0].startswith("R"):
            end = text.find(f'){match[0][2:-1]}"', stop)
            stop = len(text) if end < 0 else end + len(match[0]) - 1
        between = text[at:start]
        parts.append(between)
        is_literal = match[0][0] != "/" and (match[0][0] != '"' or (stop > start + 1 and text[stop - 1] == '"'))
        if not is_literal:
            parts.append(match[0])
        else:
            is_kept = is_kept if between.isspace() else bool(_STATES.search(text[max(0, start - _NUM_BEFORE) : start]))
            parts.append(text[start:stop] if is_kept else '""' + "\n" * text.count("\n", start, stop))
        at = stop
    return "".join((*parts, text[at:]))


def _at_the_margin(text: str) -> str:
    """Return the lines of a text that begin without a blank, and those of comments that began so; the others are empty."""
    lines = []
    is_inside = is_shown = False
    for line in text.split("\n"):
        if not is_inside:
            is_shown = not line[:1].isspace()
        lines.append(line if is_shown else "")
        opened, closed = line.rfind("/*"), line.rfind("*/")
        is_inside = opened > closed if opened >= 0 else is_inside and closed < 0
    return "\n".join(lines)


def _plain_lines(text: str) -> tuple[bytes, Iterable[int]]:
    """Return the lines without signs at both ends and words one blank apart, those that are not empty; and the lengths of all."""
    if not text.isascii():
        lines = [" ".join(line.strip(_SIGNS).split()) for line in text.split("\n")]
        return "\n".join(filter(None, lines)).encode("utf-8", "surrogatepass"), map(len, lines)
    from pipeline.stages.normalize.text_gates.plain_lines import write_plain_lines  # with the first text

    data = np.frombuffer(text.encode(), np.uint8)
    plain, lengths = np.empty(len(data), np.uint8), np.empty(len(data) + 1, np.int64)
    num_bytes, num_lines = write_plain_lines(data, _IS_SIGN, plain, lengths)
    return plain[:num_bytes].tobytes(), lengths[:num_lines]


def restrictions_left(documents: "pa.Table", files: "pa.Table") -> Iterator[tuple[str, Restriction]]:
    """Yield the restrictions that no license explains, each with the path where its words are.

    The words are of a document itself; or of all license texts in the nearest folder above it that has any, where the document
    states no license of its own. `files` are those that the documents were made of. What a person decided explains everything.
    """
    texts = _license_texts(files)
    columns = (documents[name].to_pylist() for name in ("path", "license", "license_evidence"))
    inherited: set[tuple[str, str]] = set()
    for path, expression, evidence, text in zip(*columns, documents["text"], strict=True):
        if evidence == LicenseEvidence.DECISION:
            continue
        yield from ((path, found) for found in find_restrictions(text.as_py(), expression))
        folder = _folder_with_text(path, texts) if evidence in _INHERITED else None
        if folder is not None:
            inherited.add((folder, expression))
    for folder, expression in sorted(inherited):
        found = [(path, find_restrictions(text, expression, is_code=False)) for path, text in texts[folder]]
        if all(restrictions for _, restrictions in found):
            yield from ((path, restrictions[0]) for path, restrictions in found)


def _license_texts(files: "pa.Table") -> dict[str, list[tuple[str, str]]]:
    """Return paths and contents of the license texts in each folder, in the order of paths."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path, content in sorted(zip(files["path"].to_pylist(), files["content"], strict=True), key=itemgetter(0)):
        folder, _, name = path.rpartition("/")
        if _LICENSE_NAME.fullmatch(name) and not is_source(name):  # `license.c` is code, and states its own
            found.setdefault(folder, []).append((path, content.as_py().decode("utf-8", "replace")))
    return found


def _folder_with_text(path: str, texts: Mapping[str, object]) -> str | None:
    folder = path
    while folder:
        folder = folder.rpartition("/")[0]
        if folder in texts:
            return folder
    return None


@cache
def load_restrictions() -> list[RestrictionWords]:
    """Return the table, in its order."""
    return [
        RestrictionWords(
            name=entry["name"],
            words=_words("|".join(entry["words"])),
            explained=tuple(entry.get("explained", ())),
            is_notice=entry.get("is_notice", False),
            unbounded=_words(_BOUND.sub(r"{\1,}", "|".join(entry["words"]))),
        )
        for entry in _read_table()["restriction"]
    ]


@cache
def _literals() -> Any:
    """Return the filter of RE2 for the table: it says, in one pass for literals, which expressions a text may match."""
    possible = re2.Filter()
    for entry in load_restrictions():
        possible.Add(entry.words.pattern, entry.words.options)
    possible.Compile()
    return possible


@cache
def load_harmless() -> Any:
    """Return the search for the words of licenses that forbid nothing but their names' use."""
    return _words("|".join(f"(?:{words})" for words in _read_table()["harmless"]))


def _words(expression: str) -> Any:
    """Compile an expression of the table: a blank is also a line end, and `{name}` stands for a group of words."""
    options = re2.Options()
    options.max_mem = _MAX_MEMORY
    groups = _read_table()["groups"]
    while (named := _GROUP.sub(lambda match: groups[match[1]], expression)) != expression:
        expression = named
    return re2.compile("(?m)" + expression.replace(" ", r"\s"), options)


@cache
def _read_table() -> dict[str, Any]:
    return tomllib.loads(
        files("pipeline.stages.normalize.text_gates").joinpath(RESTRICTIONS_FILE).read_text(encoding="utf-8")
    )
