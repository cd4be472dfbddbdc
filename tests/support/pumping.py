"""Pumping strings of a regular expression: inputs on which a matcher that goes back takes more than linear time.

Each is a beginning that the expression accepts, one repetition of it many times over, and an end that it may not accept.
"""

import re
from collections.abc import Iterator
from itertools import islice
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

_PROBES = " \n\taZ0_-./\\*\"'#:=<(@,;{[&%+$\r\u00e9"
_ENDS = ("", "\0", "\n", "!x")
_MAX_PROBES = 8
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_CATEGORIES = {
    codes.CATEGORY_DIGIT: r"\d",
    codes.CATEGORY_NOT_DIGIT: r"\D",
    codes.CATEGORY_SPACE: r"\s",
    codes.CATEGORY_NOT_SPACE: r"\S",
    codes.CATEGORY_WORD: r"\w",
    codes.CATEGORY_NOT_WORD: r"\W",
}


def pumping_strings(pattern: str, flags: int, num_characters: int) -> Iterator[str]:
    """Yield strings of about that length, for each repetition of an expression: with what it repeats, and with several ends."""
    seen = set()
    for before, body in _repetitions(list(parser.parse(pattern, flags)), ""):
        pump = body * max(1, num_characters // max(1, len(body)))
        for text in (before + pump + end for end in _ENDS):
            if body and text not in seen:
                seen.add(text)
                yield text


def _repetitions(nodes: list[Any], before: str) -> Iterator[tuple[str, str]]:
    """Yield what stands before each repetition, and one text that it repeats."""
    for at, (code, argument) in enumerate(nodes):
        start = before + "".join(_sample(node) for node in nodes[:at])
        if code in _REPEATS:
            _, most, body = argument
            if most > 8:
                yield from ((start, text) for text in _texts(list(body)))
                # What follows may take what is repeated too: then both ends of it move.
                following = "".join(_sample(node) for node in nodes[at + 1 : at + 3])
                yield from ((start, text + following) for text in islice(_texts(list(body)), 2))
                yield start, start + next(_texts(list(body)))
            yield from _repetitions(list(body), start)
        else:
            for inner in _inner(code, argument):
                yield from _repetitions(inner, start)


def _texts(body: list[Any]) -> Iterator[str]:
    if len(body) == 1 and _is_character(body[0]):
        found = [probe for probe in _PROBES if _accepts(body[0], probe)]
        yield from found[:_MAX_PROBES] or [_sample(body[0])]
        return
    yield "".join(_sample(node) for node in body)
    yield "".join(_sample(node, 1) for node in body)


def _inner(code: Any, argument: Any) -> list[list[Any]]:
    if code is codes.SUBPATTERN:
        return [list(argument[-1])]
    if code is codes.BRANCH:
        return [list(branch) for branch in argument[1]]
    if code in (codes.ASSERT, codes.ASSERT_NOT):
        return [list(argument[1])]
    if code is codes.ATOMIC_GROUP:
        return [list(argument)]
    return []


def _is_character(node: Any) -> bool:
    return node[0] in (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN)


def _accepts(node: Any, character: str) -> bool:
    code, argument = node
    if code is codes.LITERAL:
        return ord(character) == argument
    if code is codes.NOT_LITERAL:
        return ord(character) != argument
    if code is codes.ANY:
        return character != "\n"
    members = [member for member in argument if member[0] is not codes.NEGATE]
    found = any(_is_member(member, character) for member in members)
    return found != (len(members) < len(argument))


def _is_member(member: Any, character: str) -> bool:
    code, argument = member
    if code is codes.RANGE:
        return bool(argument[0] <= ord(character) <= argument[1])
    if code is codes.CATEGORY:
        return re.match(_CATEGORIES[argument], character) is not None
    return bool(ord(character) == argument)


def _sample(node: Any, more: int = 0) -> str:
    """Return a short text that a node accepts: the shortest, or with `more` repetitions."""
    code, argument = node
    if _is_character(node):
        known = [chr(argument)] if code is codes.LITERAL else []
        return next(iter(known or [probe for probe in "a0 " + _PROBES if _accepts(node, probe)]), _any_of(node))
    if code in _REPEATS:
        least, most, body = argument
        return "".join(_sample(each, more) for each in body) * min(max(least, more), int(most), 64)
    inner = _inner(code, argument)
    if code in (codes.ASSERT, codes.ASSERT_NOT) or not inner:
        return ""
    return "".join(_sample(each, more) for each in inner[0])


def _any_of(node: Any) -> str:
    return next((chr(number) for number in range(0x3000) if _accepts(node, chr(number))), "")
