"""Sentences that speak of permission, restriction, rights, use or secrecy, found by the weights of their terms.

`legal_terms.toml` gives each term a weight. What distinct terms of a stretch of words weigh together says how much it
speaks as a licensor does; technical words weigh against it. Leading comments count for more than a comment in code.
"""

import re
import tomllib
import unicodedata
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import re2

from pipeline.stages.normalize.license.prose.prose_expressions import compile_prose

TERMS_FILE = "legal_terms.toml"
MIN_WEIGHT_IN_HEADER = 4
MIN_WEIGHT_IN_CODE = 6
_NUM_CHARACTERS = 130
"""Characters of a stretch that is weighed: a sentence of about twenty words."""
MAX_SHOWN = 160
_OF_THE_PROGRAM = re.compile(
    r"(?i)\b(?:(?:only|solely|strictly|is|are|be|intended|meant|and) ){0,6}(?:for (?:[\w']+ ){0,4})?"
    r"internal(?:[ -]use|[ -]usage)?(?:[ -]only| purposes){0,3}\b"
    r"|\b(?:is |are |only |intended |suitable ){0,5}for (?:testing|test|debugging|demonstration|benchmark\w*) (?:purposes? )?only\b"
    r"|\breproduced (?:here )?(?:with|by) (?:the )?(?:kind )?permission of the (?:author|publisher)s?\b"
)
_WHITE = re.compile("[\\s\u0640\u064b-\u0652]+")
"""White space, and the strokes and vowels that Arabic has or leaves out."""
_GROUP = re.compile(r"\(\?P<\w+>")
_MARGINS = re2.compile(r"(?m)^[ \t]*(?://+[!/<]?|/?\*+|#+)|\*+/[ \t]*$")


@dataclass(frozen=True)
class Sentence:
    """The words of a stretch that speaks of a license, and what they weigh; `because` are the heaviest learned ones."""

    words: str
    weight: int
    because: tuple[str, ...] = ()


def spoken(words: str, is_header: bool) -> Sentence | None:
    """Return the heaviest stretch of plain words, ` / ` where explained ones were, if it is heavy enough."""
    limit = MIN_WEIGHT_IN_HEADER if is_header else MIN_WEIGHT_IN_CODE
    if not is_header and not _heavy_words().search(words):
        return None
    best: Sentence | None = None
    for part in words.split("/"):
        found = _heaviest(part, is_header)
        if found and found.weight >= limit and (best is None or found.weight > best.weight):
            best = found
    return best


def speaks_beside_a_license(words: str) -> bool:
    """Return whether a sentence speaks of a license without what documentation says: for internal use only.

    Where a file states its own license, such words are about the program; without one they are a company's.
    """
    plain = _OF_THE_PROGRAM.sub(" / ", words)
    return plain == words or spoken(plain, True) is not None


def spoken_as_written(text: str, is_header: bool) -> Sentence | None:
    """Return the heaviest line in a script without a Latin alphabet, if it is heavy enough."""
    if text.isascii():
        return None
    limit = MIN_WEIGHT_IN_HEADER if is_header else MIN_WEIGHT_IN_CODE
    bare = _WHITE.sub("", _MARGINS.sub("", unicodedata.normalize("NFKC", text).lower()))
    found: dict[str, int] = {}
    first = len(bare)
    for match in _scripts().finditer(bare):
        found[match[0]] = _weight(match)
        first = min(first, match.start())
    total = sum(found.values())
    return Sentence(bare[max(0, first - 20) : first + 60], total) if total >= limit else None


def foreign_term(words: str) -> str | None:
    """Return the first term of another language than English in plain words."""
    found = re2.search(rf"\b(?:{_foreign().pattern})\b", words)
    return str(found[0]) if found else None


@lru_cache(maxsize=4_096)  # most stretches of a header are in other headers too
def _heaviest(words: str, is_header: bool) -> Sentence | None:
    """Return the stretch whose distinct terms, in singular or plural, weigh most. In code, one term is about the program."""
    data = words.encode()
    terms = [(*match.span(), match[0], _weight_of(match[0])) for match in _words().finditer(data)]
    best, place = 0, None
    for first, (start, *_) in enumerate(terms):
        if terms[first][3] < 0:
            continue
        inside = {}
        for begin, _, term, weight in terms[first : first + _NUM_CHARACTERS]:
            if begin - start > _NUM_CHARACTERS:
                break
            inside[term.removesuffix(b"s")] = weight
        weight = sum(inside.values()) if max(inside.values()) > 1 else 0
        if weight > best and (is_header or sum(each > 0 for each in inside.values()) > 1 or _foreign().fullmatch(term)):
            best, place = weight, start
    if place is None:
        return None
    begin = max(0, data.rfind(b" ", 0, max(0, place - 30)))
    return Sentence(data[begin:][:MAX_SHOWN].decode("ascii", "ignore").strip(), best)


@lru_cache(maxsize=1 << 14)
def _weight_of(term: bytes) -> int:
    """Return the weight of a term that `_words` has found: of the first group that is all of it, as it has no words around it."""
    return _weight(_weighed_words().fullmatch(term))


def _weight(match: Any) -> int:
    return _weights(match.re)[match.lastindex]


@cache
def _weights(expression: Any) -> dict[int, int]:
    """Return the weight of each group of an expression, by its number."""
    names = {number: name for name, number in expression.groupindex.items()}
    return {number: -int(name[2:]) if name.startswith("wm") else int(name[1:]) for number, name in names.items()}


@cache
def _terms() -> dict[str, Any]:
    return tomllib.loads(
        files("pipeline.stages.normalize.license.prose").joinpath(TERMS_FILE).read_text(encoding="utf-8")
    )


@cache
def _words() -> Any:
    """Return the expression without groups: to tell which group of many has matched takes several times as long as to match."""
    return compile_prose(_GROUP.sub("(?:", _weighed_words().pattern))


@cache
def _weighed_words() -> Any:
    table = dict(_terms()["words"])
    other = table.pop("other")
    merged = {weight: [*table.get(weight, []), *other.get(weight, [])] for weight in {**table, **other}}
    return _alternation(merged, rb"\b(?:%s)\b")


@cache
def _foreign() -> Any:
    """Return the terms of other languages than that of most comments: each is a sentence of a licensor."""
    return compile_prose("|".join(f"(?:{term})" for term in _terms()["words"]["other"]["6"]))


@cache
def _heavy_words() -> Any:
    """Return an expression for the terms of half the weight that a comment in code needs: lighter ones do not reach it."""
    tables = (_terms()["words"], _terms()["words"]["other"])
    terms = [term for table in tables for weight in "6543" for term in table.get(weight, [])]
    return compile_prose(rf"\b(?:{'|'.join(terms)})\b")


@cache
def _scripts() -> Any:
    return _alternation(_terms()["scripts"], b"(?:%s)")


def _alternation(terms: dict[str, list[str]], whole: bytes) -> Any:
    """Return one expression with a group for each weight, the heaviest first."""
    groups = [
        f"(?P<w{weight.replace('-', 'm')}>{'|'.join(each.replace('(?P', '(?:') for each in terms[weight])})"
        for weight in sorted(terms, key=int, reverse=True)
    ]
    return compile_prose(whole.decode() % "|".join(groups))
