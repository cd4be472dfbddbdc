"""Interface names: literals beside the name of a password that are names too, of types, algorithms, modules or of a table of words.

A table of words has several literals in a row, each a name as code has them; pairs of names and values have the word for a user
or a server among them.
"""

import re
from collections.abc import Iterable

_IDENTIFIER = r"[A-Za-z_]\w{0,40}"
_NAMES_BEFORE = re.compile(rf"(?:\"{_IDENTIFIER}\"\s{{0,40}},\s{{0,40}}){{1,6}}\"?\Z")
_NAMES_AFTER = re.compile(rf"\"?(?:\s{{0,40}},\s{{0,40}}\"{_IDENTIFIER}\"){{1,7}}(?!\s{{0,40}},\s{{0,40}}\"[^\"]*\W)")
_NAME = re.compile(rf"\"({_IDENTIFIER})\"")
_NUM_CHARACTERS = 360
_MIN_OTHERS = 3
"""Names in a table at least, beside that of the password and the one that is judged."""
_OF_PAIRS = re.compile(
    r"(?i)user|login|\buid\b|account|host|server|database|\bdb(?:_?name)?\b|port\b|e?mail|client|connect"
)
_TYPE = re.compile(
    r"(?i)(?:(?:var|n|tiny|medium|long|u|unsigned|fixed|std)_?){0,2}(?:char|text|string|str|blob|binary|bytes?|int|integer|float"
    r"|double|real|decimal|numeric|bit|bool|hex|utf|ucs)_?(?:[0-9]{1,4}|\([0-9]{1,4}\))(?:_?(?:t|mb[0-9]|le|be|bin|ci|unicode)){0,3}"
)
_NAMER = re.compile(
    r"(?:\A|_|(?<=[a-z])(?=[A-Z]))(?i:register(?!_?(?:user|account))|import|translate|n?gettext)(?![a-z])|(?i:load|add|find|import|get)_?(?i:plugin|module|test|suite)"
    r"|(?:\A|_)METHOD\Z|\A(?:_?tr|i18n|bind)\Z"
)
"""A function that gets names of code, or words of a language."""
_NUMBERED = re.compile(r"[A-Za-z]{2,24}[0-9]")


def is_type_name(value: str) -> bool:
    """Return whether a value is the name of a type with its length: `varchar64`, `CHAR(41)`, `utf8mb4`."""
    return _TYPE.fullmatch(value) is not None


def is_in_table_of_names(text: str, start: int, end: int) -> bool:
    """Return whether the literal that a stretch is in stands in a row of names that are no pairs of names and values."""
    before = _NAMES_BEFORE.search(text, max(0, start - _NUM_CHARACTERS), start)
    after = _NAMES_AFTER.match(text, end, end + _NUM_CHARACTERS)
    if after is None:
        return False
    others = [*_NAME.findall(before[0] if before else ""), *_NAME.findall(after[0])]
    return len(others) > _MIN_OTHERS and not any(map(_OF_PAIRS.search, others))


def names_something(callers: Iterable[str]) -> bool:
    """Return whether one of the functions gets names of code or words of a language, and no values: `registerWidget`, `tr`."""
    return any(map(_NAMER.search, callers))


def is_numbered_word(value: str) -> bool:
    """Return whether a value is a word with one digit after it, as libraries and suites are named: `sqlite3`."""
    return _NUMBERED.fullmatch(value) is not None
