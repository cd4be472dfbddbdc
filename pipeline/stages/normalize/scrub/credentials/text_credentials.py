"""Credentials in running text: connection strings, URIs, headers, command lines and configurations, in literals and comments.

No quotes are around such a value, so that it counts where a text is: code assigns expressions to a name.

Sources: RFC 3986 (user information), RFC 6750 and 7617 (headers), the manuals of curl, OpenSSL, PostgreSQL, MySQL, Redis, Samba
and Docker.
"""

import re
from collections.abc import Iterator

from pipeline.stages.normalize.scrub.credentials.password_names import NAME_PART, NameStrength, name_strength
from pipeline.stages.normalize.scrub.credentials.password_values import (
    holds_login,
    is_given_password,
    is_passed_password,
    is_possible,
    is_text_in_base64,
    looks_fair,
    looks_like_key,
    looks_like_password,
)
from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.stages.normalize.scrub.hits import condition, hit_lines

_VALUE = r"""[^\s"'`<>;,&\\(){}\[\]|]"""
_END = r"""(?=[\s"'`<>;,&\\)}\]|.]|\Z)"""
_SECRET = r"""[^\s"'`<>;\\]"""

_CONDITIONS = (
    rf"(?i:{NAME_PART})[\w\-]{{0,40}}(?:\\{{0,3}}[\"'])?[ \t]{{0,3}}(?:=|:|>)[ \t]{{0,3}}[^\s\"'`<>;,&(){{}}=]",
    r"://[^\s/:@\"'<>]{0,128}:[^\s/@\"'<>]{1,256}@",
    r"(?i:basic|bearer|token|apikey|negotiate)[ \t]+[A-Za-z0-9+/_.~=-]{8}",
    r"(?i:password|passwd|pass|secret|token|key|pin|pw)[ \t]+[^\s\"']{4}",
    r"(?i:sshpass|curl|wget|mysql|mysqldump|mysqladmin|redis-cli|ldap[a-z]*|smbclient|docker|htpasswd|sudo|openssl|zip|unzip|7z|psql|sqlplus"
    r"|mongo|mongosh|az|svn|rsync|plink|pscp|winexe|net|gpg|rpcclient|xfreerdp|http)\b[^\n]{0,200}[ \t=]-{1,2}[A-Za-z]",
    r"(?:^|[ \t])(?:-u|--user|--proxy-user)[ \t=]",
    r"(?i:authorization|api-?key|-token|-key)[\"']?[ \t]*:[ \t]*[^\s\"']",
    r"[A-Za-z0-9.*-]+:(?:[0-9]{2,5}|\*):[A-Za-z0-9_*-]+:[A-Za-z0-9_.*-]+:[^\s:\"']{4}",
)
_NAMED = re.compile(
    rf"(?P<name>[\w.\-]{{1,80}})(?:\\{{0,3}}[\"'])?[ \t]{{0,3}}(?P<operator>=|:|>)[ \t]{{0,3}}(?P<value>{_VALUE}{{4,200}}){_END}"
)
_URI = re.compile(
    r"(?i)[a-z][a-z0-9+.\-]{1,24}://(?P<user>[^\s/:@\"'<>]{0,128}):(?P<value>[^\s/@\"'<>]{1,256})@(?=[\w\[{%$])"
)
_HEADER = re.compile(r"(?i)\b(?P<scheme>basic|bearer|token|apikey)[ \t]+(?P<value>[A-Za-z0-9+/_.~\-]{8,2000}={0,2})")
_RAW_HEADER = re.compile(
    r"(?i)\b(?:authorization|api-?key|x-[a-z-]{0,30}(?:token|key))[ \t]*:[ \t]*"
    rf"(?!(?:basic|bearer|token|apikey|negotiate|digest)[ \t])(?P<value>{_SECRET}{{8,400}})"
)
_OPTION = re.compile(
    r"(?i)(?:(?<=\s)|(?<=[\"'`])|(?<=\\n)|^)--?[a-z\-]*(?:password|passwd|passphrase|pass|secret|token|key|pwd|pw)[ \t]+"
    rf"(?P<value>{_SECRET}{{4,200}})"
)
_LOGIN = re.compile(
    r"(?i)\b(?:login|user|username|account|machine)[ \t]+\S+[ \t\\n]+(?:password|passwd|pass)[ \t]+"
    rf"(?P<value>{_SECRET}{{4,200}})"
)
_PGPASS = re.compile(
    r"(?P<head>(?:\*|[A-Za-z][\w.\-]*):(?:[0-9]{2,5}|\*):(?:\*|[A-Za-z_][\w\-]*):(?:\*|[A-Za-z_][\w.\-]*)):(?P<value>[^\s:\"'\\]{4,200})"
)
_QUOTED = r"""\\?["']?"""
_GIVEN = rf"""\\?["']?(?P<value>{_SECRET}{{4,200}}?)(?=:?(?:[\s"'`<>;\\]|\Z))"""
# Of a command its options before a password, and the option that it follows.
_COMMANDS = tuple(
    re.compile(rf"(?im){command}{_GIVEN}" if command.startswith("(?:^") else rf"(?i)\b{command}{_GIVEN}")
    for command in (
        r"sshpass[ \t]+-p[ \t]*",
        r"(?:curl|http|wget)\b[^\n]{0,300}?[ \t](?:-u|--user|-a|--auth|--proxy-user|-U)[ \t=]*\\?[\"']?[^\s:\"']{0,80}:",
        r"(?:curl|wget)\b[^\n]{0,300}?[ \t](?:-u|--user)[ \t=]*\\?[\"']?(?=[^\s:\"']{8,80}:[\"'\\])",
        r"(?:^|\\n)[ \t/*#]{0,20}(?:-u|--user)[ \t=]+\\?[\"']?[^\s:\"']{0,80}:",
        r"(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n]{0,200}?[ \t]-p",
        r"(?:docker|podman|az|mongo|mongosh|mongodump|influx|svn|plink|pscp|rabbitmqadmin)\b[^\n]{0,200}?[ \t](?:-p|-pw)[ \t]+",
        r"redis-cli\b[^\n]{0,200}?[ \t]-a[ \t]+",
        r"ldap(?:search|modify|add|delete|passwd|whoami)\b[^\n]{0,200}?[ \t]-w[ \t]+",
        r"(?:smbclient|rpcclient|winexe)\b[^\n]{0,200}?[ \t]-U[ \t]*\\?[\"']?[^\s%\"']{1,80}%",
        r"(?:zip|unzip)\b[^\n]{0,80}?[ \t]-P[ \t]+",
        r"7z\b[^\n]{0,80}?[ \t]-p",
        r"-?pass(?:in|out)?[ \t]+pass:",
        r"openssl\b[^\n]{0,200}?[ \t]-k[ \t]+",
        r"htpasswd[ \t]+-\w*b\w*[ \t]+\S+[ \t]+\S+[ \t]+",
        r"sqlplus[ \t]+[^\s/\"']{1,60}/",
        r"echo[ \t]+(?=[^\n|]{1,200}\|[ \t]*(?:sudo[ \t]+-S|docker[ \t]+login|passwd))",
        r"net[ \t]+use\b[^\n]{0,120}?[ \t](?=[^\s]{1,200}[ \t]+/user:)",
        r"xfreerdp\b[^\n]{0,200}?[ \t]/p:",
    )
)
_CONNECTION = re.compile(
    r"(?i)(?:host|server|data source|addr(?:ess)?|database|dbname|initial catalog|uid|user(?:name| id)?|port|dsn|driver|ssl)\s?="
)
_COMMAND_LINE = re.compile(
    r"(?:[\w.-]*[$#>%] )?(?:sudo )?(?:curl|wget|docker|mysql|psql|redis-cli|sshpass|http) |(?:-u|--user|-H|--header)[ =]"
)
_ELEMENT = re.compile(
    r"<(?P<name>[\w.:\-]{1,80})(?:[ \t][^<>\n]{0,120})?>[ \t]{0,20}\n\s{0,80}(?P<value>[^\s<>\"']{4,200})[ \t]{0,20}\n\s{0,80}</"
)
_CODE_AFTER = re.compile(r"\s*(?:\(|\[|->|\.\w+\()")
_NUM_CHARACTERS_BEFORE = 4_000
_MAX_LINE = 4_000


