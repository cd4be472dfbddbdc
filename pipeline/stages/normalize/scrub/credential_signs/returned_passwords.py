"""Returned passwords: literals that a function or a lambda returns whose name says that it gives a password."""

import re
from collections.abc import Iterator
from itertools import islice

from pipeline.stages.normalize.scrub.credential_signs.call_literals import arguments_of
from pipeline.stages.normalize.scrub.credential_signs.password_names import (
    NAME_PART,
    NameStrength,
    first_word,
    name_strength,
)
from pipeline.stages.normalize.scrub.credential_signs.password_values import (
    HEXADECIMAL,
    is_given_password,
    looks_fair_in_test,
    looks_like_password,
    looks_like_password_compared,
)
from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.stages.normalize.scrub.hits import condition

_CALLS = r"(?:[A-Za-z_][\w:]{0,40}(?:<[\w:, ]{0,40}>)?\s?[({]\s?){0,3}"
_RETURN = re.compile(rf"""\breturn\s+{_CALLS}(?=(?:u8|[uUL@])?(?:R"|"))""")
_PARAMETERS = r"\((?:[^(){};]|\([^(){};]{0,60}\)){0,160}\)"
_SUFFIX = r"(?:\s|const|noexcept|override|final|mutable|try|&|->\s?[\w:<>&* ]{1,60})*"
_HEAD = re.compile(
    rf"(?:(?P<function>[\w:~]{{1,100}})\s?{_PARAMETERS}{_SUFFIX}"
    rf"|(?P<lambda>[\w.>-]{{1,80}})\s?[={{]\s?\[[^\]\n]{{0,80}}\]\s?(?:{_PARAMETERS})?{_SUFFIX})\Z"
)
_NAME_CONDITION = rf"(?i:{NAME_PART})"
_CONTROL = frozenset(("if", "for", "while", "switch", "catch"))
_STATIC = re.compile(
    rf"\bstatic\s+(?:[A-Za-z_][\w:]{{0,40}}[\s*&]{{1,4}}){{1,4}}(?P<variable>[A-Za-z_]\w{{0,40}})(?:\[\w{{0,8}}\])?\s?[={{(]\s?"
    rf"{_CALLS}(?=(?:u8|[uUL@])?(?:R\"|\"))"
)
"""A variable of a function that keeps its value."""
_COMPARED = re.compile(
    r"\breturn\s[^;\"\n]{0,60}?(?:cmp\w{0,2}\s?\([^;\"\n()]{0,60},|\.compare\(|[!=]=)\s{0,4}(?:u8|[uUL])?\"(?P<value>[^\"\\\s]{6,100})\""
)
_CHECKS = re.compile(r"(?i)check|verif|valid|auth|match|is_?|test|compare")
_USE = re.compile(r"\breturn\s{1,8}(?P<variable>\w{1,40})(?:\.c_str\(\)|\.data\(\))?\s?;")
RETURN_CONDITION = (
    rf"\breturn[ \t]+{_CALLS}(?:u8|[uUL@])?(?:R\"|\")"
    r"|\breturn[^\n;\"]*(?:cmp\w{0,2}[ \t]?\([^\n;\"]*|\.compare\(|[!=]=)[ \t]*\""
    r"|\bstatic[ \t][\w:*& \t]+(?:\[\w*\])?[ \t]?[={(][^\n;\"]{0,60}\""
)
"""Expression that is true of every line that returns a literal, or keeps one in a variable that may be returned."""
_MAX_CHARACTERS, _NUM_CHARACTERS_AFTER = 600, 200
_MAX_LEVELS = 4
_MIN_HEXADECIMAL = 16
"""Digits of a number that a key of a test is."""
_GIVERS = frozenset(
    ["get", "default", "my", "the", "db", "database", "admin", "root", "user", "k", "load", "fetch", "read", "make"]
)


def returned_passwords(text: str, start: int, end: int) -> Iterator[Finding]:
    """Yield the literals that are returned as passwords on a line."""
    for match in _COMPARED.finditer(text, start, end):
        name = _name_around(text, match.start())
        if (
            name_strength(name) is NameStrength.SURE
            and _CHECKS.search(name)
            and looks_like_password_compared(match["value"])
        ):
            yield Finding(*match.span("value"), match["value"])
    kept = (match for match in _STATIC.finditer(text, start, end) if _is_returned(text, match))
    for match in (*_RETURN.finditer(text, start, end), *kept):
        name = _name_around(text, match.start())
        if name and (strength := name_strength(name)):
            literals = list(islice(arguments_of(text, match.end(), closes=False), 2))
            if literals and _is_password(literals[0].value, name, strength, is_alone=len(literals) == 1):
                yield Finding(literals[0].start, literals[0].end, literals[0].value)


def _is_returned(text: str, kept: re.Match[str]) -> bool:
    """Return whether a variable that is declared at a place is returned soon after it."""
    uses = _USE.finditer(text, kept.end(), kept.end() + _NUM_CHARACTERS_AFTER)
    return any(use["variable"] == kept["variable"] for use in uses)


def _name_around(text: str, place: int) -> str:
    """Return the name of the function or lambda that a place is in, if it is near and one of its words is for passwords."""
    before = text[max(0, place - _MAX_CHARACTERS) : place]
    return _function_around(before) if condition(_NAME_CONDITION).search(before.encode()) else ""


def _function_around(before: str) -> str:
    """Return the name of the function or lambda whose body is open at the end of a text; empty if there is none."""
    depth, place = 0, len(before)
    for _ in range(_MAX_LEVELS * 16):
        place = max(before.rfind("{", 0, place), before.rfind("}", 0, place))
        if place < 0:
            return ""
        depth += 1 if before[place] == "}" else -1
        if depth < 0:
            head = _HEAD.search(before, max(0, place - 300), place)
            if head and (name := head["function"] or head["lambda"]) not in _CONTROL:
                return str(name).rpartition("::")[2]
            depth = 0
    return ""


def _is_password(value: str, name: str, strength: NameStrength, is_alone: bool) -> bool:
    """Return whether a value is a password: any value if it is all that a function gives that its name says."""
    if strength is not NameStrength.SURE:
        return looks_like_password(value)
    first = first_word(name)
    gives = first in _GIVERS or name_strength(first) is NameStrength.SURE
    is_number = HEXADECIMAL.fullmatch(value) is not None and len(value) >= _MIN_HEXADECIMAL
    return looks_fair_in_test(value) or (is_alone and gives and not is_number and is_given_password(value))
