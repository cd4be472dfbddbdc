"""Service credentials: values beside the name of a service, in code, configurations and elements of XML.

The name is judged by `service_names.py`, with the words between it and the value. A value must look as keys of services do: a UUID,
hexadecimal or random characters, long digits; words, names and versions stay. Beside a service's name alone, what has the form of a
digest is a key where it is assigned to that very name, and nowhere else: tables and comments name what a digest is of.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import re2

from pipeline.stages.normalize.scrub.credential_signs.password_values import is_possible, looks_like_password
from pipeline.stages.normalize.scrub.credential_signs.service_names import (
    ServiceName,
    is_digest_of,
    is_service_alone,
    service_expression,
    service_name,
)
from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.stages.normalize.scrub.hits import condition, hit_lines
from pipeline.stages.normalize.scrub.random_text import PLAIN_UUID, is_filler, is_random, is_unlike_words, is_wordy

_OPERATOR = r"(?::{1,3}=|\|\|:|=>|->|[.?+!=]?=|<<|[:>,({]|\s)"
_BETWEEN = (
    r"(?:\[\w{0,24}\])?(?:\\{0,3}[\"'`\])]){0,3}[ \t]{0,8}(?:[A-Za-z_]{2,16}[ \t]{1,4})?"
    + _OPERATOR
    + r"(?:[A-Za-z_][\w:]{0,30}[({]|[\s({]){0,12}(?:\"[\w.@:/-]{1,60}\",[ \t]{0,4})?"
    r"(?:u8|[uUL])?(?:R\"[a-z]{0,8}\(|\\{0,3}[\"'`])?"
)
_WORDS = r"(?:[ \t]{1,3}[A-Za-z][A-Za-z_\-]{1,15}){0,3}"
"""Words between the name of a service and an operator, as in `linear api key: ...`."""
_VALUE = r"[A-Za-z0-9_.+/=~:\-]"
_IDENTIFIER = re.compile(r"[A-Za-z]+_\w+")
_NUM_OF_SERVICE = 5
_NUM_OF_NAME, _MIN_VALUE, _MAX_VALUE = 40, 10, 200
_BEFORE = re.compile(r"[\w.\-]*\Z")
_HEXADECIMAL = re.compile(r"(?i)[0-9a-f]{16,128}")
_DIGITS = re.compile(r"[0-9]{14,40}")
_PAIR = re.compile(r"[0-9a-f]{8}:[0-9a-f]{8}|[0-9]{5,16}:[A-Za-z0-9_-]{30,40}")
_PLAIN = re.compile(r"[A-Za-z0-9]{14,}|[A-Za-z0-9_=+/~-]{18,}|[A-Za-z0-9_=+/~.-]{30,}")
_RUNS = re.compile(r"[A-Za-z]+|[0-9]+")
_SEPARATORS = re.compile(r"[_.:\-]+")
_MIN_RUNS, _MIN_DISTINCT = 3, 7
_DIGEST = re.compile(r"(?:[0-9a-f]{2}){8,64}|(?:[0-9A-F]{2}){8,64}")
_SWITCH = re.compile(r"[A-Za-z](?=[0-9])|[0-9](?=[A-Za-z])")
_MIN_SWITCHES, _CHARACTERS_PER_SWITCH, _MIN_ALTERNATING = 4, 6, 14
_NUM_BEFORE = 48
_END = frozenset("\"'`;,<>)}]&\\ \t\r\n")


def find_service_credentials(text: str) -> Iterator[Finding]:
    """Yield the values beside the names of services that look like their keys."""
    for start, end in hit_lines(text, _condition()):
        following = text.find("\n", end + 1) if _continues(text, end) else end
        region = text[start : following if following >= 0 else len(text)]
        for match in _expression().finditer(region):
            yield from _judged(region, start, match)


def _continues(text: str, end: int) -> bool:
    """Return whether a line ends before its value: the next one has it then."""
    return text[end - 1 : end] in (">", "=", ":", "(", "{", ",", "\\")


def _judged(region: str, offset: int, match: Any) -> Iterator[Finding]:
    (name_start, name_end), (_, words_end), (start, end) = match.span(1), match.span(2), match.span(3)
    before = _BEFORE.search(region, max(0, name_start - _NUM_OF_NAME), name_start)
    first = before.start() if before else name_start
    while end > start and region[end - 1] in ".:":
        end -= 1
    is_alike = (
        region[start : start + _NUM_OF_SERVICE].lower() == region[name_start : name_start + _NUM_OF_SERVICE].lower()
    )
    if is_alike and _IDENTIFIER.fullmatch(region, start, end):
        return  # another name of the service
    if region[end : end + 1] not in ("", *_END) or is_digest_of(region[max(0, first - _NUM_BEFORE) : first]):
        return
    strength = service_name(region[first:words_end])
    is_assigned = "=" in region[words_end:start] and is_service_alone(region[first:name_end])
    if strength and _is_key(region[start:end], strength, is_assigned):
        yield Finding(offset + start, offset + end, region[start:end])


def _is_key(value: str, strength: ServiceName, is_assigned: bool) -> bool:
    """Return whether a value looks like the key of a service. With a word of credentials beside it, less is asked of it."""
    if len(value) < _MIN_VALUE or is_filler(value):
        return False
    if _PAIR.fullmatch(value):
        return True
    if PLAIN_UUID.fullmatch(value) or _DIGITS.fullmatch(value):
        return strength is ServiceName.OF_CREDENTIAL
    if strength is ServiceName.OF_SERVICE and _DIGEST.fullmatch(value) and not is_assigned:
        return False
    if _HEXADECIMAL.fullmatch(value) and not value.isdigit() and not value.isalpha():
        return strength is ServiceName.OF_CREDENTIAL or len(value) > 30
    if is_wordy(value) or "://" in value or value.startswith("."):
        return False
    if value.startswith(("/", "-")):
        return strength is ServiceName.OF_CREDENTIAL and _alternates(value)
    if strength is ServiceName.OF_SERVICE:
        return is_random(value) or _alternates(value)
    if any(len(part) >= _MIN_ALTERNATING and is_unlike_words(part) for part in _SEPARATORS.split(value)):
        return True
    most_runs = max(len(_RUNS.findall(segment)) for segment in _SEPARATORS.split(value))
    is_mixed = most_runs >= _MIN_RUNS and len(set(value)) >= _MIN_DISTINCT
    return (is_mixed and _PLAIN.fullmatch(value) is not None) or (is_possible(value) and looks_like_password(value))


def _alternates(value: str) -> bool:
    """Return whether letters and digits alternate as in no name and no version."""
    num_switches = len(_SWITCH.findall(value))
    return len(value) >= _MIN_ALTERNATING and num_switches >= max(_MIN_SWITCHES, len(value) // _CHARACTERS_PER_SWITCH)


@cache
def service_condition() -> str:
    """Return the expression that is true of every line with such a name and value."""
    return rf"(?i:{service_expression()})[\w.\-]{{0,{_NUM_OF_NAME}}}{_WORDS}{_BETWEEN}{_VALUE}{{{_MIN_VALUE}}}"


@cache
def _condition() -> Any:
    return condition(service_condition())


@cache
def _expression() -> Any:
    return re2.compile(
        rf"((?i:{service_expression()})[\w.\-]{{0,{_NUM_OF_NAME}}})({_WORDS}){_BETWEEN}({_VALUE}{{{_MIN_VALUE},{_MAX_VALUE}}})"
    )