def find_text_credentials(text: str) -> Iterator[Finding]:
    """Yield passwords that stand in running text without quotes of their own."""
    if "</" in text:
        yield from _in_elements(text)
    for first, last in hit_lines(text, condition(*_CONDITIONS)):
        for start, end in _windows(text, first, last):
            line = text[start:end]
            for value_start, value_end in _in_line(text, line, start):
                yield Finding(start + value_start, start + value_end, line[value_start:value_end])


def _in_elements(text: str) -> Iterator[Finding]:
    """Yield the values of elements that stand on a line of their own."""
    for start, end in hit_lines(text, condition(rf"<[\w.:\-]{{0,80}}(?i:{NAME_PART})[^<>\n]{{0,120}}>[ \t]{{0,20}}\n")):
        place = text.rfind("<", start, end)
        match = _ELEMENT.match(text, place) if place >= 0 else None
        if match and name_strength(match["name"]) is NameStrength.SURE and is_given_password(match["value"]):
            yield Finding(*match.span("value"), match["value"])


def _windows(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield a line in stretches that end at blanks: what is around a place of it is searched for each place."""
    while end - start > _MAX_LINE:
        blank = text.rfind(" ", start + 1, start + _MAX_LINE)
        middle = blank if blank > 0 else start + _MAX_LINE
        yield start, middle
        start = middle
    yield start, end


def _in_line(text: str, line: str, start: int) -> Iterator[tuple[int, int]]:
    for match in _URI.finditer(line):
        if is_uri_password(match["value"]):
            yield match.span("value")
    if not is_running_text(text, start, line):
        return
    for match in _NAMED.finditer(line):
        if _is_named_password(line, match):
            yield match.span("value")
    for match in _HEADER.finditer(line):
        if _is_header_value(match["scheme"].lower(), match["value"]):
            yield match.span("value")
    for match in _RAW_HEADER.finditer(line):
        if looks_like_key(match["value"]):
            yield match.span("value")
    for match in _OPTION.finditer(line):
        if is_passed_password(match["value"]):
            yield match.span("value")
    for expression in (_LOGIN, _PGPASS):
        for match in expression.finditer(line):
            if looks_fair(match["value"]):
                yield match.span("value")
    for expression in _COMMANDS:
        for match in expression.finditer(line):
            if is_possible(match["value"]):
                yield match.span("value")


def is_uri_password(value: str) -> bool:
    """Return whether the second half of a URI's user information is a password, and no word of documentation."""
    is_word = value.lower() in ("bar", "baz", "foo", "pwd", "pass", "pw", "psw")
    return len(value) >= 3 and not is_word and is_possible(value.ljust(4, "0")) and not value.isdigit()


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
    ):
        return True
    before = text[max(0, start - _NUM_CHARACTERS_BEFORE) : start]
    if before.rfind("/*") > before.rfind("*/"):
        return True
    raw = before.rfind('R"')
    return (raw >= 0 and ')"' not in before[raw:]) or not re.search(r"[;{}()]", before + line)


