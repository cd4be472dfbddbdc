"""Compared inputs: literals that what a user typed is compared with, where the same line says that the password is wrong."""

import re
from collections.abc import Iterator

from pipeline.stages.normalize.scrub.credential_signs.password_values import is_counted_name, looks_fair
from pipeline.stages.normalize.scrub.finding import Finding

_SAID = r"(?i:wrong|invalid|incorrect|bad|false)[ ](?i:pass[ ]?word|passwd|passphrase|passcode|pin(?:[ ]code)?)"
COMPARED_CONDITION = rf"(?:[!=]=[ \t]*(?:u8|[uUL])?\"|cmp\w{{0,2}}[ \t]?\()[^\n]*\"{_SAID}"
"""Expression that is true of every line with such a comparison."""
_COMPARED = re.compile(
    r"(?<![\w.>-])(?:\w{0,6}cmp\w{0,2}\s?\(\s?[&*]?(?P<compared>[\w.>\[\]-]{1,60})\s?,|(?P<name>[\w.>\[\]-]{1,60})\s?[!=]=)"
    r"\s?(?:u8|[uUL])?\"(?P<value>[^\"\s\\]{6,80})\""
)
_SAYING = re.compile(rf"\"{_SAID}[ ]?[.!]{{0,3}}(?:\\[rn]){{0,2}}\"")
_OF_SOMETHING_ELSE = re.compile(
    r"(?i)type|kind|mode|meth|mech|schem|version|ext|magic|field|cmd|command|algo|format|name|user|login|proto|header|sign|path|file"
)
_REACH = 120


def compared_inputs(text: str, start: int, end: int) -> Iterator[Finding]:
    """Yield the passwords that inputs are compared with on a line that says of the others that they are wrong."""
    for match in _COMPARED.finditer(text, start, end):
        name, value = match["compared"] or match["name"], match["value"]
        is_said = _SAYING.search(text, match.end(), min(end, match.end() + _REACH)) is not None
        if is_said and not _OF_SOMETHING_ELSE.search(name) and _is_password(value):
            yield Finding(*match.span("value"), value)


def _is_password(value: str) -> bool:
    """Return whether a value has digits, or signs, as no name of one digit has."""
    return looks_fair(value) and not (is_counted_name(value) and not value[-2:].isdigit())
