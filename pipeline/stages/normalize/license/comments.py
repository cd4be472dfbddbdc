"""Comments of a file that may speak of its license: the leading ones, groups of the others, and code that `#if 0` leaves out.

What is written in several comments that follow each other is one group: a notice may have a comment a line. A cheap
search for legal words comes first, so that most files have their leading comments alone.
"""

import re
from dataclasses import dataclass

import re2

from pipeline.lexing.lexer import lexer_of

_MAY_SPEAK = re2.compile(
    r"(?i)li[cs]en[sc]|(?:^|[^l\s]|legal)\s+rights|rights\s+(?:to|of|in|under)|reserves|copyright"
    r" (?:law|holder|owner|notice)|permi(?:t|ssion)|prohibi|forbid|proprietar|confiden|secret|consent"
    r"|authori[sz]|agreement"
    r"|distribut|commercial|purposes|disclos|export|unpublished|property|internal|classified|official|terms|train|sold"
    r"|gpl|general public|hereby|evil|wtfpl|(?:released|available|provided|covered|published) "
    r"(?:under|into|to)|decompil|limited|public domain|freely|freeware|shareware|\b(?:mit|bsd|apache"
    r"|mpl|cc0|isc|copr|numerical recipes)\b"
    # Other languages: stems of the same.
    r"|recht|lizenz|vertraulich|untersagt|verbot|gestattet|genehmig|zustimm|gebrauch|droits|interdi|autoris|reprodu[cz]"
    r"|derecho|prohibid|autoriza|diritt|vietat|riservat|senza|segret|direito|proibid|vedad|toestemming|verboden"
    r"|zastrze|zabronion|zgody|f.rbjud|tillst.nd|forbud|tilladelse|haklar|izin|nghi|dilarang|kielletty|tilos|engedely"
    r"|interzis|zakazan|prava"
)
_OTHER_SCRIPT = re.compile("[\u0370-\U0010ffff]")
_LEGAL = re2.compile(
    r"(?i)licen[sc]|gpl|copyright|\(c\)|©|all rights|proprietar|confidential|redistribut|permission"
    r" is|hereby|public domain"
)
_LEFT_OUT = re2.compile(r"(?m)^[ \t]*#[ \t]*if[ \t]+0\b[^\n]*\n((?:[^#\n][^\n]*\n|\n|[ \t]*#[^ie\n][^\n]*\n)*)")
_MAX_NUM_GROUPS = 1_000


@dataclass(frozen=True)
class Prose:
    """A group of comments as written. `is_header` says that it speaks for the file: it leads it, or has the words of a license."""

    text: str
    is_header: bool


def prose_of(path: str, text: str) -> list[Prose]:
    """Return the leading comments, and the other groups of comments that may speak of a license, in order."""
    lexer = lexer_of(path)
    end = lexer.leading_comments_end(text)
    found = [Prose(text[:end], True)] if end and _may_speak(text[:end]) else []
    if not _may_speak(text[end:]):
        return found
    groups = [
        text[start:stop] for start, stop in _joined(text, [span for span in lexer.comments(text) if span[0] >= end])
    ]
    groups += [match[1] for match in _LEFT_OUT.finditer(text)] if "#" in text and "if" in text else []
    spoken = [group for group in groups if _may_speak(group)]
    return found + [Prose(group, bool(_LEGAL.search(group))) for group in spoken[:_MAX_NUM_GROUPS]]


def _may_speak(text: str) -> bool:
    return bool(_MAY_SPEAK.search(text) or (not text.isascii() and _OTHER_SCRIPT.search(text)))


def _joined(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join comments with nothing but blanks and line ends between them."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        follows = joined and not text[joined[-1][1] : start].strip()
        joined.append((joined.pop()[0] if follows else start, end))
    return joined
