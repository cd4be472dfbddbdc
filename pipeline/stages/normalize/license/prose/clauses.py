"""Clauses of a comment that limit what may be done with a work: found by their grammar, sentence by sentence.

`clauses.toml` has the grammar: who or what is limited, the modal, what is done, for whom. It also has the words of a program: a
sentence of a header that has some of them, and speaks of no work and no holder, documents the program.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import re2

from pipeline.stages.normalize.license.prose.names import TOKEN, ids_as_words, with_tokens
from pipeline.stages.normalize.license.prose.prose_expressions import Alternatives, compile_prose
from pipeline.stages.normalize.license.prose.words import plain_words

CLAUSES_FILE = "clauses.toml"
_WORD = re.compile("[a-z]+")
_NUM_LINES = 1 << 15
"""Lines whose margin is remembered."""
_NUM_SENTENCES = 1 << 14
"""Sentences whose meaning is remembered: the headers of a source differ in few."""
MAX_WORDS_OF_SENTENCE = 60
"""Words of a sentence that are read: a longer one is a text or a table."""
_WRAPPED = 50
"""Characters of a line after which a sentence may go on in the next."""
_MIN_ABOUT_WORK = 2
"""Distinct words of a program that a sentence about the work itself has where it documents the program."""
_MAY_LIMIT = re2.compile(
    r"(?i)\b(?:itar|ear99|eccn|munitions|technical\s+data|export|feed|fed|(?:train|ingest|scrape|fine[ -]tune)\w*"
    r"|invalid|void|illegal|asking|telling|without|do\s+not\s+\w+\s+th|never\s+\w+\s+th|(?:this|these|our)\s+(?:\w+\s+){1,7}(?:may|must|can|shall|is|are))\b"
)
"""Words of which a clause that counts in every comment has one."""
_MARGIN = re.compile(r"[ \t]*(?:/[/*]+[!<]*|\*+/?|#+|;+|--+|\|+)?[ \t]*")
_SENTENCE_END = re.compile(r"(?<![.!?;:])[.!?;:]+[\"')\]]*(?:\s|$)|(?<![。！？；])[。！？；]+")
_ABBREVIATED = re.compile(r"\b(?:Corp|Inc|Ltd|Co)\.\s[a-z]\Z")
"""The end of a company's name in the middle of a sentence."""
_NUM_ABBREVIATED = 5
_NAME_IN_CODE = re2.compile(
    r"\b[A-Za-z_]\w*\(\)|\w::\w|->\w|\b[a-z]+_[a-z][\w]*\b|\b[a-z]{2,}[A-Z][a-z]\w*\b|(?:^|\s)-[A-Z]\w{3,}\b|[\[(]\d+, ?\d+[\])]"
    r"|(?:^|\s)--[a-z][\w-]+\b"
    r"|[@\\](?:param|p|c|ref|brief|return|see|note)\b|0x[0-9a-f]+"
)
"""Names of code: a call, a scope, words with an underscore or a capital inside."""
_ADDRESS = re2.compile(r"(?i)\b(?:https?|ftp)://\S*|\bwww\.\S*")
_NAMED_LICENSE = re2.compile(
    r"\b[A-Z][\w.+'-]*(?:[ \t]+(?:[A-Z0-9][\w.+'-]*|of|and|for)){0,6}?[ \t]+(?:LICEN[CS]E|Licen[cs]e|Lizenz|EULA"
    r"|(?:[Aa]ccess |[Ll]icen[cs]e |[Ss]ource )?[Aa]greement|AGREEMENT)\b"
)
_OF_ANOTHER_THING = re.compile(
    r"[ \t]*:|[ \t]+(?:[Mm]anag|[Kk]ey|[Pp]late|[Ss]erver|[Ff]ile|[Tt]ext|[Hh]eader|[Cc]heck|[Ii]dentif|[Ii]nform|[Pp]ars)"
)
"""Words after `License` where it is a field, or a thing that has to do with licenses."""
_NOT_A_NAME = """
    the this see a an your our software license licence under its their each any all some no apache-style bsd-style mit-style for of
    copyright and or please read view full dual original same code source project licensed released subject by in with spdx if when
    file program library permissive standard open short main public text
"""
_PARTS_OF_NAMES = ("icen", "ICEN", "EULA", "greement", "GREEMENT")
"""Parts of a word, one of which a sentence with the name of a license has."""
_OTHER_AGREEMENTS = frozenset(
    ("key", "byzantine", "approximate", "set", "grammatical", "subject", "verb", "protocol", "contributor", "cla")
)
"""Words of an agreement of machines, or with contributors."""
_NO_NAME = frozenset(_NOT_A_NAME.split())
"""Words before `License` that are no name of one."""


