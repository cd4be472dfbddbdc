"""Short lines of headers: a line or a sentence of few words that names a license, or says alone what a licensor says.

`short_lines.toml` lists what such a line says. The names are those of the SPDX list, as `license-expression` and this project's
table of names have them. Words of a sentence that goes on over several lines are in `sentences.py`.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import re2

from pipeline.stages.normalize.license.prose.names import PUBLIC_DOMAIN, spdx_ids
from pipeline.stages.normalize.license.prose.notices import choice_of, title_of
from pipeline.stages.normalize.license.prose.prose_expressions import compile_prose
from pipeline.stages.normalize.license.prose.words import folded, plain_words

LINES_FILE = "short_lines.toml"
MAX_NUM_WORDS = 9
_MAX_SIGNS = 160
_NUM_LINES = 1 << 14
"""Lines whose meaning is remembered: the headers of a source differ in few."""
_WRAPPED = 50
"""Signs of a line after which a sentence may go on in the next."""
_MARGIN = re.compile(r"[ \t]*(?://+[!/<]*|/?\*+!?|#+|;+|--+)?[ \t]*")
_CLOSING_SIGNS = " \t*#/="
_SENTENCE_END = re.compile(
    r"(?<=[.!?;。！])\s+(?!(?:[Ii]nternal|INTERNAL|[Rr]estricted|RESTRICTED)\W*$)|[。！|]+|\s[-–—]+\s"
)
_COPYRIGHT = re2.compile(r"(?i)^(?:(?:copyright|\(c\)|©)[\s,]*)+[\s\d,–-]*")
_DEDICATED = re.compile(r"(?:100\s?% )?(?:this (?:file|code|program) is )?(?:in (?:the )?)?public domain\W*")
_ELISION = re.compile(r"\b([cdjlmnst]|qu)['\u2019](?=[^\W\d])")
"""An article or pronoun of French or Italian that lost its vowel: `d'utilisation`, `l'auteur`."""
_MAY_BE_HEAVY = re2.compile(
    r"(?i)confiden|proprietary|secret|distribu|\bnda\b|disclos|by[- ](?:nc|sa|nd)|creative\s+commons|gpl|licen[sc]e|sspl|polyform"
    r"|commons\s+clause|recipes|\beula\b|rail|resale|for\s+sale|\bleak|training|data\s?sets|u\.?s\.?\s+law|only|may\s+(?:not|never)|engineering"
    r"|decompil|(?:do\s+not|don't|never|keep)\s+\w+\s+(?:this|our)|not\s+to\s+be|vertraulich|verbreiten|weitergeben|diffus|ne\s+peut|restrito"
    r"|enseignement|[^\x00-\x{2fff}]|[\p{Cyrillic}]"
)
"""Parts of words, one of which a heavy line has."""
_SPACED = re2.compile(r"\b[A-Z](?: [A-Z]){4,}\b")
_WORD = re.compile(r"[a-z0-9]+")
_LETTER = re.compile(r"[a-z]")


def joined_capitals(text: str) -> str:
    """Return a text with words of spaced capitals, such as `S E C R E T`, written together."""
    return str(_SPACED.sub(lambda match: match[0].replace(" ", ""), text)) if _SPACED.search(text) else text


def named_lines(text: str, is_stated: bool) -> tuple[str, ...]:
    """Return the licenses of the first lines that are nothing but names. Beside a stated license, identifiers alone count."""
    titles = () if is_stated else title_of(text) or title_of("\n".join(_fragments(text)))
    return titles or tuple(dict.fromkeys(filter(None, map(_license_of_line, _fragments(text)))))


@lru_cache(maxsize=_NUM_LINES)
def _license_of_line(fragment: str) -> str | None:
    """Return the license or the choice of licenses that a short line names and says nothing else, if it does."""
    return (
        _identifier(fragment)
        or choice_of(fragment)
        or (PUBLIC_DOMAIN if _DEDICATED.fullmatch(fragment.lower()) else None)
    )


def limiting_line(text: str) -> str | None:
    """Return the first short line of a header that speaks of property, secrecy or limits of use, or sentence of who may have it."""
    found = next(filter(_is_limiting, _fragments(text)), None)
    if found is None or found.rstrip(".!") in _table()["capitals"]:
        return found
    return found[:_MAX_SIGNS]


def heavy_line(text: str) -> str | None:
    """Return the first line or sentence of any comment that says what no comment of a program does."""
    return next(filter(_is_heavy, _fragments(text)), None) if _MAY_BE_HEAVY.search(text) else None


@lru_cache(maxsize=_NUM_LINES)
def _is_heavy(fragment: str) -> bool:
    """Return whether a line or sentence speaks of secrecy, of who may have the work, or names a license that forbids."""
    words = plain_words(_ELISION.sub(r"\1 ", fragment).replace("'", ""), with_copyright_lines=True)
    return _heavy().search(words) is not None or _heavy_as_written().search(fragment) is not None


@lru_cache(maxsize=_NUM_LINES)
def _is_limiting(fragment: str) -> bool:
    """Return whether a short line speaks of property, secrecy or limits of use."""
    if fragment.rstrip(".!") in _table()["capitals"]:
        return True
    lowered = unicodedata.normalize("NFKC", fragment).lower()
    words = " ".join(_WORD.findall(folded(_ELISION.sub(r"\1 ", lowered)).replace("'", "")))
    is_short = 0 < len(words.split()) <= MAX_NUM_WORDS
    if is_short and _marks().search(words):
        return True
    if ((is_short and _limits().search(words)) or _sentences().search(words)) and not _harmless().search(words):
        return True
    return not lowered.isascii() and _limits_as_written().search(" ".join(lowered.split())) is not None


@lru_cache(maxsize=4)  # a header is searched for names, then for limits
def _fragments(text: str) -> tuple[str, ...]:
    """Return the sentences of a comment: lines, joined where one goes on in the next, and divided where it ends."""
    return tuple(_divided(text))


def _divided(text: str) -> Iterator[str]:
    joined = ""
    for line in [*map(_bare, text.split("\n")), ""]:
        goes_on = joined and line and (_LETTER.match(line) or (len(joined) > _WRAPPED and joined[-1] not in ".:;!?"))
        if goes_on and len(joined) < 4 * _MAX_SIGNS:
            joined = joined[:-1] + line if joined[-1] == "-" and _LETTER.match(line) else f"{joined} {line}"
            continue
        yield from (part for part in _SENTENCE_END.split(joined) if part and len(part) <= _MAX_SIGNS)
        joined = line


def _bare(line: str) -> str:
    """Return a line without the characters that comments begin and end theirs with."""
    line = line[_MARGIN.match(line).end() :]  # type: ignore[union-attr]
    bare = line.rstrip(_CLOSING_SIGNS)
    return (bare.rstrip("-") if bare == line and line.endswith("--") else bare).strip()


def _identifier(fragment: str) -> str | None:
    """Return the license whose identifier or acronym a short line is, but for words such as `this file is under`."""
    bare = _COPYRIGHT.sub("", fragment) or fragment
    words = re.sub(r"[()\[\]\"'`,:<>]|\.(?=\s|$)", " ", bare).split()
    while words and (words[0].lower() in _frame() or not re.search(r"\w", words[0])):
        words = words[1:]
    while words and (words[-1].lower() in _frame() or not re.search(r"\w", words[-1])):
        words = words[:-1]
    if not words or len(words) > 5:
        return None
    name = "-".join(words).lower()
    found = _identifiers().get(name) or _identifiers().get(re.sub(r"-?v(?:ersion-)?(?=\d)", "-", name))
    return found if found and (len(words) == 1 or name not in _table()["ambiguous"]) else None


@cache
def _identifiers() -> dict[str, str]:
    """Return SPDX ids by their spellings: as listed, without `.0`, without a version where the acronym is no word."""
    found: dict[str, str] = {}
    for key in spdx_ids():
        if re.search(r"[-\d]", key):
            found[key.lower()] = key
            found.setdefault(key.lower().removesuffix("-only").removesuffix(".0"), key)
    found |= {each.lower(): each for each in _table()["words"]}
    return {**found, **{each: license for license, names in _table()["acronyms"].items() for each in names}}


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(
        files("pipeline.stages.normalize.license.prose").joinpath(LINES_FILE).read_text(encoding="utf-8")
    )


@cache
def _frame() -> frozenset[str]:
    return frozenset(_table()["frame"])


@cache
def _limits() -> Any:
    return _alternation([rf"\b(?:{each})\b" for each in _table()["limits"]])


@cache
def _marks() -> Any:
    return _alternation(_table()["marks"])


@cache
def _sentences() -> Any:
    groups = _table()["groups"]
    written = [re.sub(r"<(\w+)>", lambda match: groups[match[1]], each) for each in _table()["sentences"]]
    return _alternation([rf"\b(?:{each})" for each in written])


@cache
def _heavy() -> Any:
    return _alternation([rf"(?:\b|^)(?:{each})" for each in _table()["heavy"]])


@cache
def _heavy_as_written() -> Any:
    return _alternation(_table()["heavy_as_written"])


@cache
def _limits_as_written() -> Any:
    return _alternation(_table()["scripts"])


@cache
def _harmless() -> Any:
    return _alternation([rf"\b(?:{each})\b" for each in _table()["harmless"]])


def _alternation(terms: list[str]) -> Any:
    return compile_prose("|".join(terms))
