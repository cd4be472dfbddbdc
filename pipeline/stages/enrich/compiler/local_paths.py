"""Local paths in build contexts: the count that the gate judges.

The scrubber rewrites texts by patterns; here each text is split into names, separators and punctuation, and every separator is
judged by what is beside it. The two share no code, only the names of options, so that neither hides a mistake of the other: what
the scrubber leaves, the gate finds, but for the rest of a path whose beginning is gone: it looks like a relative one. Users too
are read from the database anew.
"""

import html
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

from pipeline.stages.enrich.compiler.path_options import PATH_OPTIONS

TREE_KEYS = frozenset({"unit", "generated", "include_roots", "system_roots", "forced_includes", "forced_macros"})
"""Keys whose values are paths within the source, or below `<build>`."""
_LIST_KEYS = frozenset({"compiler", "language", "standard", "options"})
"""Keys whose values come from fixed lists: a user's name there is a coincidence."""
_HOMES = frozenset({"home", "Users"})
_TOKEN = re.compile(r"[\w.+-]+|[/\\]+|.", re.DOTALL)
_NOT_FIRST = frozenset(" \t\r\n\f\v\"'`<>;,/*()=|&^?!:#[]{}\\")
"""Characters that no name begins with: `/*` is a comment, `/(` and `/=` divide."""
_CLOSING = frozenset(")]}")
_BEFORE_LOGIN = frozenset("/\\\"'`<>;,")
_MAX_LOGIN = 64
"""Tokens of a user and a password in a URL."""
_AFTER_A_VALUE = _CLOSING | {"*"}
"""Characters after which a slash divides, ends a comment or continues a variable."""
_NUMBER = re.compile(r"\d[\w.]*")
_AT_ROOT_NAMES = """
    home Users usr opt etc var tmp mnt srv root private Volumes nix cygdrive scratch gpfs nfs afs
"""
_AT_ROOT = frozenset(_AT_ROOT_NAMES.split())
"""Folders at the root: after a letter of printf or of a regular expression other names may be relative."""
_ROOTS_IN_SMALL = frozenset(name.lower() for name in _AT_ROOT)
_NUM_LAYERS = 4
"""Times that a text is decoded while that changes it."""
_SPELLINGS = (
    (r"[xu]\{0*([0-9a-fA-F]{2})\}", 16),
    (r"x([0-9a-fA-F]{1,2})", 16),
    (r"u00([0-9a-fA-F]{2})", 16),
    (r"U000000([0-9a-fA-F]{2})", 16),
    (r"o\{0*([0-7]{2,3})\}", 8),
    (r"([0-7]{2,3})", 8),
)
"""Numbers of characters after a backslash, and the base of each."""
_ESCAPES = frozenset(["n", "r", "t", "a", "f", "v", "0", "00", "000"])
_BACKSLASHES = re.compile(r"\\+")
_NUMBERS = tuple((re.compile(pattern), base) for pattern, base in _SPELLINGS)
_NAMED = re.compile(r"N\{([A-Za-z ]{1,40})\}")
_ENCODED_TWICE = re.compile(r"%(?:u00|(?:25)+)([0-9a-fA-F]{2})")
_TOO_LONG = re.compile(r"%(?:25)*(?:[cC]|(?:[fF]0%(?:25)*80|[eE]0)%(?:25)*8)([01])%(?:25)*([89abAB][0-9a-fA-F])")
"""An ASCII character in more bytes of UTF-8 than it has, its number in two parts."""
_CONTROL_OF_HTML = re.compile(r"&#(?:[xX]0*([01]?[0-9a-fA-F])|0*([0-2]?[0-9]|3[01]));?(?![0-9a-fA-F])")
"""Number of a control character, most of which a browser leaves out."""
_COLOR = re.compile(r"(?:\x1b|\\[eE])\[[0-9;:?]*[A-Za-z]")
_CONVERSION = re.compile(r"%[-+ #0'*$.\d]{0,20}(?:hh|ll|[hlqjztL])?[a-zA-Z]")
_BLANK_OF_URL = re.compile(r"20|0[09aAdD]")
_SLASH = re.compile(
    r"(?:(?:FRACTION|DIVISION|BIG|SMALL|VERY|HEAVY|FULLWIDTH|TAG|REVERSE) )*(?:SOLIDUS|SLASH|SET MINUS)"
)
"""Name of a character that looks like a slash or a backslash."""