@dataclass(frozen=True)
class _Clause:
    """Words of a clause; `is_own` says that no reference to the project's license explains them."""

    words: str
    is_own: bool


def limiting_clause(text: str, left: str, *, with_names: bool = True) -> str | None:
    """Return the first clause of a header that limits what may be done with the work, or the name of a license of no list.

    `left` are the plain words of the comment without those that recognized texts, notices and references explain.
    """
    for sentence in sentences_of(text):
        clause = _clause_in(sentence)
        if clause and (clause.is_own or clause.words in left):
            return clause.words
        unknown = None if clause or not with_names else unknown_license(sentence)
        if unknown and unknown in left:
            return unknown
    return None


def clause_anywhere(text: str) -> str | None:
    """Return the first clause of any comment that limits what may be done with the work."""
    if not _MAY_LIMIT.search(text):
        return None
    return next(filter(None, map(_clause_of_any, sentences_of(text))), None)


def without_program(text: str) -> str:
    """Return a comment without the sentences that document a program, a period in their place."""
    parts = []
    at = 0
    for start, stop in _spans(text):
        if _is_of_program(" ".join(text[start:stop].split())):
            parts.append(text[at:start] + ".")
            at = stop
    return "".join((*parts, text[at:])) if at else text


@lru_cache(maxsize=4)  # a header is searched for clauses of every comment, then for those of a header
def sentences_of(text: str) -> tuple[str, ...]:
    """Return the sentences of a comment as written, with one blank between words."""
    return tuple(
        " ".join(" ".join(line[_margin(line) :] for line in text[start:stop].split("\n")).split())
        for start, stop in _spans(text)
    )


def num_names_in_code(sentence: str) -> int:
    """Return how many names of code a sentence has, addresses aside."""
    return len(
        _NAME_IN_CODE.findall(_ADDRESS.sub(" ", sentence) if "://" in sentence or "www" in sentence else sentence)
    )


@lru_cache(maxsize=4)
def _spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return start and stop of each sentence: lines, joined where one goes on in the next, and divided where it ends."""
    return tuple(_sentence_spans(text))


@lru_cache(maxsize=_NUM_LINES)
def _margin(line: str) -> int:
    """Return how many signs at the beginning of a line are those of a comment."""
    return _MARGIN.match(line).end()  # type: ignore[union-attr]


def _sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    start: int | None = None
    last = ""
    stop = end = 0
    for written in text.split("\n"):
        begin, end = end + _margin(written), end + len(written) + 1
        line = written[_margin(written) :].strip(" \t*/#=-|")
        goes_on = (
            start is not None and line and (line[0].islower() or (len(last) > _WRAPPED and last[-1] not in ".:;!?"))
        )
        if start is not None and not goes_on:
            yield from _divided(text, start, stop)
            start = None
        if line and start is None:
            start = begin
        last, stop = line, end - 1
    if start is not None:
        yield from _divided(text, start, stop)


def _divided(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the sentences between two places."""
    at = start
    for match in _SENTENCE_END.finditer(text[start:stop]):
        if _ABBREVIATED.search(text, max(start, start + match.start() - _NUM_ABBREVIATED), start + match.end() + 1):
            continue
        yield at, start + match.end()
        at = start + match.end()
    if at < stop:
        yield at, stop


