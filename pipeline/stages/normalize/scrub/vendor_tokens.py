"""Tokens of known shapes, wherever they occur: no line, call, comment or name beside one makes it less of a secret."""

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Any

import re2

from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.stages.normalize.scrub.hits import condition, search_options
from pipeline.stages.normalize.scrub.named_parts import find_named_parts
from pipeline.stages.normalize.scrub.random_text import PLAIN_UUID, is_filler, is_random, is_wordy
from pipeline.stages.normalize.scrub.token_shapes import TOKEN_SHAPES, TokenShape

_MIN_JUDGED_BODY = 12
"""Characters from which a body is judged by itself, and not together with its head."""
_NOT_FOR_CERTAIN = re.compile(r"(?i)x{4}|0{7}|\*{3}|your|example|-token-")
_NAME = re.compile(r"\A(?:(?:[a-z0-9]*_){2}[a-z0-9_]*|(?:[A-Z0-9]*_){2}[A-Z0-9_]*)\Z")
"""Words in one case with underscores, as in names of functions and constants: random characters have both cases."""
_CAPITALS, _DIGIT_WITHIN = re.compile(r"[A-Z0-9]+"), re.compile(r"[A-Z][0-9]+[A-Z]")
"""Capitals with digits among them: no word is written so."""
_MAX_HEAD = 400
_LONG_RUN = re.compile(rb"([A-Za-z0-9])\1{%d,}" % _MAX_HEAD)
"""One character repeated until no token that begins with it reaches its end."""
_NEXT_LITERAL = re.compile(
    r"""\\?["']s?\s{0,8},\s{0,80}(?:u8|[uUL])?\\?["'](?P<value>[A-Za-z0-9+/=_\-]{20,88})\\?["']"""
    r"""|[ \t]{0,3}[/:,;|][ \t]{0,3}(?P<plain>[A-Za-z0-9+/=_\-]{32,88})(?![\w+/=.-])"""
)
_HEXADECIMAL = re.compile(r"(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]+")
_NUM_CHARACTERS_BEFORE = 16
_NUM_CHARACTERS_OF_TOKEN = 80
_REACH, _NUM_LINES_OF_PAIR = 600, 4
_MARGIN_AFTER = re.compile(r"([A-Za-z0-9])\1{7}")
"""One character repeated: it may be glued to a token, and is no part of it."""
_KINDS = tuple(map(re.compile, ("[a-z]", "[A-Z]", "[0-9]")))
_WORD_OF_OTHERS = r"[^\W_a-zA-Z0-9][a-zA-Z]{0,8}\Z"
"""A word with a letter of another script, or an accent."""
_WORD_BEFORE = re.compile(_WORD_OF_OTHERS)
_WORD_OR_NUMBER_BEFORE = re.compile(rf"(?<![A-Za-z0-9.])[0-9]{{1,4}}\Z|{_WORD_OF_OTHERS}")
_INTERRUPTED = re.compile(
    r"(?P<first>[A-Za-z0-9_.+/=~:@%|!-]{4,200}?)(?:[\xad\u200b-\u200d\u2060\ufeff]|-?\n[ \t]{0,40}(?://+|\*|\#)[ \t]{0,8})"
    r"(?P<second>[A-Za-z0-9_.+/=~-]{4,400})"
)
_RUN = re.compile(r"[a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9]+")
_MIN_REST, _MAX_MEAN_RUN = 8, 2.9
"""The line after a whole token begins with the rest of it if that is so long, with so short runs of one kind: words have longer."""
_ESCAPE_BEFORE = re.compile(
    r"(?:\\(?:[abefnrtv]|[0-7]{1,3}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})|%[0-9A-Fa-f]{2}"
    r"|%[-+ #0]*[0-9*]{0,4}(?:\.[0-9*]{0,4})?(?:hh|ll|[hlqjzt])?[a-zA-Z])\Z"
)
"""Text that ends in a letter or digit and is not part of the word after it: an escape of a literal or URL, a printf format."""


def find_tokens(text: str) -> Iterator[Finding]:
    """Yield the tokens of a text whose shape a vendor publishes."""
    if not _holds_head(text):
        return
    content, heads = text.encode(), condition(head_expression())
    is_ascii = len(content) == len(text)
    position, counted, characters = 0, 0, 0
    while match := heads.search(content, position):
        start = match.start()
        if not is_ascii:
            characters += len(content[counted:start].decode())
        counted = start
        if (run := _LONG_RUN.match(content, start)) is not None:
            position = run.end() - _MAX_HEAD
            continue
        place = start if is_ascii else characters
        heads_there = _head_set().Match(content[start : start + _MAX_HEAD]) or ()
        found, half = _token_at(text, place, heads_there)
        yield from _interrupted(text, place, found, heads_there)
        if found:
            yield found
            yield from _next_literal(text, found.end)
            yield from _other_half(text, found, half) if half else ()
        position = start + (max(1, found.end - place) if found else 1)  # tokens are of ASCII


def find_named_tokens(text: str) -> Iterator[Finding]:
    """Yield the tokens whose parts are put together by their names."""
    if _holds_head(text):
        yield from find_named_parts(text, head_expression(), find_tokens)


@lru_cache(maxsize=1)  # tokens and their parts are searched in the same text
def _holds_head(text: str) -> bool:
    return condition(head_expression()).search(text.encode()) is not None