def count_local(contexts: Iterable[str], users: Iterable[str]) -> int:
    """Count the contexts that hold an absolute path, a path out of the tree, an address or one of the users."""
    names = [re.compile(rf"(?<!\w){re.escape(user)}(?!\w)") for user in sorted(users)]
    return sum(any(_is_local(key, text, names) for key, text in _texts(json.loads(context))) for context in contexts)


def users_of(database: bytes) -> frozenset[str]:
    """Return the users below whose home folders a compile database has files or options; none of what is not JSON."""
    try:
        pending = [json.loads(database)]
    except (ValueError, RecursionError):
        return frozenset()
    found: set[str] = set()
    while pending:
        value = pending.pop()
        if isinstance(value, dict | list):
            pending += value.values() if isinstance(value, dict) else value
        elif isinstance(value, str):
            found.update(_users_in(value))
    return frozenset(found)


def _users_in(text: str) -> Iterator[str]:
    for folder, user in pairwise(re.split(r"[/\\]+", text)[1:]):
        name = re.match(r"[^\"'\s]+", user)
        if folder in _HOMES and name is not None:
            yield name[0]


def _texts(context: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in context.items():
        for text in [value] if isinstance(value, str) else value:
            yield key, text


def _is_local(key: str, text: str, names: Sequence[re.Pattern[str]]) -> bool:
    """Return whether a value names the machine or a user. A path within the source may have any name but not lead out."""
    if key in TREE_KEYS:
        return (
            text.startswith(("/", "file:")) or re.match(r"[A-Za-z]:[/\\]", text) is not None or ".." in text.split("/")
        )
    if any(map(holds_local_path, _layers(text))):
        return True
    return key not in _LIST_KEYS and any(name.search(text) for name in names)


def _layers(text: str) -> Iterator[str]:
    """Iterate over a text and over what it says once decoded, twice decoded, while that is another text."""
    for _ in range(_NUM_LAYERS + 1):
        yield text
        before, text = text, _ENCODED_TWICE.sub(_of_number, _TOO_LONG.sub(_of_parts, text))
        text = _CONTROL_OF_HTML.sub(_of_control, text)
        text = _COLOR.sub("\n", _spelled_out(html.unescape(text)))
        text = _without_ends_of_comments("".join(_plain_sign(sign) for sign in text))
        text = unquote(text) if _is_encoded_path(text) else text
        if text == before:
            return


def _plain_sign(sign: str) -> str:
    """Return the slash or backslash that a character of another script is named as, and of other characters their plain form."""
    name = "" if sign.isascii() else unicodedata.name(sign, "")
    if _SLASH.fullmatch(name):
        return "\\" if "REVERSE" in name or "MINUS" in name else "/"
    return sign if not name.startswith("FULLWIDTH") else unicodedata.normalize("NFKC", sign)


def _of_number(found: re.Match[str]) -> str:
    number = int(found[1], 16)
    return _of_ascii(number) if number < 128 or chr(number).isprintable() else found[0]


def _of_parts(found: re.Match[str]) -> str:
    return _of_ascii(64 * int(found[1]) + int(found[2], 16) % 64)


def _of_control(found: re.Match[str]) -> str:
    return _of_ascii(int(found[1], 16) if found[1] is not None else int(found[2]))


def _of_ascii(number: int) -> str:
    """Return a character, a line end for a control character, but for the one that colors begin with."""
    return chr(number) if chr(number).isprintable() or number == 27 else "\n"


def _without_ends_of_comments(text: str) -> str:
    """Return a text with blanks for the ends of its comments, after which a path may begin."""
    pieces, at = [], 0
    while (begin := text.find("/*", at)) >= 0 and (end := text.find("*/", begin + 2)) >= 0:
        pieces += [text[at:end], "  "]
        at = end + 2
    return "".join([*pieces, text[at:]])


def _spelled_out(text: str) -> str:
    """Return a text with the characters that numbers and names after backslashes stand for."""
    pieces, at = [], 0
    for backslashes in _BACKSLASHES.finditer(text):
        sign, end = _spelled_sign(text, backslashes.end())
        pieces.append(text[at : backslashes.start()] + (sign or backslashes[0]))
        at = end
    return "".join([*pieces, text[at:]])


def _spelled_sign(text: str, at: int) -> tuple[str | None, int]:
    """Return the character whose number or name is at a place after backslashes, and the end of that."""
    for pattern, base in _NUMBERS:
        number = pattern.match(text, at)
        if number is not None and int(number[1], base) < 128:
            return _of_ascii(int(number[1], base)), number.end()
    name = _NAMED.match(text, at)
    try:
        return (unicodedata.lookup(name[1]), name.end()) if name is not None else (None, at)
    except KeyError:
        return None, at


def _is_encoded_path(text: str) -> bool:
    """Return whether separators of a path are encoded: two in one word, or one after a colon, a tilde or `..`.

    Or one before a folder that is at the root of machines.
    """
    for word in re.split(r"[\s\0-\x1f\"']+", text.lower()):
        marked = (
            word.replace("%2f", "\0").replace("%5c", "\0").replace("%3a", "\1").replace("%7e", "~").replace("%2e", ".")
        )
        if any(mark in marked for mark in (":\0", "\1\0", "\1/", "\1\\", "..\0", "~\0", "\0\0")):
            return True
        if "%2e" in word and ("../" in marked or "..\\" in marked):
            return True
        if any(_is_encoded_address(*parts) for parts in pairwise(word.split("%40"))):
            return True
        _, *names = marked.split("\0")
        if any(re.split(r"[^\w.+-]", name)[0] in _ROOTS_IN_SMALL for name in names):
            return True
        if any(name[:1] not in ("", "/", "\\") and ("/" in name or "\\" in name) for name in names) or any(names[:-1]):
            return True
    return False


def _is_encoded_address(name: str, host: str) -> bool:
    """Return whether an encoded `@` is that of an address; `%40s.txt` is a format of printf."""
    first, _, rest = host.partition(".")
    is_format = re.fullmatch(r"(?:hh|ll|[hlqjzt])?[a-z]", first) is not None
    return _is_name(name[-1:]) and re.fullmatch(r"[\w-]+", first) is not None and not is_format and rest[:1].isalnum()


def holds_local_path(text: str) -> bool:
    """Return whether a text holds an absolute path, a path that leaves its folder, or an address."""
    text = text.replace("-external:I", "-I")  # the one option with a colon before its path
    tokens, at = _TOKEN.findall(_with_blanks(_TOKEN.findall(text))), 0
    while at < len(tokens):
        end = _end_of_variable_path(tokens, at)
        if end == at and _is_local_at(tokens, at):
            return True
        at = max(end, at + 1)
    return False


def _with_blanks(tokens: Sequence[str]) -> str:
    """Return a text in which a blank is one that is encoded as in a URL, or, before an option or a drive, as in C."""
    pieces = []
    for at, token in enumerate(tokens):
        before, length = _at(tokens, at - 1), 0
        if before == "%" and _BLANK_OF_URL.match(token) and _ends_encoded_blank(tokens, at):
            length = 2
        elif (
            before.endswith("\\") and token[0] in "nrt" and (_is_drive(tokens, at, 1) or _is_certain_option(token[1:]))
        ):
            length = 1
        pieces.append(f"{token[:length]}\n{token[length:]}" if length else token)
    return "".join(pieces)


def _ends_encoded_blank(tokens: Sequence[str], at: int) -> bool:
    """Return whether a path, an option or a drive follows `20` or a control character. `a%20/b` divides."""
    rest, after, second, before = tokens[at][2:], *(_at(tokens, at + place) for place in (1, 2, -2))
    is_slash = after != "" and not after.strip("/")
    if _is_drive(tokens, at, 2):
        return True
    if tokens[at].startswith("20") and (re.search(r"\w\Z", before) or before in _CLOSING):
        return is_slash and second in _AT_ROOT and re.fullmatch(r"(?:-+[A-Za-z]*)?", rest) is not None
    return rest.startswith("-") or (rest == "" and is_slash and second != "%")


def _is_drive(tokens: Sequence[str], at: int, begin: int) -> bool:
    drive = tokens[at][begin:]
    return len(drive) == 1 and drive.isalpha() and _at(tokens, at + 1) == ":" and _is_separator(_at(tokens, at + 2))


def _is_certain_option(name: str) -> bool:
    option = name.lstrip("-")
    return _is_option(name) and (len(option) == 1 or option in PATH_OPTIONS or name.startswith("--"))


def _at(tokens: Sequence[str], at: int) -> str:
    return tokens[at] if 0 <= at < len(tokens) else ""


def _is_name(token: str) -> bool:
    return re.match(r"[\w.+-]", token) is not None


def _is_separator(token: str) -> bool:
    return token[:1] in ("/", "\\") and token != ""


def _end_of_variable_path(tokens: Sequence[str], at: int) -> int:
    """Return the end of a path that begins with a variable (`$X`, `${X}`, `$(X)`, `%X%`, `@X@`); `at` where none does."""
    sign, first, second, third = (_at(tokens, at + place) for place in range(4))
    is_numbered = _at(tokens, at - 1).isdigit() and "%" in tokens[max(0, at - 3) : at - 1]  # `%1$s` of printf
    if sign == "$" and re.match(r"\w", first) and not is_numbered:
        end = at + 2
    elif (sign == "$" and (first, third) in {("{", "}"), ("(", ")")}) and re.fullmatch(r"\w+", second):
        end = at + 4
    elif sign == second and _is_name_between(sign, first) and not (sign == "%" and (third == "*" or _is_name(third))):
        end = at + 3
    else:
        return at
    while _is_separator(_at(tokens, end)) and not _is_escape(tokens, end):
        end += 2 if _is_name(_at(tokens, end + 1)) else 1
    return end


def _is_name_between(sign: str, name: str) -> bool:
    """Return whether a name is that of a variable between two of a character, `@X@` or `%X%`."""
    return sign in ("@", "%") and re.fullmatch(r"\w+", name) is not None and not (sign == "%" and name[0].isdigit())


def _is_escape(tokens: Sequence[str], at: int) -> bool:
    """Return whether a backslash is that of an escape of C with a slash after it."""
    return tokens[at] == "\\" and _at(tokens, at + 1) in _ESCAPES and _at(tokens, at + 2).startswith("/")


def _is_local_at(tokens: Sequence[str], at: int) -> bool:
    token, after, second = (_at(tokens, at + place) for place in range(3))
    if token == "~":
        return _is_separator(after) or (_is_name(after) and _is_separator(second))
    if token == "@":
        is_address = re.match(r"[\w-]+\.\w", after) is not None
        return _is_name(_at(tokens, at - 1)) and (is_address or _is_after_scheme(tokens, at))
    if _is_name(token):
        return re.search(r"(?<!\.)\.\.\Z", token) is not None and _is_separator(after)
    return _is_separator(token) and _begins_path(tokens, at)


def _is_after_scheme(tokens: Sequence[str], at: int) -> bool:
    """Return whether a token is in the authority of a URL: after `://`, without a slash since."""
    before = range(max(0, at - _MAX_LOGIN), at)
    begin = max((place for place in before if tokens[place][0] in _BEFORE_LOGIN or tokens[place].isspace()), default=0)
    return begin > 0 and tokens[begin] == "//" and tokens[begin - 1] == ":"


def _begins_path(tokens: Sequence[str], at: int) -> bool:
    """Return whether a run of separators begins a path, by what is before it."""
    separators, before, after = tokens[at], _at(tokens, at - 1), _at(tokens, at + 1)
    if before == ":" and _is_after_drive_or_file(tokens, at):
        return True
    if before == ":" and separators == "//" and re.search(r"\w\Z", _at(tokens, at - 2)):
        return False
    if _is_name(before) and _follows_a_conversion(tokens, at):
        return True
    if _is_name(before) and before.endswith(("+", "-")) and separators.strip("/") == "" and after in _AT_ROOT:
        return True
    if _is_name(before) and not before.strip("+-") and _at(tokens, at - 2) in (")", "]", "}"):
        return False
    if _is_name(before) and before.strip("+-"):
        return _is_option(before) and (_is_root(separators, after) or _begins_share(tokens, at))
    is_any = before in _CLOSING or before == "%" or (before == "*" and _at(tokens, at - 2).endswith("."))
    if is_any and separators.strip("/") == "" and after in _AT_ROOT:
        return True
    if before in _AFTER_A_VALUE or (before == "%" and re.match(r"[\w.+%-]", _at(tokens, at - 2))):
        return False
    if separators.endswith("/"):
        return _begins_at_root(tokens, at)
    return _begins_share(tokens, at)


def _follows_a_conversion(tokens: Sequence[str], at: int) -> bool:
    """Return whether separators are after an escape of C, or before a folder at the root after one or after `%s`."""
    separators, sign, letter, after = (_at(tokens, at + place) for place in (0, -2, -1, 1))
    if separators.strip("/"):
        return False
    if sign.endswith("\\"):
        if letter in _ESCAPES:
            return _is_root("/", after)
        return after in _AT_ROOT and re.fullmatch(r"\w", letter) is not None
    begin = max((place for place in range(max(0, at - 9), at) if tokens[place] == "%"), default=at)
    return after in _AT_ROOT and _CONVERSION.fullmatch("".join(tokens[begin:at])) is not None


def _is_option(name: str) -> bool:
    """Return whether a path follows this name without a separator, as `-I`, `-isystem`, `--any` and unknown small words."""
    option = name.lstrip("-")
    if not name.startswith("-") or re.match(r"[A-Za-z]", option) is None:
        return False
    if len(option) == 1 or option in PATH_OPTIONS or name.startswith("--"):
        return True
    begun = any(option.startswith(each) and re.match(r"[\w.+]", option[len(each) :]) for each in PATH_OPTIONS)
    return option[0].islower() and not begun


def _is_root(separators: str, after: str) -> bool:
    if separators.endswith("/"):
        return after[:1] not in _NOT_FIRST and after[:1].isprintable() and after != ""
    return len(separators) > 1 and not separators.strip("\\") and re.match(r"\w", after) is not None


def _is_after_drive_or_file(tokens: Sequence[str], at: int) -> bool:
    scheme, comes_comment = _at(tokens, at - 2), tokens[at][0] == "/" and _at(tokens, at + 1) == "*"
    is_drive = re.search(r"(?<!\w)[A-Za-z]\Z", scheme) is not None or (
        scheme[-1:].isascii() and _is_option(scheme[:-1])
    )
    return scheme.lower().endswith("file") or (is_drive and scheme[-1:].isalpha() and not comes_comment)


def _begins_at_root(tokens: Sequence[str], at: int) -> bool:
    """Return whether a path begins with these slashes: one and a name, or two and two names, as `//` is a comment too."""
    before, after, second = (_at(tokens, at + place) for place in (-1, 1, 2))
    num_slashes = len(tokens[at]) - len(tokens[at].rstrip("/"))
    if not _is_root("/", after):
        return False
    if before == ":" and num_slashes > 2:
        return True
    if num_slashes > 1:
        return _is_name(after) and _is_separator(second)
    divides = before.isspace() and _NUMBER.fullmatch(after) is not None and not _is_separator(second) and second != "@"
    return not divides and not _ends_element(tokens, at)


def _ends_element(tokens: Sequence[str], at: int) -> bool:
    """Return whether this slash is that of `</name>`."""
    end = at + 1
    while end < len(tokens) and (tokens[end] == ":" or _is_name(tokens[end])):
        end += 1
    return _at(tokens, at - 1) == "<" and _at(tokens, end) == ">"


def _begins_share(tokens: Sequence[str], at: int) -> bool:
    separators, after, second = tokens[at], _at(tokens, at + 1), _at(tokens, at + 2)
    if separators.strip("\\"):
        return False
    if len(separators) == 1:
        return after.lower() == "users" and second.startswith("\\")
    return re.match(r"\w", after) is not None or (after in ("?", ".") and second.startswith("\\"))
