"""Oracle of redactions: how much of a source placeholders stand for, and whether that can be what they say and no more.

It shares no code with the scrubber: lines of the stored text are laid over those of its file, as redacting keeps their number.
What is not UTF-8, and a line that cannot be laid over its own, are not judged.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import re2

from pipeline.build.oracles.audited_files import is_code
from pipeline.build.oracles.code_marks import CodeMarks, marks_of
from pipeline.contracts.part import Tables
from pipeline.core.table_names import DOCUMENTS, FILES

_COLUMNS = ("source", "path", "text", "num_bytes", "num_redactions")
_SMALLEST_SOURCE = 16_384
"""Bytes as a share of which the redactions of a smaller source count: one address is much of a small file."""
_PLACEHOLDER = re2.compile(rb"<redacted-([a-z-]+)-\d+>")
_PLACEHOLDERS = re2.compile(rb"(?:<redacted-[a-z-]+-\d+>)+")
"""Placeholders without anything between them: what each of them stands for alone cannot be said."""
_SIGNS = {
    b"email": re2.compile(rb"(?i)@|(?:^|[^a-z])at(?:$|[^a-z])|40|64|100|commat"),
    b"network-address": re2.compile(rb"\d|:"),
    b"path": re2.compile(rb"[/\\~]"),
}
"""Word of a placeholder -> what is in all that it stands for. A secret, a name and what a program looks for have no such sign."""
_ENDS = {
    b"email": re2.compile(rb"(?s)\A[\w.%+\x80-\xff-](?:.*[A-Za-z0-9\x80-\xff])?\z"),
    b"network-address": re2.compile(rb"(?s)\A[0-9A-Fa-f:](?:.*[0-9A-Fa-f:])?\z"),
    b"path": re2.compile(rb"(?s)\A[\w/\\~](?:.*[^\s\"'`;,(){}\[\]<>])?\z"),
}
"""Word of a placeholder -> what begins and ends with signs that such a value may begin and end with."""
_BLANK = b" \t\v\f"
_ESCAPED = re2.compile(rb"\\.")
_DELIMITER = re2.compile(rb"R\"([^\s()\\\"]{0,16})\(|(\)[^\s()\\\"]{0,16}\")|\w'\w|(\\*)([\"'`])")
"""Ends of literals, of code or in one: groups of the ends of a raw one and of a quote; an apostrophe has none."""
_STATEMENT = re2.compile(
    rb"\s*(?:return|if|else|for|while|do|switch|case|break|continue|goto|int|void|char|bool|double|float|long|short|unsigned|signed|const"
    rb"|static|struct|class|enum|union|typedef|using|namespace|template|virtual|inline|auto|extern|throw|delete|sizeof)\b"
)
"""The beginning of what a program does: outside of comments, literals and directives it is no secret."""


@dataclass
class SourceRedactions:
    """The redactions of one source: the share of its bytes that were replaced, and the documents in which some cannot be right."""

    num_bytes: int = 0
    replaced: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Source and path of each document with placeholders -> how many bytes they stand for."""
    words: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    """Source and path of each -> how many placeholders there are of each word, such as `email`."""
    implausible: list[tuple[str, str]] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Bytes that were replaced among all of the files."""
        num_replaced = self.replaced.total()
        return num_replaced / max(self.num_bytes + num_replaced, _SMALLEST_SOURCE)

    def told(self, source: str, path: str) -> str:
        """Return how many bytes of a document were replaced, and by how many placeholders of each word."""
        words = sorted(self.words[source, path].items())
        return f"{self.replaced[source, path]:,} bytes: {', '.join(f'{number} of {word}' for word, number in words)}"


def add_redactions(found: SourceRedactions, cleaned: Tables, files: Tables, like_c: Collection[str]) -> None:
    """Compare the texts of a source, or of a shard of it, with its files, and add what was found.

    `like_c` are the suffixes of languages with the comments and literals of C.
    """
    rows = cleaned.table(DOCUMENTS, _COLUMNS).to_pylist()
    paths = {row["path"] for row in rows if row["num_redactions"]}
    table = files.table(FILES, ["path", "content"]) if paths else None
    stored = () if table is None else zip(table["path"], table["content"], strict=True)
    contents = {path.as_py(): content.as_py() for path, content in stored if path.as_py() in paths}
    for row in rows:
        found.num_bytes += row["num_bytes"]
        if row["path"] in contents:
            number, is_plausible = _compare(row, contents[row["path"]], like_c)
            name = row["source"], row["path"]
            found.replaced[name] += number
            found.words[name] = Counter(word.decode() for word in _PLACEHOLDER.findall(row["text"].encode()))
            found.implausible += [] if is_plausible else [name]


def _compare(row: Mapping[str, Any], content: bytes, like_c: Collection[str]) -> tuple[int, bool]:
    """Return how many bytes of a file were replaced, and whether all of it can be what the placeholders say."""
    text, raw = row["text"].encode(), content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if not _is_utf8(content):
        return 0, True
    marks = marks_of(text) if is_code(row["path"], like_c) else None
    num_new = len(_PLACEHOLDER.findall(text)) - len(_PLACEHOLDER.findall(raw))
    place, number, is_plausible = 0, 0, num_new <= row["num_redactions"]  # a later one may stand for an earlier one too
    for line, other in zip_longest(text.split(b"\n"), raw.split(b"\n"), fillvalue=b""):
        if line != other:
            number += max(0, len(other) - len(_PLACEHOLDER.sub(b"", line)))
            laid = _replaced(line, other, _end_by_signs) or _replaced(line, other, _first_end)
            is_plausible &= all(_is_plausible(each, place, marks) and not _is_torn(each, line) for each in laid)
            is_plausible &= not any(_ends_comment(each, text, place, marks) for each in laid)
        place += len(line) + 1
    return number, is_plausible


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


@dataclass(frozen=True)
class _Replaced:
    words: tuple[bytes, ...]
    start: int
    end: int
    value: bytes


_EndOf = Callable[[Collection[bytes], bytes, int, bytes], int]


def _replaced(line: bytes, other: bytes, end_of: _EndOf) -> list[_Replaced]:
    """Return what placeholders of a line stand for, and where they are in the line; nothing where the rest does not fit."""
    found: list[_Replaced] = []
    position, begin = 0, 0
    matches = list(_PLACEHOLDERS.finditer(line))
    for index, match in enumerate(matches):
        before = line[begin : match.start()]
        if other[position : position + len(before)] != before:
            return []
        position += len(before)
        last = index + 1 == len(matches)
        after = line[match.end() : None if last else matches[index + 1].start()]
        words = tuple(_PLACEHOLDER.findall(match[0]))
        end = len(other) - len(after) if last else end_of(words, other, position, after)
        if end < position or not other.startswith(after, end):
            return []
        found.append(_Replaced(words, match.start(), match.end(), other[position:end]))
        position, begin = end, match.end()
    return found


def _end_by_signs(words: Collection[bytes], other: bytes, position: int, after: bytes) -> int:
    """Return where the shortest stretch ends that has the signs of its words, which leaves most to those after it; -1 if none."""
    rest = other[position:]
    signs = [sign.search(rest) for word in words if (sign := _SIGNS.get(word))]
    return other.find(after, position + max([1, *(sign.end() for sign in signs if sign)]))


def _first_end(words: Collection[bytes], other: bytes, position: int, after: bytes) -> int:
    return other.find(after, position)


def _is_torn(replaced: _Replaced, line: bytes) -> bool:
    """Return whether a stretch takes something from what stands beside it: a quote without its other one, the mark of a comment,
    a blank, or, where the word has a known shape, a sign at an end of it that is of no such value.

    What a literal holds is its own: within one, quotes and marks are not torn, and blanks are not where the literal ends.
    """
    value = replaced.value
    if _PLACEHOLDER.search(value):
        return False  # the file had one
    ends = _ENDS.get(replaced.words[0]) if len(replaced.words) == 1 else None
    if ends is not None and not ends.search(value):
        return True
    is_odd = _ESCAPED.sub(b"", value).count(b'"') % 2 == 1
    has_mark = any(mark in value for mark in (b"/*", b"*/"))
    begins, stops = value.lstrip(_BLANK) != value, value.rstrip(_BLANK) != value
    if not (is_odd or has_mark or begins or stops):
        return False
    first, last = _literal_around(replaced, line)
    return last < 0 or (begins and first != replaced.start) or (stops and last != replaced.end)


def _ends_comment(replaced: _Replaced, text: bytes, place: int, marks: CodeMarks | None) -> bool:
    """Return whether a stretch took the end of the comment that it is in, which goes on after it now."""
    if b"*/" not in replaced.value or marks is None or _PLACEHOLDER.search(replaced.value):
        return False
    comments = (text[first : first + 2] for first, last in marks.comments if first <= place + replaced.start < last)
    return b"/*" in comments


def _literal_around(replaced: _Replaced, line: bytes) -> tuple[int, int]:
    """Return where what the innermost literal of a line holds begins and ends, if all of a stretch is in one; -1 and -1 if not."""
    opened: dict[bytes, int] = {}
    for match in filter(lambda each: each.lastindex, _DELIMITER.finditer(line)):
        closing = _closing(match, opened)
        if closing not in opened:
            opened[closing] = match.end()
            continue
        start, end = opened[closing], match.end() - len(closing)
        if start <= replaced.start and replaced.end <= end:
            value = replaced.value if len(closing) > 1 else _ESCAPED.sub(b"", replaced.value)
            return (-1, -1) if closing in value else (start, end)
        kinds = list(opened)
        opened = {kind: opened[kind] for kind in kinds[: kinds.index(closing)]}
    return -1, -1


def _closing(match: Any, opened: Collection[bytes]) -> bytes:
    """Return what closes the literal that a delimiter opens or closes. Of two backslashes before a quote both are text."""
    raw, end_of_raw, escape, quote = match.groups()
    if raw is not None:
        return b')%b"' % raw
    if end_of_raw is not None:
        return bytes(end_of_raw) if end_of_raw in opened else b'"'
    return bytes(match[0] if len(escape) % 2 else quote)


def _is_plausible(replaced: _Replaced, place: int, marks: CodeMarks | None) -> bool:
    """Return whether a stretch has the sign of its word, and is no statement of the code. `place` is where its line begins."""
    value, start = replaced.value, place + replaced.start
    if _PLACEHOLDER.search(value):
        return True  # the file had one
    is_statement = _STATEMENT.match(value) and marks is not None and marks.are_code(start, start + 1)
    signs = [sign for word in replaced.words if (sign := _SIGNS.get(word))]
    return not is_statement and all(sign.search(value) for sign in signs)