def _token_at(text: str, start: int, heads: Iterable[int]) -> tuple[Finding | None, re.Pattern[str] | None]:
    """Return the longest token that begins at a place, of shapes with these heads, and the expression of its other half.

    A head that only names it is left out.
    """
    spans = [
        (*span, other_half)
        for shape, before, expression, other_half in map(_expressions().__getitem__, sorted(heads))
        if (match := expression.match(text, start)) and (span := _span(text, shape, before, match))
    ]
    if not spans:
        return None, None
    start, end, half = max(spans, key=lambda span: (span[1], -span[0]))
    return Finding(start, end, text[start:end]), half


def _interrupted(text: str, start: int, found: Finding | None, heads: Iterable[int]) -> Iterator[Finding]:
    """Yield the parts of a token that goes on after a character without width, or on the next line of its comment.

    `found` is what was found without the second part; it is a part of what is yielded then.
    """
    parts = _INTERRUPTED.match(text, start)
    if parts is None or (found is not None and found.end < parts.end("first")):
        return
    first = max(0, start - _NUM_CHARACTERS_BEFORE)
    before = text[first : parts.end("first")]
    token, _ = _token_at(f"{before}{parts['second']}", start - first, heads)
    if token is not None and token.start < len(before) < token.end:
        if found is not None and not _is_rest(token.value[len(before) - token.start :]):
            return
        yield Finding(first + token.start, parts.end("first"), token.value)
        yield Finding(parts.start("second"), parts.start("second") + token.end - len(before), token.value)


def _is_rest(text: str) -> bool:
    return len(text) >= _MIN_REST and len(text) <= _MAX_MEAN_RUN * len(_RUN.findall(text))


def _other_half(text: str, token: Finding, expression: re.Pattern[str]) -> Iterator[Finding]:
    """Yield the secrets of an account on the lines around its name, whatever stands beside them: random characters, alone."""
    before = text[max(0, token.start - _REACH) : token.start].split("\n")[-_NUM_LINES_OF_PAIR:]
    after = text[token.end : token.end + _REACH].split("\n")[:_NUM_LINES_OF_PAIR]
    start = token.start - len("\n".join(before))
    region = text[start : token.end + len("\n".join(after))]
    for match in expression.finditer(region):
        value = match[0]
        is_mixed = any(map(str.isdigit, value)) and value != value.lower() and value != value.upper()
        if value not in token.value and is_mixed and not is_filler(value) and not is_wordy(value):
            yield Finding(start + match.start(), start + match.end(), value)


def _next_literal(text: str, place: int) -> Iterator[Finding]:
    """Yield the literal after that of a token, if it is as random: accounts and their keys are written side by side."""
    match = _NEXT_LITERAL.match(text, place)
    if match is None:
        return
    value = match["value"] or match["plain"]
    if is_random(value) or PLAIN_UUID.fullmatch(value) or (_HEXADECIMAL.fullmatch(value) and not is_filler(value)):
        yield Finding(*match.span(match.lastgroup or 0), value)


def _span(text: str, shape: TokenShape, before: re.Pattern[str] | None, match: re.Match[str]) -> tuple[int, int] | None:
    """Return where a token is whose head and body matched; None if it is in a longer word, or is no random text."""
    start, end = match.span()
    if before is not None:
        found = before.search(text, max(0, start - _NUM_CHARACTERS_OF_TOKEN), start)
        if found is None:
            return None
        start = found.start()
    if shape.is_word and not _stands_alone(text, start, end):
        return None
    judged = match["body"] if len(match["body"]) >= _MIN_JUDGED_BODY else text[start:end]
    is_code = _CAPITALS.fullmatch(judged) is not None and _DIGIT_WITHIN.search(judged) is not None
    is_word = is_wordy(judged) and not is_code
    if not shape.is_certain and (is_filler(judged) or is_word or _NAME.match(judged)):
        return None
    if shape.is_certain and _NOT_FOR_CERTAIN.search(judged):
        return None
    return (match.start("body") if shape.is_named else start), end


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Return whether no letter or digit beside a token is of its own alphabet, but for those of a word or number before it."""
    token, before = text[start:end], text[max(0, start - _NUM_CHARACTERS_BEFORE) : start]
    if _is_of_alphabet(text[end : end + 1], token) and _MARGIN_AFTER.match(text, end) is None:
        return False
    is_of_another = (_WORD_OR_NUMBER_BEFORE if token[0].isalpha() else _WORD_BEFORE).search(before) is not None
    return not _is_of_alphabet(before[-1:], token) or is_of_another or _ESCAPE_BEFORE.search(before) is not None


def _is_of_alphabet(character: str, token: str) -> bool:
    """Return whether a token has characters of the same kind. Letters of other scripts are of none."""
    return any(kind.match(character) and kind.search(token) for kind in _KINDS)


@cache
def head_expression() -> str:
    """Return the expression of the fixed parts of all tokens, which every text with a token matches."""
    return "|".join(f"(?:{shape.head})" for shape in TOKEN_SHAPES)


@cache
def _head_set() -> Any:
    """Return the heads as a set of RE2, which says which of them match where a text begins."""
    heads = re2.Set.MatchSet(search_options())
    for shape in TOKEN_SHAPES:
        heads.Add(shape.head)
    heads.Compile()
    return heads


@cache
def _expressions() -> list[tuple[TokenShape, re.Pattern[str] | None, re.Pattern[str], re.Pattern[str] | None]]:
    """Return for each shape the expressions of what is before its head, if anything, of head and body, and of its other half."""
    return [
        (
            shape,
            re.compile(rf"(?:{shape.before})\Z") if shape.before else None,
            re.compile(f"(?:{shape.head})(?P<body>{shape.body})"),
            re.compile(rf"(?<![\w+/.-]){shape.other_half}(?![\w+/=-]|\.\w)") if shape.other_half else None,
        )
        for shape in TOKEN_SHAPES
    ]
