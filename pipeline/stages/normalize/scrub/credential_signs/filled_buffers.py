"""Filled buffers: literals that a call writes into a buffer with the name of a password, whatever is between the two.

Copies in which the literal follows the buffer at once, as of `strcpy`, are read with other names beside a literal (`passwords.py`).
"""

import re
from collections.abc import Iterator

from pipeline.stages.normalize.scrub.credential_signs.call_literals import CallLiteral, arguments_of
from pipeline.stages.normalize.scrub.credential_signs.password_names import NameStrength, name_strength
from pipeline.stages.normalize.scrub.credential_signs.password_values import (
    is_counted_name,
    is_given_password,
    looks_fair,
    repeats_name,
)
from pipeline.stages.normalize.scrub.finding import Finding

_WRITTEN = (
    r"\w{0,8}s[nwc]{0,2}w?printf(?:_s|_l)?|format_to_n"
    r"|\w{1,8}(?:cpy|cat)_s|strl(?:cpy|cat)|StringC(?:ch|b)(?:Copy|Cat|Printf)(?:Ex)?[AW]?"
)
_COPIED = r"copy_n|copy"
_PART = r"(?:pass|pwd|psw|pw|secret|token|cred|parol|kenn|clave|senha|heslo)"
FILL_CONDITION = (
    rf"(?:{_WRITTEN})[ \t]?\([^\"\n;]{{0,80}}(?i:{_PART})[^\n]{{0,160}}\""
    rf"|(?:{_COPIED})[ \t]?\([^\n;]{{0,24}}\"[^\n]{{0,240}}(?i:{_PART})"
)
"""Expression that is true of every line with such a call."""
_CALL = re.compile(rf"(?<![A-Za-z0-9])(?:(?P<written>{_WRITTEN})|{_COPIED})\s?\(")
_FIRST = re.compile(
    r"\s{0,80}(?:\([\w\s*]{1,20}\)\s?)?[&*]?(?P<name>(?:->|[\w.]){1,80})(?:\[[\w+ -]{0,20}\])?\s?(?:\+\s?\w{1,20}\s?)?,"
)
_LAST = re.compile(
    r"\"\s?,\s?(?:[\w:.>+*/ -]|\([^()\n]{0,60}\)){1,80},\s?(?:(?:std::)?(?:begin|data)\s?\(\s?)?[&*]?(?P<name>(?:->|[\w.]){1,80})"
)
_PLACE = re.compile(r"(?:\.|->)(?:c?begin|data|get|front|c_str)\Z")
"""Methods that give the place of a buffer, after its name."""
_CONVERSION = re.compile(r"%[^%\s]")


def filled_buffers(text: str, start: int, end: int) -> Iterator[Finding]:
    """Yield the literals that calls on a line write into passwords."""
    for call in _CALL.finditer(text, start, end):
        for each in arguments_of(text, call.end()):
            target = _target(text, call, each)
            if target and each.depth == 0 and _is_password(_PLACE.sub("", target["name"]), each.value):
                yield Finding(each.start, each.end, each.value)


def _target(text: str, call: re.Match[str], each: CallLiteral) -> re.Match[str] | None:
    """Return what a literal is written to: the first argument, or that after how much of it is copied."""
    if not call["written"]:
        return _LAST.match(text, each.end) if each.position == 0 else None
    is_text = each.position > 0 and not _CONVERSION.search(each.value)
    return _FIRST.match(text, call.end()) if is_text else None


def _is_password(name: str, value: str) -> bool:
    """Return whether a value is a password by the name of what it is written to: `pass` may be one of many of a program too."""
    strength = name_strength(name)
    if strength is NameStrength.NONE or repeats_name(name, value):
        return False
    if strength is NameStrength.SURE:
        return is_given_password(value)
    return looks_fair(value) and not is_counted_name(value)
