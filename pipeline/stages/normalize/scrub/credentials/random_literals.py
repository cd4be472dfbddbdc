"""Random literals: values that a generator chose and that no name or shape explains, if they are alone.

A literal of mixed letters and digits is a secret unless its own statement says that it is something else: a digest, an identifier,
a test's vector, one row of a table, data in base64. Each of these is left, and has a reason, so that a stage can count them.
Hexadecimal literals are digests nearly always: one is a secret only by its name, as `find_passwords` judges, or as the identifier
of an account or a key.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from pipeline.stages.normalize.scrub.credential_signs.own_statement import statement_before
from pipeline.stages.normalize.scrub.credential_signs.password_values import is_text_in_base64, repeats_name
from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.stages.normalize.scrub.hits import condition, hit_lines
from pipeline.stages.normalize.scrub.random_text import is_random

RANDOM_CONDITION = r"""["'][A-Za-z0-9+/=_\-]{20,}\\{0,3}["']"""
"""Expression that is true of every line with such a literal."""
_LITERAL = re.compile(r"""(?<=["'])(?P<value>[A-Za-z0-9+/=_\-]{20,4096})(?=\\{0,3}["'])""")
_HEXADECIMAL = re.compile(r"(?i)(?:0x|[a-z]{2,16}_)?[0-9a-f]+h?")
_DATA = re.compile(
    "(?i:sha[0-9]{1,3}|md5)[-_]|iVBORw0KGgo|R0lGOD|/9j/|JVBERi0|UEsDB|H4sI|AGFzbQ|UklGR|T2dnUw|Qk0|AAABAA|AAECAw|AQIDBA|PHN2Zy|PD94bWw|f0VMRg|d09GR|rO0AB|/Td6W|eJ[wxyz]|KLUv|Qlpo|12D3KooW"
)
"""Heads of named digests, and of images, archives, programs, fonts and bytes that count up, in base64."""
_PREFIXED = re.compile(
    r"(?!(?:commit|pack|icon|img|file|git|rev|obj|hash|crc|ref)[_-])[a-z][a-z0-9]{1,11}_?[_-](?:[a-z0-9]{1,8}_)?[a-z0-9]{32,128}"
)
"""The head of a vendor before small letters and digits."""
_NAME_BEFORE = re.compile(r"(?<!\w)(\w{1,64})[^\w\n]{1,40}\Z")
_FIELD_END = r"""\\{0,3}["']\s{0,3}:\s{0,3}\\{0,3}["']\Z"""
_PUBLIC_NUMBER = re.compile(rf"""["'](?:x|y|n|e|kid|iv|tag|x5t|x5c){_FIELD_END}""")
_PRIVATE_NUMBER = re.compile(rf"""["'](?:d|dp|dq|qi|k){_FIELD_END}""")
"""The names of the fields of a JSON web key. Source: RFC 7518, 6."""
_MAX_LENGTH = 180
_MAX_ALONE = 3
"""Random literals within REACH lines, more of which are a table or vectors."""
_REACH = 12
_KNOWN = re.compile(
    r"(?i)sha_?[0-9]|md[245]|crc|digest|hash|checksum|expect|fingerprint|commit|revision|uuid|guid|vectors?(?![<>])|assert|integrity"
    r"|etag|signature|(?<![a-z])sig(?![a-z])|unique_?id"
    r"|argon2|scrypt|bcrypt|\$[0-9]\$"
    r"|cert|public(?!\s*:)|pub_?key|modulus|exponent|base_?(?:32|58|64)|encod|decod|alphabet|charset|test|sample|example|golden|correct|result"
    r"|nonce|cipher_?text|encrypted|(?-i:COMPARE|EQUAL)"
    r"|mangl|symbol|magic|seed|dna|rna|protein|sequence|version|font|boundary|image|png|icon|\b_Z"
)
_OF_AN_ACCOUNT = re.compile(
    r"(?i)(?:secret|client|tenant|app|application|account|user|role|key|access|installation|device|session|auth|api|login"
    r"|customer|subscription)_?ids?\Z"
)
"""The name of an identifier with which an account is reached: it is as random as a secret, and one half of a pair."""
_MIN_HEXADECIMAL = 48


class LeftBecause(StrEnum):
    """The reason why a random literal is no secret."""

    HEXADECIMAL = "hexadecimal"
    ONE_OF_MANY = "one_of_many"
    DATA = "data"
    LETTERS = "letters"
    NAME = "name"
    EXPLAINED = "explained"


LEFT_BECAUSE_WORDS = {
    LeftBecause.HEXADECIMAL: "hexadecimal, with no name of a secret",
    LeftBecause.ONE_OF_MANY: "one of many: a table or vectors",
    LeftBecause.DATA: "data",
    LeftBecause.LETTERS: "letters alone, as of names",
    LeftBecause.NAME: "its name in other signs",
    LeftBecause.EXPLAINED: "explained by the words beside it",
}
"""Reason -> what a report says."""


@dataclass(frozen=True)
class JudgedLiteral:
    """A random literal, and why it is left; None if it is a secret."""

    finding: Finding
    left_because: LeftBecause | None


def find_random_literals(text: str) -> Iterator[Finding]:
    """Yield the random literals that nothing explains."""
    return (each.finding for each in judge_random_literals(text) if each.left_because is None)


def judge_random_literals(text: str) -> list[JudgedLiteral]:
    """Return all random literals of a text with the judgment about each."""
    matches = [
        match
        for start, end in hit_lines(text, condition(RANDOM_CONDITION))
        for match in _LITERAL.finditer(text, start, end)
        if is_random(match["value"]) and not _PUBLIC_NUMBER.search(text, max(0, match.start() - 16), match.start())
    ]
    lines = _line_numbers(text, [match.start() for match in matches])
    return [
        JudgedLiteral(Finding(*match.span(), match["value"]), _reason(text, match, _num_near(lines, index)))
        for index, match in enumerate(matches)
    ]


def left_literals(text: str) -> Iterator[tuple[int, LeftBecause]]:
    """Yield the line, from 1, of each random literal of a text that is left, and why it is."""
    left = [each for each in judge_random_literals(text) if each.left_because is not None]
    lines = _line_numbers(text, [each.finding.start for each in left])
    yield from ((line + 1, each.left_because) for line, each in zip(lines, left, strict=True) if each.left_because)


def _reason(text: str, match: re.Match[str], num_near: int) -> LeftBecause | None:
    value = match["value"]
    name = _NAME_BEFORE.search(text, max(0, match.start() - 80), match.start())
    is_of_an_account = name is not None and _OF_AN_ACCOUNT.search(name[1]) is not None
    if _HEXADECIMAL.fullmatch(value) and not (is_of_an_account and len(value) >= _MIN_HEXADECIMAL):
        return LeftBecause.HEXADECIMAL
    if _PRIVATE_NUMBER.search(text, max(0, match.start() - 16), match.start()):
        return None
    if num_near > _MAX_ALONE:
        return LeftBecause.ONE_OF_MANY
    if len(value) > _MAX_LENGTH or _DATA.match(value) or is_text_in_base64(value):
        return LeftBecause.DATA
    if not any(map(str.isdigit, value)):
        return LeftBecause.LETTERS
    if name and repeats_name(name[1], value):
        return LeftBecause.NAME
    is_mixed = any(map(str.isupper, value)) and any(map(str.islower, value))
    is_plain = not (is_mixed or is_of_an_account or _PREFIXED.fullmatch(value))
    return LeftBecause.EXPLAINED if is_plain or _is_explained(text, match) else None


def _is_explained(text: str, match: re.Match[str]) -> bool:
    """Return whether the statement of a literal, or what follows it on its line, says what it is."""
    after = text[match.end() : text.find("\n", match.end())]
    return _KNOWN.search(statement_before(text, match.start()) + after) is not None


def _num_near(lines: list[int], index: int) -> int:
    return bisect_right(lines, lines[index] + _REACH) - bisect_left(lines, lines[index] - _REACH)


def _line_numbers(text: str, places: list[int]) -> list[int]:
    numbers, number, position = [], 0, 0
    for place in places:
        number += text.count("\n", position, place)
        position = place
        numbers.append(number)
    return numbers