@lru_cache(maxsize=_NUM_SENTENCES)
def _clause_in(sentence: str) -> _Clause | None:
    """Return the clause of a header's sentence that limits."""
    if not _may_limit(sentence):
        return None
    words = _words_of(sentence)
    own = _expression("always").search(words)
    match = own or _header_clauses().search(words) or _expression("anywhere").search(words)
    return _Clause(str(match[0]).strip(), own is not None) if match and not _is_of_program(sentence) else None


def _may_limit(sentence: str) -> bool:
    """Return whether a sentence has a word of a limit, or is not plainly English."""
    words = set(_WORD.findall(sentence.lower()))
    common, limits = _triggers()
    return common.isdisjoint(words) or not limits.isdisjoint(words)


@cache
def _triggers() -> tuple[frozenset[str], frozenset[str]]:
    table = _table()["triggers"]
    return frozenset(table["common"].split()), frozenset(table["limits"].split())


@lru_cache(maxsize=_NUM_SENTENCES)
def _clause_of_any(sentence: str) -> str | None:
    words = _words_of(sentence)
    match = _expression("anywhere").search(words)
    return str(match[0]).strip() if match and not _is_of_program(sentence) else None


@lru_cache(maxsize=_NUM_SENTENCES)
def _is_of_program(sentence: str) -> bool:
    """Return whether a sentence has words or names of a program, and none of a licensor."""
    sentence = _ADDRESS.sub(" ", sentence)
    words = plain_words(sentence, with_copyright_lines=True)
    technical = {match[0] for match in _program("words").finditer(words)} | {
        match[0] for match in _NAME_IN_CODE.finditer(sentence)
    }
    if len(technical) < (_MIN_ABOUT_WORK if _work().search(words) else 1) or _program("licensor").search(words):
        return False
    return bool(_program("verbs").search(words)) or not re.search(TOKEN, with_tokens(ids_as_words(words))[0])


@lru_cache(maxsize=_NUM_SENTENCES)
def unknown_license(sentence: str) -> str | None:
    """Return the plain words before `License` that are the name of no license that is known."""
    if not any(map(sentence.__contains__, _PARTS_OF_NAMES)):
        return None
    for match in _NAMED_LICENSE.finditer(sentence):
        named = plain_words(match[0], with_copyright_lines=True)
        words = set(named.split()[:-1]) - _NO_NAME
        if _OF_ANOTHER_THING.match(sentence, match.end()):
            continue
        if named.endswith("agreement") and not _OTHER_AGREEMENTS.isdisjoint(named.split()):
            continue
        if words:  # a known name is one of the whole sentence, whichever match comes first
            is_known = re.search(TOKEN, with_tokens(plain_words(sentence, with_copyright_lines=True))[0])
            return None if is_known or _is_of_program(sentence) else named.rpartition(" ")[0]
    return None


def _words_of(sentence: str) -> str:
    words = plain_words(sentence, with_copyright_lines=True)
    return words if words.count(" ") < MAX_WORDS_OF_SENTENCE else ""


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(
        files("pipeline.stages.normalize.license.prose").joinpath(CLAUSES_FILE).read_text(encoding="utf-8")
    )


@cache
def _expression(kind: str) -> Any:
    return _alternation(_table()["clauses"][kind])


@cache
def _header_clauses() -> Alternatives:
    """Return the most alternatives of all kinds. As one automaton they cost twenty times what searching with it does."""
    return Alternatives([_written(each) for each in _table()["clauses"]["header"]])


@cache
def _work() -> Any:
    """Return the expression for the work itself: this file, our software."""
    return _alternation(["<this>"])


@cache
def _program(kind: str) -> Any:
    return _alternation([rf"(?:{each})(?:\b|$)" for each in _table()["program"][kind]])


def _alternation(terms: list[str]) -> Any:
    return compile_prose("|".join(map(_written, terms)))


def _written(term: str) -> str:
    """Return a term as an expression, with its groups in the place of their names."""
    groups = _table()["groups"]
    written = rf"(?:\b|^)(?:{term})"
    while (named := re.sub(r"<(\w+)>", lambda match: groups[match[1]], written)) != written:
        written = named
    return written