def _is_named_password(line: str, match: re.Match[str]) -> bool:
    strength, value = name_strength(match["name"]), match["value"]
    if not strength or _CODE_AFTER.match(line, match.end()) or not _is_in_text(line, match.start()):
        return False
    if match["operator"] == ">":
        is_element = line[match.start() - 1 : match.start()] == "<" and line[match.start("value") - 1] == ">"
        if not is_element:
            return False
    if match["operator"] == "=" and line[match.end("name") : match.start("value")].startswith("=="):
        return False
    if strength is not NameStrength.SURE:
        return looks_fair(value) if strength is NameStrength.FAIR else looks_like_password(value)
    is_pair = line[match.end("value") : match.end("value") + 1] in (";", "&") or _CONNECTION.search(line) is not None
    if (is_pair and match["operator"] == "=") or match["operator"] == ">":
        return is_given_password(value)
    return looks_fair(value)


def _is_in_text(line: str, place: int) -> bool:
    """Return whether a place of a line is in a comment or in a literal: not in the code beside them."""
    before = line[:place]
    has_comment = "//" in before.replace("://", "") or "/*" in before or before.lstrip().startswith(("*", "#"))
    num_quotes = before.count('"') - before.count('\\"')
    return (
        has_comment
        or num_quotes % 2 == 1
        or ('"' not in line and not line.rstrip().endswith((";", "{", "}", ")", ",")))
    )


def _is_header_value(scheme: str, value: str) -> bool:
    if scheme == "basic":
        return holds_login(value) or (looks_like_password(value) and not is_text_in_base64(value))
    return looks_like_password(value) or (scheme == "bearer" and looks_fair(value))
