"""SPDX tags in a text, and the titles of license texts.

Source: SPDX specification 3.0.1 annex E (short-form identifiers), REUSE specification 3.3 (snippets, ignored regions).
"""

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from typing import Any

import re2

from pipeline.lexing.language_lexers import lexer_of
from pipeline.lexing.lexer import Lexer
from pipeline.stages.normalize.license.policy import LicenseClass, is_known_expression

_TAG_NAME = re2.compile(r"(?i)SPDX-License-Identifier[ \t]*:")
_COMMENT_END = re2.compile(r"[\s\pZ]*(?:(?:\*+/|-->|\s//\s).*|\*\)|#\}|\?>|\"\"\"|''')?(?:[\s\pZ*#/|]|\\[nrt])*\z")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_QUOTED = re2.compile(r"^[\"'<`\[{]+([^\"'<>`\[\]{}]*)[\"'>`\]}]+$")
_REFERENCE = re2.compile(
    r"(?i)(?:[ \t]*[(\[][ \t]*|[ \t]+(?:-{1,2}|[–—,;:#])[ \t]*|[ \t]*[;,][ \t]*|[ \t]+)"
    r"(?:please )?(?:see|cf\.?|refer to|read|full text|text|details)\b[^()]{0,80}[)\]]?$"
)
"""A reference to the text of the license after its identifier."""
_BLANK = re2.compile(r"[ \t]+(?:v(?:ersion)?[ \t]*)?(\d)")
_IGNORED = re.compile(r"REUSE-IgnoreStart[\s\S]*?(?:REUSE-IgnoreEnd|\Z)")
_TITLES = (
    (LicenseClass.REFUSED, re.compile(r"\bGNU (?:AFFERO )?GENERAL PUBLIC LICENSE\s+Version\b", re.IGNORECASE)),
    (LicenseClass.TAGGED, re.compile(r"\bGNU (?:LESSER|LIBRARY) GENERAL PUBLIC LICENSE\s+Version\b", re.IGNORECASE)),
)
_NUM_TITLE_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class Tag:
    """An SPDX tag: the expression as written, and its line number, from 1."""

    expression: str
    line: int


@dataclass(frozen=True, slots=True)
class LicenseClaim:
    """Title that claims at least `license_class`, and the words that were found."""

    license_class: LicenseClass
    words: str


def find_tags(path: str, text: str) -> list[Tag]:
    """Return all license tags of a text, also those of snippets, in order.

    Regions between REUSE-IgnoreStart and -End do not count, nor do raw string literals.
    """
    if not _TAG_NAME.search(text):
        return []
    # Blanked and not removed, so that line numbers stay.
    text = _IGNORED.sub(lambda match: "\n" * match[0].count("\n"), text) if "REUSE-IgnoreStart" in text else text
    found = []
    lexer = lexer_of(path)
    literals = lexer.raw_literals(text)
    starts = [start for start, _ in literals]
    line, counted = 1, 0
    for match in _tag_line(lexer).finditer(text):
        at = match.start(1)
        line, counted = line + text.count("\n", counted, at), at
        literal = bisect_right(starts, at) - 1
        if literal < 0 or at >= literals[literal][1]:
            expression = _COMMENT_END.sub("", _within_backticks(match[0], match[1]), count=1).removesuffix(".")
            found.append(Tag(_UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", _as_meant(expression)), line))
    return found


def _as_meant(expression: str) -> str:
    """Return an expression without what people write around identifiers, if only known ones are left; else as written.

    Quotes, brackets, `(see LICENSE)`, a slash for `OR`, and a blank for the hyphen of an identifier.
    """
    if is_known_expression(expression):
        return expression
    bare = _REFERENCE.sub("", _QUOTED.sub(r"\1", expression.strip())).strip()
    parts = [_BLANK.sub(r"-\1", part.strip()) for part in bare.split("/")]
    meant = " OR ".join(parts) if len(parts) > 1 else bare
    hyphenated = _BLANK.sub(r"-\1", bare)
    return next((each for each in (bare, hyphenated, meant) if each and is_known_expression(each)), expression)


def _within_backticks(tag: str, expression: str) -> str:
    """Return the expression of a tag, up to the backticks that close those before it: Markdown and reStructuredText quote so."""
    before = _TAG_NAME.split(tag, 1)[0]
    backticks = before[len(before.rstrip("`")) :]
    return expression.partition(backticks)[0] if backticks else expression


def find_title(license_text: str) -> LicenseClaim | None:
    """Return the copyleft title that a license text begins with, if any. Prose further down may speak of any license."""
    return _strictest(_TITLES, license_text[:_NUM_TITLE_CHARACTERS])


@cache
def _tag_line(lexer: Lexer) -> Any:
    """Return what a tag is: only punctuation precedes it in its line or comment. String literals and sentences are not tags."""
    openings = "|".join(re2.escape(marker) for marker in (*lexer.line_markers, lexer.block_markers[0]) if marker)
    # A word is one in any script, as a letter of a language before a tag makes it part of a sentence.
    return re2.compile(rf"(?im)(?:^|{openings})[^\pL\pN_\n\"']*SPDX-License-Identifier[ \t]*:[ \t]*([^\n]*)")


def _strictest(patterns: tuple[tuple[LicenseClass, re.Pattern[str]], ...], prose: str) -> LicenseClaim | None:
    found = [(license_class, match) for license_class, pattern in patterns if (match := pattern.search(prose))]
    if not found:
        return None
    license_class, match = max(found, key=lambda item: item[0])
    return LicenseClaim(license_class, " ".join(match[0].split()))
