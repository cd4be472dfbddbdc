"""Credentials in running text: connection strings, URIs, headers, command lines and configurations, in literals and comments.

No quotes are around such a value, so that it counts where a text is: code assigns expressions to a name.

Sources: RFC 3986 (user information), RFC 6750 and 7617 (headers), the manuals of PostgreSQL, netrc and Docker.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from pipeline.stages.normalize.scrub.credential_signs.call_literals import is_in_literal
from pipeline.stages.normalize.scrub.credential_signs.command_lines import (
    COMMAND_CONDITION,
    IDENTIFIED_BY,
    PASSWORD_ARGUMENTS,
    PLAIN_LOGIN,
    PROTOCOL_CONDITION,
    PROTOCOL_PASSWORDS,
)
from pipeline.stages.normalize.scrub.credential_signs.defined_passwords import (
    DEFINED,
    DEFINED_CONDITION,
    is_password_of_macro,
)
from pipeline.stages.normalize.scrub.credential_signs.password_names import (
    NAME_PART,
    OF_A_KEY,
    NameStrength,
    name_strength,
)
from pipeline.stages.normalize.scrub.credential_signs.password_values import (
    HEXADECIMAL,
    UNSPACED,
    UUID,
    holds_login,
    is_defined_password,
    is_given_password,
    is_name_of_secret,
    is_named_password,
    is_passed_password,
    is_possible,
    is_text_in_base64,
    is_told_password,
    looks_fair,
    looks_like_key,
    looks_like_password,
)
from pipeline.stages.normalize.scrub.credential_signs.prose_passwords import (
    ASSIGNED_ALONE,
    OF_ASSIGNMENT,
    PROSE,
    is_assigned_alone,
)
from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.stages.normalize.scrub.hits import PossibleFinders, condition, hit_lines, possible_finders
from pipeline.stages.normalize.scrub.joined_text import with_blanks_of_escapes
from pipeline.stages.normalize.scrub.random_text import is_random

_VALUE = rf"""[^\s"'`<>;,&\\(){{}}\[\]|{UNSPACED}]"""
_END = rf"""(?=[\s"'`<>;,&\\)}}\]|.{UNSPACED}]|\Z)"""
_SECRET = rf"""[^\s"'`<>;\\{UNSPACED}]"""

_NAMED = re.compile(
    rf"(?:(?<=\\[nrt])|(?<![\w.\-\\]))(?P<name>[\w.\-]{{1,80}})(?:\\{{0,3}}[\"'])?[ \t]{{0,3}}(?P<operator>=|:|>)[ \t]{{0,3}}"
    rf"(?:<!\[CDATA\[)?(?!//|:)(?=(?P<value>{_VALUE}{{4,200}}){_END})"
)
_URI = re.compile(
    r"(?i)[a-z][a-z0-9+.\-]{1,24}://(?P<user>[^\s/:@\"'<>\[]{0,128}):(?P<value>[^\s/@\"'<>]{1,256})@(?=[\w\[{%$])"
)
_ESCAPE_OF_URI = re.compile("%[0-9A-Fa-f]{2}")
_HEADER = re.compile(
    r"(?i)\b(?P<scheme>basic|bearer|token|apikey|authtoken|auth|login)[ \t]+(?P<value>[A-Za-z0-9+/_.~\-]{8,2000}={0,2})"
)
_RAW_HEADER = re.compile(
    r"(?i)\b(?:authorization|api-?key|x-[a-z-]{0,30}(?:token|key))[ \t]*:[ \t]*"
    rf"(?!(?:basic|bearer|token|apikey|negotiate|digest)[ \t])(?P<value>{_SECRET}{{8,400}})"
)
_SCHEME_HEADER = re.compile(
    r"(?i)\bauthorization[\"']?[ \t]*[:,][ \t]*\\?[\"']?(?!(?:basic|bearer|token|apikey|negotiate|digest)\b)[a-z][\w-]{1,24}[ =]"
    r"(?:[a-z]{2,8}=)?\\?[\"']?(?P<value>[A-Za-z0-9+/_.~-]{16,400}={0,2})"
)
_ENVIRONMENT = re.compile(
    rf"(?:^|[\s\"'`;])(?:ENV|ARG|setenv|setx|SETX|set -gx)[ \t]+(?P<name>\w{{1,80}})[ \t]+\\?[\"']?(?P<value>{_SECRET}{{4,200}})"
)
_OPTION = re.compile(
    r"(?i)(?:(?<=\s)|(?<=[\"'`])|(?<=\\n)|^)--?(?P<name>[a-z\-]*(?:password|passwd|passphrase|pass|secret|token|key|pwd|pw))[ \t]+"
    rf"(?!-)(?P<value>{_SECRET}{{4,200}})"
)
_LOGIN = re.compile(
    r"(?i)\b(?:login|user|username|account|machine)[ \t]{1,8}\S{1,100}[\s\"]{1,16}(?:password|passwd|pass)[ \t]{1,8}"
    rf"(?P<value>{_SECRET}{{4,200}})"
)
_PGPASS = re.compile(
    r"(?P<head>(?:\*|(?<![\w.\-])[A-Za-z][\w.\-]*):(?:[0-9]{2,5}|\*):(?:\*|[A-Za-z_][\w\-]*):(?:\*"
    r"|[A-Za-z_][\w.\-]*)):(?P<value>[^\s:\"'\\]{4,200})"
)
_CONNECTION = re.compile(
    r"(?i)(?:host|server|data source|addr(?:ess)?|database|dbname|initial catalog|uid|user(?:name| id)?|port|dsn|driver|ssl)\s?="
)
_COMMAND_LINE = re.compile(
    r"(?:[\w.-]*[$#>%] )?(?:sudo )?(?:curl|wget|docker|mysql|psql|redis-cli|sshpass|http) "
    r"|(?i:driver|server|data source|provider|dsn|host|user(?: id)?|uid|database)=[^;=\"\n]{1,80};[\w ]{2,40}="
    r"|(?:-u|--user|-H|--header)[ =]"
)
_ELEMENT = re.compile(
    r"<(?P<name>[\w.:\-]{1,80})(?:[ \t][^<>\n]{0,120})?>[ \t]{0,20}\n\s{0,80}(?P<value>[^\s<>\"']{4,200})[ \t]{0,20}\n\s{0,80}</"
)
_ELEMENT_ON_A_LINE = re.compile(r"<(?P<name>[\w.:\-]{1,80})(?:[ \t][^<>\n]{0,120})?>(?P<value>[^\s<>\"']{4,200})</")
_ELEMENT_END = re.compile(r"[ \t]*(?:[<\]\\\"]|\Z)")
_SETTING = re.compile(
    r"[ \t]*(?:-[ \t]+)?(?P<name>[\w.\-]{1,120})[ \t]*[:=][ \t]*(?P<value>[^\s\"'(){}\[\]<>;,]{4,200})[ \t]*(?:\)\w{0,16}\".*)?\Z"
)
_COMMENT_AFTER = re.compile(r"(?<!:)//.*")
_OF_SHELL = re.compile(r"\A--?[a-z]|\A[A-Z][A-Z0-9]*_[A-Z0-9_]+\Z|\A(?:PG|MYSQL)[A-Z]+\Z")
"""The name of an option or of a variable of the environment."""
_END_OF_TEXT = re.compile(r"[ \t]*(?:\\n|[\"'`]|\*/|\n|\Z)")
_CODE_AFTER = re.compile(r"\(|\[|->|\.\w+\(")
_CODE_AFTER_NAME = re.compile(r"\s*(?:\(|\[)")
_ALONE = re.compile(
    rf"(?i)\A[\s/*#;\"']{{0,20}}(?:password|passwd)[ \t]+(?P<value>{_SECRET}{{6,200}})\s{{0,4}}"
    rf"(?:[\"'][\"'\s*/;,)]{{0,8}}|[\s*/]{{0,8}})\Z"
)
_LOGIN_ALONE = re.compile(
    rf"(?i)\A[\s/*#;\"']{{0,20}}(?:admin|root|administrator|postgres)[ ]?[:/][ ]?"
    rf"(?!x?:[0-9])(?P<value>{_SECRET}{{6,100}})[\"'\s*/]{{0,8}}\Z"
)
_SENT = re.compile(
    rf"(?i)(?:p?assw|pwd)[^\n]{{0,60}}\bsend[ \t]+(?:--[ \t]+)?\\?\"(?P<value>{_SECRET}{{4,100}})(?:\\{{1,2}}[rn]|\s)"
)
_ORACLE = re.compile(r"(?i)\boracle:\w{2,8}:[\w$#]{1,40}/(?P<value>[^\s/@\"'<>]{3,200})@")
_RUNAS = re.compile(rf"(?i)\brunas\b[^\n]{{0,80}}[ \t]/user:\S{{1,60}}[ \t]+(?P<value>{_SECRET}{{4,100}})")
_KEY_AND_STRING = re.compile(r"<key>(?P<name>[\w.\-]{1,80})</key>\s{0,80}<string>(?P<value>[^\s<>]{4,200})</string>")
_ORACLE_LOGIN = re.compile(
    r"(?i)(?:(?:logon|connect|oracle|occi|otl)[^\n]{0,120}?\"|\"(?=[^\s/\"]{1,40}/[^\s/\"]{4,200}@//[\w.-]{1,80}:[0-9]{2,5}/))"
    r"[a-z][\w$#]{0,40}/(?P<value>[^\s/@\"'<>]{4,200})@[\w.:/-]{1,100}\""
)
_USER_BEFORE = re.compile(r"(?i)(?:(?<=\\n)|(?<![a-z]))(?:user(?:name)?|login|account|uid)(?![a-z])")
_USER_AFTER = re.compile(r"(?i)[ ,;]{1,3}(?:user(?:name)?|login|uid)[ ]?[=:]")
_NUM_CHARACTERS_BEFORE = 4_000
_MAX_LINE = 4_000
_MAX_VALUE, _MIN_NUMBER = 500, 6
_CLOSED = "\n\n"
"""Line ends in place of the end of a comment: no value goes on there."""
_MIN_OF_COMMAND = 24
"""Characters of a token after the word of a command, such as `cargo login`."""


def find_text_credentials(text: str) -> Iterator[Finding]:
    """Yield passwords that are in running text without quotes of their own."""
    if "</" in text:
        yield from _in_elements(text)
    if "</key>" in text:
        yield from _in_key_and_string(text)
    for first, last in hit_lines(text, _condition()):
        yield from _in_raw_literal(text, first, last)
        for start, end in _windows(text, first, last):
            line = text[start:end]
            for value_start, value_end in _in_line(text, line, start):
                if start + value_end == end < last and not text[end].isspace():
                    continue  # it may go on: the next stretch has all of it
                yield Finding(start + value_start, start + value_end, line[value_start:value_end])


def _in_raw_literal(text: str, start: int, end: int) -> Iterator[Finding]:
    """Yield the value of a line of a raw literal that is a name, a separator and a value, as in YAML, TOML and INI."""
    match = _SETTING.match(text, start, end)
    is_given = match and name_strength(match["name"]) is NameStrength.SURE and is_given_password(match["value"])
    if match and is_given and is_raw_text(text[max(0, start - _NUM_CHARACTERS_BEFORE) : start]):
        yield Finding(*match.span("value"), match["value"])


def _in_elements(text: str) -> Iterator[Finding]:
    """Yield the values of elements that are on a line of their own."""
    for start, end in hit_lines(text, condition(rf"<[\w.:\-]{{0,80}}(?i:{NAME_PART})[^<>\n]{{0,120}}>[ \t]{{0,20}}\n")):
        place = text.rfind("<", start, end)
        match = _ELEMENT.match(text, place) if place >= 0 else None
        if match and name_strength(match["name"]) is NameStrength.SURE and is_given_password(match["value"]):
            yield Finding(*match.span("value"), match["value"])


def _in_key_and_string(text: str) -> Iterator[Finding]:
    """Yield the values of a property list."""
    for match in _KEY_AND_STRING.finditer(text):
        if name_strength(match["name"]) is NameStrength.SURE and is_given_password(match["value"]):
            yield Finding(*match.span("value"), match["value"])


def _windows(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield a line in stretches that end at blanks, or overlap: what is around a place of it is searched for each place."""
    while end - start > _MAX_LINE:
        blank = text.rfind(" ", start + 1, start + _MAX_LINE)
        middle = blank if blank > 0 else start + _MAX_LINE
        yield start, middle
        start = middle if blank > 0 else middle - _MAX_VALUE
    yield start, end


def _in_line(text: str, line: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield where the passwords of a line are, of the forms whose conditions hold on it."""
    forms = [_FORMS[index] for index in sorted(_form_set().of(line))]
    is_running: bool | None = None
    searched = _with_closed_comments(line) if "*/" in line else line
    searched = with_blanks_of_escapes(searched) if "\\" in line else searched
    for form in forms:
        for match in (each for expression in form.expressions for each in expression.finditer(searched)):
            if form.is_password(searched, match):
                if not form.is_anywhere and is_running is None:  # much is read for it
                    is_running = is_running_text(text, start, line)
                if form.is_anywhere or is_running:
                    yield match.span("value")


def _with_closed_comments(line: str) -> str:
    """Return a line with line ends in the place of the ends of its comments: no value goes on behind one."""
    parts = line.split("*/")
    ends = ("*/" if is_in_literal("*/".join(parts[:number])) else _CLOSED for number in range(1, len(parts)))
    return "".join(map("".join, zip(parts, [*ends, ""], strict=True)))


def is_uri_password(value: str) -> bool:
    """Return whether the second half of a URI's user information is a password, and no word of documentation."""
    value = (_ESCAPE_OF_URI.sub("", value) or value).rstrip("\\")
    is_word = value.lower() in ("bar", "baz", "foo", "pwd", "pass", "pw", "psw") or is_name_of_secret(value)
    return (
        len(value) >= 3
        and any(map(str.isalnum, value))
        and not is_word
        and is_possible(value.ljust(4, "0"))
        and not (value.isdigit() and len(value) < _MIN_NUMBER)
    )


def is_key_of_header(value: str) -> bool:
    """Return whether the value after a scheme of a header is a key: random, or a UUID."""
    return is_random(value) or looks_like_password(value) or UUID.fullmatch(value) is not None


def is_running_text(text: str, start: int, line: str) -> bool:
    """Return whether a line is a comment, or holds a literal, or is inside a longer one of either."""
    stripped = line.lstrip()
    if _COMMAND_LINE.match(stripped):
        return True
    if (
        stripped.startswith(("//", "/*", "* ", "*/", "#"))
        or stripped.rstrip() == "*"
        or '"' in line
        or "//" in line
        or "/*" in line
        or "`" in line
        or (stripped.startswith("<") and "</" in stripped)
        or (stripped.startswith(";") and not stripped.rstrip().endswith(";"))
    ):
        return True
    before = text[max(0, start - _NUM_CHARACTERS_BEFORE) : start]
    if before.rfind("/*") > before.rfind("*/"):
        return True
    return is_raw_text(before) or not re.search(r"[;{}()]", before + line)


def is_raw_text(before: str) -> bool:
    """Return whether what follows a text is inside a raw literal, or inside three quotes."""
    raw = before.rfind('R"')
    return (raw >= 0 and ')"' not in before[raw:] and "(" in before[raw : raw + 20]) or before.count('"""') % 2 == 1


def _is_named_password(line: str, match: re.Match[str]) -> bool:
    strength, value = name_strength(match["name"]), match["value"]
    value = value.partition("#")[0] if line[match.start() - 1 : match.start()] in ("?", "&") else value
    end = match.end("value")
    if not strength or _CODE_AFTER.match(line, end) or not _is_in_text(line, match.start()):
        return False
    if _CODE_AFTER_NAME.match(line, end) and not any(map(str.isdigit, value)):
        return False
    is_element = _is_element(line, match) and _ELEMENT_END.match(line, end) and not value.startswith("@")
    if match["operator"] == ">" and not is_element:
        return False
    if match["operator"] == "=" and line[match.end("name") : match.start("value")].startswith("=="):
        return False
    if strength is not NameStrength.SURE:
        if OF_A_KEY.search(match["name"]) and HEXADECIMAL.fullmatch(value):
            return False
        is_fair = strength is NameStrength.FAIR or (
            _USER_BEFORE.search(line, 0, match.start()) or _USER_AFTER.match(line, end)
        )
        return looks_like_password(value) or bool(is_fair and looks_fair(value))
    is_pair = line[end : end + 1] in (";", "&") or _is_connection(line)
    is_of_shell = _OF_SHELL.search(match["name"]) is not None and match.end() - match.end("name") == len("=")
    if is_of_shell and match["operator"] == "=" and not is_pair:
        return is_defined_password(value)
    if (is_pair and match["operator"] == "=") or match["operator"] == ">":
        return is_given_password(value)
    return _is_named_alone(line, end, value) or looks_fair(value) or looks_like_password(value)


def _is_named_alone(line: str, end: int, value: str) -> bool:
    """Return whether a value that ends a text is a password: a sentence may go on after it otherwise."""
    return _END_OF_TEXT.match(line, end) is not None and is_named_password(value.rstrip(".:!?*/"))


def _is_element(line: str, match: re.Match[str]) -> bool:
    """Return whether a value is that of an element of XML, which its tag names or an attribute of it."""
    before = line[max(0, match.start() - 8) : match.start()]
    is_named = before.endswith("<") or re.search(r"(?:name|key)=\\?[\"']\Z", before) is not None
    return is_named and line[match.start("value") - 1] in ">["


def _is_of_element(_line: str, match: re.Match[str]) -> bool:
    strength = name_strength(match["name"])
    judge = is_given_password if strength is NameStrength.SURE else looks_like_password
    return bool(strength) and judge(match["value"])


def _is_of_login(line: str, match: re.Match[str]) -> bool:
    """Return whether a value after a user and a word for passwords is one: at the end of a text any that is no word."""
    return _is_named_alone(line, match.end(), match["value"]) or looks_fair(match["value"])


def _is_of_option(_line: str, match: re.Match[str]) -> bool:
    strength, value = name_strength(match["name"]), match["value"].rstrip(".?!:")
    judge = is_named_password if strength is NameStrength.SURE else is_passed_password
    return strength is not NameStrength.NONE and judge(re.split(r"[|\]]", value)[0])


@lru_cache(maxsize=4)
def _is_connection(line: str) -> bool:
    """Return whether a line has the parts of a connection string. It is called for each name of one line."""
    return _CONNECTION.search(line) is not None


def _is_in_text(line: str, place: int) -> bool:
    """Return whether a place of a line is in a comment or in a literal: not in the code beside them."""
    before = line[:place]
    is_open = before.rfind("/*") > before.rfind(_CLOSED)
    has_comment = "//" in before.replace("://", "") or is_open or before.lstrip().startswith(("*", "#"))
    num_quotes = before.count('"') - before.count('\\"')
    return (
        has_comment
        or num_quotes % 2 == 1
        or ('"' not in line and not _COMMENT_AFTER.sub("", line).rstrip().endswith((";", "{", "}", ")", ",")))
    )


def _is_header_value(_line: str, match: re.Match[str]) -> bool:
    scheme, value = match["scheme"].lower(), match["value"]
    if scheme == "basic":
        return holds_login(value) or (looks_like_password(value) and not is_text_in_base64(value))
    if scheme in ("authtoken", "auth", "login"):
        return len(value) >= _MIN_OF_COMMAND and is_random(value) and HEXADECIMAL.fullmatch(value) is None
    return looks_like_password(value) or (scheme == "bearer" and (looks_fair(value) or is_random(value)))


@dataclass(frozen=True)
class _PasswordForm:
    """A form of passwords in text: an expression that is true of its lines, those that find values, and their judge."""

    condition: str
    expressions: tuple[re.Pattern[str], ...]
    is_password: Callable[[str, re.Match[str]], bool]
    is_anywhere: bool = False
    """It counts in code too, because nothing else is written so."""


def _judged(judge: Callable[[str], bool]) -> Callable[[str, re.Match[str]], bool]:
    return lambda _line, match: judge(match["value"])


_FORMS = (
    _PasswordForm(r"://[^\s/:@\"'<>]{0,128}:[^\s/@\"'<>]{1,256}@", (_URI,), _judged(is_uri_password), is_anywhere=True),
    _PasswordForm(
        rf"(?i:{NAME_PART})[\w\-]{{0,40}}(?:\\{{0,3}}[\"'])?[ \t]{{0,3}}(?:=|:|>)[ \t]{{0,3}}(?:<!\[CDATA\[)?[^\s\"'`<>;,&(){{}}=]",
        (_NAMED,),
        _is_named_password,
    ),
    _PasswordForm(
        rf"<[\w.:\-]{{0,80}}(?i:{NAME_PART})[^<>\n]{{0,160}}>[^\s<>\"']{{4}}",
        (_ELEMENT_ON_A_LINE,),
        _is_of_element,
        is_anywhere=True,
    ),
    _PasswordForm(
        r"(?i:basic|bearer|token|apikey|auth|login)[ \t]+[A-Za-z0-9+/_.~=-]{8}", (_HEADER,), _is_header_value
    ),
    _PasswordForm(
        r"(?i:authorization|api-?key|-token|-key)[\"']?[ \t]*:[ \t]*[^\s\"']", (_RAW_HEADER,), _judged(looks_like_key)
    ),
    _PasswordForm(
        r"(?i:authorization)[\"']?[ \t]*[:,][ \t]*\\?[\"']?[A-Za-z][\w-]*[ =][^\n]{16}",
        (_SCHEME_HEADER,),
        _judged(is_key_of_header),
    ),
    _PasswordForm(
        rf"(?:ENV|ARG|setenv|setx|SETX|set -gx)[ \t]+\w*(?i:{NAME_PART})",
        (_ENVIRONMENT,),
        lambda _line, match: name_strength(match["name"]) is NameStrength.SURE and looks_fair(match["value"]),
    ),
    _PasswordForm(
        r"-[A-Za-z\-]*(?i:password|passwd|passphrase|pass|secret|token|key|pwd|pw)[ \t]+[^\s\"']{4}",
        (_OPTION,),
        _is_of_option,
    ),
    _PasswordForm(r"(?i:password|passwd|pass)(?:[ \t]|\\t)+[^\s\"']{4}", (_LOGIN,), _is_of_login),
    _PasswordForm(
        r"[A-Za-z0-9.*-]+:(?:[0-9]{2,5}|\*):[A-Za-z0-9_*-]+:[A-Za-z0-9_.*-]+:[^\s:\"']{4}",
        (_PGPASS,),
        _judged(looks_fair),
    ),
    *(_PasswordForm(sentence, (expression,), _judged(judge)) for sentence, expression, judge in PROSE),
    _PasswordForm(OF_ASSIGNMENT, (ASSIGNED_ALONE,), is_assigned_alone),
    _PasswordForm(r"(?i:password|passwd)[ \t]+[^\s\"']{6}", (_ALONE,), _judged(looks_fair)),
    _PasswordForm(
        r"(?i:admin|root|administrator|postgres)[ ]?[:/][ ]?[^\s\"']{6}", (_LOGIN_ALONE,), _judged(looks_fair)
    ),
    _PasswordForm(r"(?i:assw|pwd).*\bsend[ \t]", (_SENT,), _judged(looks_fair)),
    _PasswordForm(r"(?i:\boracle:)", (_ORACLE,), _judged(is_possible), is_anywhere=True),
    _PasswordForm(
        r"(?i:logon|connect|oracle|occi|otl)[^\n]*\"[\w$#]+/[^\s/@\"]+@|\"[\w$#]+/[^\s/@\"]+@//",
        (_ORACLE_LOGIN,),
        _judged(looks_fair),
        is_anywhere=True,
    ),
    _PasswordForm(DEFINED_CONDITION, DEFINED, is_password_of_macro, is_anywhere=True),
    _PasswordForm(r"(?i:\brunas[ \t])", (_RUNAS,), _judged(is_told_password)),
    _PasswordForm(PROTOCOL_CONDITION, PROTOCOL_PASSWORDS, _judged(is_told_password)),
    _PasswordForm(r"(?i:\bIDENTIFIED[ ])", (IDENTIFIED_BY,), _judged(is_told_password), is_anywhere=True),
    _PasswordForm(r"(?i)\bAUTH[ ](?:PLAIN|LOGIN)", (PLAIN_LOGIN,), _judged(holds_login)),
    _PasswordForm(COMMAND_CONDITION, PASSWORD_ARGUMENTS, _judged(is_possible)),
)
"""In the order of findings that begin at one place."""


@cache
def _condition() -> Any:
    return condition(*(form.condition for form in _FORMS))


@cache
def _form_set() -> PossibleFinders:
    return possible_finders(tuple(form.condition for form in _FORMS))
