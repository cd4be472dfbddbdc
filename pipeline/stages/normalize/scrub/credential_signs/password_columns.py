"""Password columns: passwords in rows of a table whose columns are named, by a comment, by a structure's fields or by SQL.

The comment is after a row or before the rows: `// user, password`. The structure is before its name or its rows:
`struct { const char* user; const char* password; } logins[] = {{"bob", "..."}};`. A table of users has two columns:
names and passwords.
"""

import re
from collections.abc import Iterator, Sequence

from pipeline.stages.normalize.scrub.credential_signs.call_literals import arguments_of
from pipeline.stages.normalize.scrub.credential_signs.password_names import NameStrength, name_strength
from pipeline.stages.normalize.scrub.credential_signs.password_values import (
    is_given_password,
    looks_fair_in_test,
)
from pipeline.stages.normalize.scrub.finding import Finding

_COLUMN = re.compile(r"[^\W\d][\w .()*'-]{0,30}")
_MARKS = ("//", "/*", "#")
_SEPARATOR = re.compile(r"[,/|;:]|[-=]>")
_STRUCTURE = re.compile(
    r"\b(?:struct|class)\s+(?P<name>\w{1,60})?\s{0,4}(?:final\s)?\{(?P<fields>[^{}()]{1,600})\}\s{0,4}(?P<variable>\w{1,60})?"
)
_DECLARED = re.compile(
    r"\n[ \t]{0,40}(?:#[ \t]{0,4}define[ \t]{1,8}\w{1,60}[ \t]{1,8}"
    r"|[A-Za-z_][\w:<>,*& \t]{0,100}(?:\[\w{0,12}\])?[ \t]{0,4}[={(][ \t]{0,4})"
    r"(?P<literal>(?:u8|[uUL])?\"[^\"\n]{4,200}\")[ \t]{0,4}[)}]?[ \t]{0,4};?[ \t]{0,4}$",
    re.MULTILINE,
)
_OF_WHAT = re.compile(r" (?:of|for|to|on) ")
_KEYWORD = re.compile(r"\b(?:struct|class)\s")
_ROW = re.compile(r"[{(]\s{0,80}(?=[^\s{(])")
_INSERTED = re.compile(
    r"(?i)\bINSERT\s{1,4}(?:IGNORE\s)?INTO\s{1,4}[\w.`\"\\\[\]]{1,80}\s{0,4}\((?P<columns>[^()]{3,400})\)[\s\"\\n]{0,40}VALUES[\s\"\\n]{0,40}(?=\()"
)
_ROW_OF_VALUES = re.compile(r"[\s,\"\\n]{0,40}\((?P<values>(?:[^()']|'[^'\n]{0,200}'){1,800})\)")
_VALUE = re.compile(r"\s*(?:'(?P<text>[^'\n]*)'|[^',]*)\s*(?:,|\Z)")
_TABLE_OF_USERS = re.compile(
    r"(?i)\b\w{0,30}?(?:users|accounts|logins|admins|operators)(?:\[\w*\]){0,2}\s?=?\s?(?=\{\s{0,40}\{?\s{0,40}\")"
)
_COLUMN_OF_PASSWORDS = r"(?i:pass|pwd|psw|pw\b|secret|token|key\b|kennwort|contrase|senha)"
COLUMN_CONDITION = (
    rf"(?://|/\*|#)[ \t\w.()*',/|;:>=-]*{_COLUMN_OF_PASSWORDS}[ \t\w.()*',/|;:>}}-]*$"
    rf"|\b(?:struct|class)\s[^;{{}}()\n]*\{{[^{{}}()]*{_COLUMN_OF_PASSWORDS}"
    rf"|(?i:\bINSERT[ \t])[^\n]*{_COLUMN_OF_PASSWORDS}|(?i:users|accounts|logins|admins|operators)(?:\[\w*\])*[ ]?=?[ ]?\{{"
)
"""Expression that is true of every line that names a column of passwords, or where a structure with one begins."""
_NUM_CHARACTERS_OF_ROWS = 4_000
_ACTIONS_WORDS = "ask bad change check enter hash hide invalid missing no print reset show test without wrong"
_ACTIONS = frozenset(_ACTIONS_WORDS.split())
_MIN_NOTED = 8
_MAX_VALUES = 40
_MAX_COLUMNS, _MAX_ROWS, _MAX_USES, _MAX_WORDS_OF_NOTE = 7, 64, 8, 3
_MAX_WORDS = 7


