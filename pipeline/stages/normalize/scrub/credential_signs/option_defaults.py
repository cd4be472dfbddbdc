"""Option defaults: passwords that an option of a program has before a user gives one, in the forms of parsers of options.

The name of the option is a literal, such as `"-p,--password"`; its default is another one of the same statement, after a word
that says so or in a place of its own, between the name, descriptions and types.

Sources: the manuals of CLI11, Boost.Program_options, cxxopts, argparse (p-ranav), args, TCLAP, LLVM's CommandLine, Qt and Python.
"""

import re
from collections.abc import Iterator
from itertools import islice

from pipeline.stages.normalize.scrub.credential_signs.call_literals import CallLiteral, arguments_of
from pipeline.stages.normalize.scrub.credential_signs.password_names import NAME_PART, NameStrength, name_strength
from pipeline.stages.normalize.scrub.credential_signs.password_values import (
    is_given_password,
    looks_fair,
    looks_like_password,
)
from pipeline.stages.normalize.scrub.finding import Finding

_NAME = r"-{0,2}[A-Za-z][\w.-]{0,60}"
_OPTION = re.compile(rf"""["'](?P<names>{_NAME}(?:\s?[,|/ ]\s?{_NAME}){{0,2}})["']""")
_OF_OPTIONS = re.compile(
    r"(?i)(?:opt|arg|flag|param|switch)\w{0,24}(?:<[\w:, ]{1,40}>)?(?:\s[\w]{1,40})?\s?[({]|add_?options|\bpo::|cl::|\(\s?\)"
)
_TYPED = re.compile(r",\s{0,40}(?:\w{1,20}::)?value\s?<")
_DEFAULT = re.compile(r"(?i)(?:default\w{0,16}|\binit|implicit_value|fallback|\bvalue)\s?[=({<]")
_MAX_LITERALS = 6
_NUM_CHARACTERS_BEFORE, _NUM_CHARACTERS_OF_WORD = 200, 80
OPTION_CONDITION = rf"(?i:[\"'][\w,.|/ -]*(?:{NAME_PART})[\w,.|/ -]*[\"'])"
"""Expression that is true of every line with the name of such an option."""


def option_defaults(text: str, start: int, end: int) -> Iterator[Finding]:
    """Yield the defaults of the options of a line whose names say that they are passwords."""
    for option in _OPTION.finditer(text, start, end):
        strength = max(name_strength(name.lstrip("-")) for name in re.split(r"[,|/ ]+", option["names"]) if name)
        before = text[max(0, option.start() - _NUM_CHARACTERS_BEFORE) : option.start()]
        is_typed = _TYPED.match(text, option.end()) is not None
        if strength and (is_typed or _OF_OPTIONS.search(before[before.rfind(";") + 1 :])):
            yield from _defaults(text, option.end(), strength)


def _defaults(text: str, place: int, strength: NameStrength) -> Iterator[Finding]:
    """Yield the literals after the name of an option that are its default; the next option has its own."""
    for each in islice(arguments_of(text, place, closes=False), _MAX_LITERALS):
        code = text[max(place, each.start - _NUM_CHARACTERS_OF_WORD) : each.start]
        if re.search(r"\)\s*\((?!\))", text[place : each.start]):
            return
        if _is_default(each, code, strength):
            yield Finding(each.start, each.end, each.value)


def _is_default(argument: CallLiteral, code: str, strength: NameStrength) -> bool:
    """Return whether a literal is a password by the word of defaults before it, or by its look in the option's own call."""
    if _DEFAULT.search(argument.before) or _DEFAULT.search(code.rpartition('"')[2]):
        return (
            is_given_password(argument.value) if strength is NameStrength.SURE else looks_like_password(argument.value)
        )
    return argument.depth == 0 and strength is NameStrength.SURE and looks_fair(argument.value)
