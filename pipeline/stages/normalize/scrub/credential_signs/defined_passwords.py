"""Defined passwords: what a macro that is named after a password stands for without quotes, or in those that another macro adds.

Names and numbers that signs join are expressions of code: a word is a password there if it ends in a number of two digits or more,
as those of macros and functions rarely do.
"""

import re

from pipeline.stages.normalize.scrub.credential_signs.password_names import NAME_PART, NameStrength, name_strength
from pipeline.stages.normalize.scrub.credential_signs.password_values import (
    PHRASE_AND_NUMBER,
    is_leet_with_number,
    is_name_in_code,
    looks_fair,
    looks_like_password,
)

_HEAD = r"\A[ \t]{0,40}#[ \t]{0,40}define[ \t]{1,40}(?P<name>\w{1,80})[ \t]{1,80}"
_TAIL = r"[ \t]{0,80}(?:/[/*](?s:.*))?\Z"
DEFINED = (
    re.compile(rf"{_HEAD}(?P<value>[^\s\"'(){{}}<>|&,;]{{4,200}}){_TAIL}"),
    re.compile(
        rf"{_HEAD}(?P<quoting>_?(?i:x?str(?:ing(?:i[fz](?:y|e|ication))?)?|x?quote|to_?string|_?text|_t|q))\([ \t]?"
        rf"(?P<value>[^\s\"'(){{}}<>|&,;]{{4,200}})[ \t]?\){_TAIL}"
    ),
)
"""Expressions of a line that defines a macro, with its name and what it stands for."""
DEFINED_CONDITION = (
    rf"#[ \t]*define[ \t]+\w*(?i:{NAME_PART})\w*[ \t]+(?:[^\s\"'(]{{4}}|_?(?i:x?str|x?quo|to_?s|_?tex|_t|q)\w*\()"
)
"""Expression that is true of every such line."""
_CODE = re.compile(r"[\w.:+*/%^=~-]+")
"""A name, a number, or names and numbers with operators between them."""
_WORD_AND_NUMBER = re.compile(
    r"(?!(?i:reg|port|pin|gpio|bit|mask|u?int|vec|mat|func|adc|uart|timer))[A-Za-z]{5,24}[0-9]{2,6}"
)


def is_password_of_macro(_line: str, match: re.Match[str]) -> bool:
    """Return whether what a macro stands for without quotes is a password: no name, number or expression of code."""
    name, value = match["name"], match["value"]
    if name_strength(name) is not NameStrength.SURE or not looks_fair(value):
        return False
    if "quoting" in match.groupdict():
        return value != value.upper() and (not is_name_in_code(value) or is_leet_with_number(value))
    is_word = _WORD_AND_NUMBER.fullmatch(value) or PHRASE_AND_NUMBER.fullmatch(value) or is_leet_with_number(value)
    if name.isupper() and is_word and value != value.upper():
        return True
    return _CODE.fullmatch(value) is None or (value.isalnum() and looks_like_password(value))