def password_columns(text: str, start: int, end: int) -> Iterator[Finding]:
    """Yield the passwords of the columns that a line names, or of the structure, table or insertion that begins on it."""
    for inserted in _INSERTED.finditer(text, start, end):
        yield from _inserted(text, inserted)
    if table := _TABLE_OF_USERS.search(text, start, end):
        yield from _in_rows(text, table.end(), _end_of_rows(text, table.end()), (1,))
    place = max(text.rfind(mark, start, end) for mark in _MARKS)
    note = text[place:end].strip(" \t/*#!<{}.:") if place >= 0 else ""
    names = _SEPARATOR.split(note) if note else []
    is_heading = 1 < len(names) <= _MAX_COLUMNS and all(_COLUMN.fullmatch(name.strip()) for name in names)
    is_heading = is_heading and len(set(_SEPARATOR.findall(note))) == 1
    if is_heading and (columns := _password_columns(names)):
        rows = (start, place) if re.search(r"[{(]", text[start:place]) else (end, _end_of_rows(text, end))
        yield from _in_rows(text, *rows, columns)
    elif len(names) == 1 and _is_note_of_a_password(names[0]):
        is_above = not text[start:place].strip(" \t*")
        line = _DECLARED.match(text, end) if is_above else None
        first, last = line.span("literal") if line else (start, start if is_above else place)
        literals = list(arguments_of(text[:last], first, closes=False))
        if len(literals) == 1 and len(literals[0].value) >= _MIN_NOTED and looks_fair_in_test(literals[0].value):
            yield Finding(literals[0].start, literals[0].end, literals[0].value)
    structure = _STRUCTURE.search(text, start, start + 1_000) if _KEYWORD.search(text, start, end) else None
    columns = _password_columns(re.split("[;,]", structure["fields"])) if structure else ()
    if structure and columns:
        yield from _of_structure(text, structure, columns)


def _inserted(text: str, inserted: re.Match[str]) -> Iterator[Finding]:
    """Yield the values of columns of passwords that a statement of SQL inserts."""
    columns = _password_columns([each.strip('`"[]\\ ') for each in inserted["columns"].split(",")])
    place = inserted.end()
    while columns and (row := _ROW_OF_VALUES.match(text, place)):
        values = list(zip(_VALUE.finditer(text, *row.span("values")), range(_MAX_VALUES), strict=False))
        for value in (value for value, number in values if number in columns and value["text"]):
            if is_given_password(value["text"]):
                yield Finding(*value.span("text"), value["text"])
        place = row.end()


def _is_note_of_a_password(note: str) -> bool:
    """Return whether a comment says in a few words that the literal beside it is a password."""
    words = _OF_WHAT.split(note)[0].split() if len(note.split()) <= _MAX_WORDS else []
    if not _ACTIONS.isdisjoint(word.lower() for word in words):
        return False
    return 0 < len(words) <= _MAX_WORDS_OF_NOTE and name_strength(words[-1]) is NameStrength.SURE


def _password_columns(names: Sequence[str]) -> tuple[int, ...]:
    """Return which names are those of passwords, if others are not."""
    names = [re.sub(r"\[[^][]*\]|=.*|[*&]", "", name).strip() for name in names]
    strengths = [name_strength(name.rpartition(" ")[2]) for name in names]
    found = tuple(
        index for index, strength in enumerate(strengths) if strength is NameStrength.SURE or names[index] == "pass"
    )
    return found if len(found) < len([name for name in names if name]) else ()


def _end_of_rows(text: str, start: int) -> int:
    """Return where the table ends that begins at a place: at an empty line or at the bracket that closes it."""
    limit = min(len(text), start + _NUM_CHARACTERS_OF_ROWS)
    ends = [place for end in ("\n\n", "};", "\n}") if (place := text.find(end, start, limit)) >= 0]
    return min(ends, default=limit) + 1


def _of_structure(text: str, structure: re.Match[str], columns: tuple[int, ...]) -> Iterator[Finding]:
    """Yield the passwords in the initializers of a structure: that after it, and those after its name elsewhere."""
    places = [structure.end()] if structure["variable"] else []
    if structure["name"]:
        use = re.compile(rf"\b{structure['name']}\b[^;{{}}()]{{0,80}}(?=\{{)")
        places += [match.end() for match, _ in zip(use.finditer(text, structure.end()), range(_MAX_USES), strict=False)]
    for place in places:
        end = text.find(";", place)
        yield from _in_rows(text, place, min(place + _NUM_CHARACTERS_OF_ROWS, end if end >= 0 else len(text)), columns)


def _in_rows(text: str, start: int, end: int, columns: tuple[int, ...]) -> Iterator[Finding]:
    for row, _ in zip(_ROW.finditer(text, start, end), range(_MAX_ROWS), strict=False):
        for each in arguments_of(text, row.end()):
            is_alone = each.depth == 0 and each.end < end and each.position in columns
            if is_alone and looks_fair_in_test(each.value):
                yield Finding(each.start, each.end, each.value)
