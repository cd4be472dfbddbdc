"""Definition scrubber: removes from a definition of a compile command what it says about the machine.

A definition may hold any text: a path, a list of them, a whole command line. A path of the machine begins at the root, at a
drive, at a share, at a home folder, with `file:`, or with `../`, which leaves an unknown folder. It may follow an option
(`-I/opt/x`, `--any-option/opt/x`), a quote, an escape (`\\n/opt/x`), a comment or punctuation, and its parts may be
encoded as URLs, C or HTML do, also twice (`%2Fopt%2Fx`, `\\057opt`, `&#47;opt`, `%252Fopt`). A character that controls ends a
word, however it is spelled (`\\012/x`, `%0a/x`). A text that can be read as a path or as something else is taken for a path: a
wrong definition costs one unit, a path that remains is personal data. What is no path of a machine is kept: `a/b`, `(a)/b`,
`/*c*/`, `-Iinclude/x`, `%s/lib`, `https://host/x`, `$ORIGIN/../lib`.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from html.entities import html5
from urllib.parse import unquote

from pipeline.stages.enrich.compiler.path_options import PATH_OPTIONS

ELSEWHERE = "elsewhere"
"""The replacement of a path, an address or a user."""
_NUM_ROUNDS = 4
"""Times that a definition is scrubbed while it changes. One that still changes is dropped."""

_PERSONAL = re.compile(
    r"\w*(?:USER|USERNAME|HOST|HOSTNAME|HOME|EMAIL|BUILT_BY|PASSWORD|TOKEN|SECRET)\b(?:=|$)", re.IGNORECASE
)
_PATH_OPTION = "|".join(map(re.escape, sorted(PATH_OPTIONS, key=lambda name: (-len(name), name))))
_ANY_OPTION = rf"(?:(?<![\w.+-])|(?<=\\[nrt])(?=--))-+(?:(?<=--)[A-Za-z]|(?!(?:{_PATH_OPTION})[\w.+])[a-z])[\w.+-]*"
"""Any other option: `--word`, or `-word` in small letters. Of `-Iinclude` and `-isysteminclude` the path has begun before."""
_OPTION = rf"(?:(?:(?<![\w-])|(?<=\\[nrt]))-+(?:[A-Za-z]|{_PATH_OPTION})|{_ANY_OPTION})"

_BEFORE_PLACE = rf"(?:(?<![\w./~+-])|(?<=:/)|(?<=://)|(?P<option>{_OPTION}))"
_AFTER_PLACE = r"(?![\w.@+-])"
"""Context before and after the path of a tree: neither is a part of a name."""

_STOP = r"\s\"'`<>;,"
_WITHIN = rf"[^{_STOP}]|(?<=\w)'(?=\w)|,(?=[\w.+][^\s\"'`<>;=/\\]{{0,80}}[/\\])"
"""Character within a path. An apostrophe between letters is one, and a comma, if a name and a separator follow."""
_REST = rf"(?:\\\s|{_WITHIN})*"
"""The rest of a path: up to a quote, a bracket, a comma or a space that is not escaped."""
_BLANK = r"[ ](?=[\w(.][\w().+&]*(?:[ ][\w().+&-]+){0,3}[\\/])"
"""Blank within a name, as `Program Files`: a separator follows it after at most four words."""
_NAMES = rf"(?:\\\s|{_WITHIN}|{_BLANK})*"
"""The rest of a path in a place whose names often have blanks: a drive, and the folders of users."""
_FIRST = rf"[^{_STOP}/*()=|&^?!:#\[\]{{}}\\]"
"""First character of a name. None of `/*`, `/=`, `/(` begins a path."""
_PATH = rf"(?:(?:home|Users|Volumes)[\\/]{_NAMES}|{_FIRST}{_REST})"
_ROOT = r"(?:home|Users|usr|opt|etc|var|tmp|mnt|srv|root|private|Volumes|nix|cygdrive|scratch|gpfs|nfs|afs)(?![\w.+-])"
"""Folders at the root of a machine: after a conversion of printf or a bracket another name may be below what that stands for."""
_CONVERSION = r"%[-+ #0'*$.\d]{0,20}(?:hh|ll|[hlqjztL])?[A-Za-z]"
_LOCAL = re.compile(
    # What looks like a path and is kept: a path below a variable, a number that divides, the end of an element.
    r"(?P<variable>(?:(?<!\$)(?<!%\d)(?<!%\d\d)(?<!%\*\d)\$++(?:\w++|\{\w+\}|\(\w+\))|%[A-Za-z_]\w*%(?![\w.+*-])|@\w+@)"
    r"(?:(?!\\[nrtafv0]/)[\\/]++[\w.+-]*+)*+"
    r"(?!@[\w-]+\.\w|(?:(?<=\W[A-Za-z])|(?<=\\[nrt][A-Za-z])|(?<=(?i:file))):[\\/]))"
    r"|(?P<number>(?<=\s)/\d[\w.]*(?![\w.+\-/\\@]))"
    r"|(?P<element></[\w:.-]*>)"
    # Paths of a machine, from what says most to what says least.
    rf"|(?<=[\"'])(?:/(?![/*\s])|[A-Za-z]:[\\/]|~[\\/]|\\\\)(?:{_WITHIN}|[ ]+(?![-/@]))*[\\/](?:{_WITHIN})*"
    rf"|~[\w.+-]*[\\/]{_REST}"
    rf"|(?i:file):[\\/]{_REST}"
    rf"|(?:(?<!\w)|(?<=\\[nrt])|(?P<before_drive>{_OPTION}))[A-Za-z]:(?:\\|/(?!/*\*)){_NAMES}"
    rf"|(?P<option>{_OPTION})(?:[\\/]*/{_PATH}|(?:\\{{2,}}(?:\w|[?.]\\)|\\(?i:Users)\\|\.\.[\\/]){_REST})"
    rf"|(?P<sign>(?<![\w.+\-)\]}}])[+-]+)/+{_PATH}"
    rf"|(?P<escape>\\(?:[nrtafv]|0{{1,3}}))/+{_PATH}"
    rf"|(?P<format>{_CONVERSION}|\\\w)/+(?={_ROOT}){_PATH}"
    rf"|(?:(?<=[\w.)\]}}][+-])|(?<=[)\]}}%])|(?<=\.\*))/+(?={_ROOT}){_PATH}"
    rf"|(?<![\w.+\-/)\]}}*])(?<![\w%]%)(?<!\w\\)/{_PATH}"
    rf"|(?<![\w.+\-/)\]}}*])(?<!\w:)/{{2,}}{_FIRST}[^{_STOP}/\\]*[\\/]{_REST}"
    rf"|(?<=:)/{{3,}}{_FIRST}{_REST}"
    rf"|(?<![\w\\])(?:\\{{2,}}+(?:\w|[?.]\\)|\\(?i:Users)\\){_REST}"
    rf"|\.\.[\\/]{_REST}"
    r"|(?<![\w.+-])[\w.+-]+@[\w-]+\.\w[\w.-]*"
    rf"|(?<=://)[^{_STOP}/@]*@[^{_STOP}/]*"
)
_KEPT = ("variable", "number", "element", "before_drive", "option", "sign", "escape", "format")
_ENCODED = re.compile(
    r"(?:%2f|%5c)(?:(?!%2f|%5c)[^\s\"'])+(?:%2f|%5c|[\\/])|(?:%2f|%5c){2}|(?:%3a|:)(?:%2f|%5c)|%3a[\\/]|(?:%7e|~)[\w.]*(?:%2f|%5c)"
    r"|%7e[\w.]*[\\/]|\.\.(?:%2f|%5c)|(?:%2e|\.)%2e|%2e\."
    r"|[\w.+-]%40(?!(?:hh|ll|[hlqjzt])?[a-z]\.)[\w-]+\.\w"
    rf"|(?:%2f|%5c){_ROOT}",
    re.IGNORECASE,
)
"""Separators of a path as a URL encodes them. One `%2f` alone is a format of printf, unless a folder at the root follows."""
_UNENDED = "|".join(sorted((name for name in html5 if not name.endswith(";")), key=len, reverse=True))
"""Names of characters in HTML that no semicolon need follow."""
_OTHER_SIGNS: dict[int, int | str] = {
    **{0xFEE0 + code: code for code in range(0x21, 0x7F)},
    **dict.fromkeys([0x2044, 0x2215, 0x29F8, 0x1F67C, 0xE002F], "/"),
    **dict.fromkeys([0x2216, 0x29F9, 0xFE68, 0x1F67D, 0xE005C], "\\"),
}
"""Full-width characters, and others that look like separators of a path, as the plain ones."""
_ESCAPE = re.compile(
    r"(?<!\\)\\+(?:[xu]\{0*(?P<hex1>[0-9a-f]{2})\}|x(?P<hex2>[0-9a-f]{1,2})|u0{6}(?P<hex4>[0-9a-f]{2})|u00(?P<hex3>[0-9a-f]{2})"
    r"|o\{0*(?P<octal1>[0-7]{2,3})\}|(?P<octal2>[0-7]{2,3})|N\{(?P<unicode>[a-z -]{1,40})\}|(?P<control>e)(?=\[))"
    r"|%u00(?P<hex5>[0-9a-f]{2})|%(?:25)+(?P<hex6>[0-9a-f]{2})"
    r"|&(?:amp;?)*(?:\#x0*(?P<hex7>[0-9a-f]{1,2});?|\#0*(?P<decimal>[0-9]{1,3});?|(?P<html>[a-z][a-z0-9]{1,31};)"
    rf"|(?P<unended>(?-i:{_UNENDED})))",
    re.IGNORECASE,
)
"""Characters as C, Python, JSON, HTML and URLs that are encoded twice spell them."""
_OVERLONG = re.compile(
    r"%(?:25)*(?:c[01]|e0%(?:25)*8[01]|f0%(?:25)*80%(?:25)*8[01])%(?:25)*[89ab][0-9a-f]", re.IGNORECASE
)
"""Overlong UTF-8 of an ASCII character in a URL: `%c0%af` is a slash to programs that do not refuse it."""
_COLOR = re.compile(r"\x1b\[[\d;:?]*[A-Za-z]")
"""Colors of a terminal."""
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_BLANK_OF_URL = re.compile(
    r"(?:%0[09ad]|(?<![\w)\]}])%20)(?=-|/(?!%)|[A-Za-z]:[\\/])"
    rf"|%20(?=(?:-+[A-Za-z]*)?/+{_ROOT}|[A-Za-z]:[\\/])",
    re.IGNORECASE,
)
"""Blank, line end or NUL as a URL encodes it, where a path may follow. `a%20/b` divides."""


_WORD = re.compile(rf"[^{_STOP}]+")
_ROOT_OF_WINDOWS = re.compile(rf"(?:(?<![\w\\])|{_OPTION})(?P<root>[A-Za-z]:(?=\\)|\\{{2,}}+(?=\w))")
"""A drive or a share."""
_END_WITHIN = re.compile(rf"[{_STOP}][^{_STOP}]")


def scrub_definition(value: str, places: Sequence[tuple[str, str]], users: Iterable[str]) -> str | None:
    """Return a definition with paths of the tree and none of the machine; None where it names a user or a secret.

    `places` are (absolute folder, its name in the tree), the deepest first.
    """
    if _PERSONAL.match(value):
        return None
    for place, folder in places:
        if len(place) > 1:
            whole = re.compile(_BEFORE_PLACE + re.escape(place) + _AFTER_PLACE)
            value = whole.sub(lambda found, folder=folder: (found["option"] or "") + folder, value)  # type: ignore[misc]
    names = [re.compile(rf"(?<!\w){re.escape(user)}(?!\w)") for user in sorted(users)]
    for _ in range(_NUM_ROUNDS):
        before, value = value, _scrubbed_once(value, names)
        if value == before:
            return value
    return None


def _scrubbed_once(value: str, names: Iterable[re.Pattern[str]]) -> str:
    value = _WORD.sub(_without_numbered_names, value)
    for text in _readings(value):
        scrubbed = _LOCAL.sub(_replacement, text)
        if scrubbed != text:
            value = scrubbed
            break
    for name in names:
        value = name.sub(ELSEWHERE, value)
    return value


def _without_numbered_names(word: re.Match[str]) -> str:
    """Remove a path of Windows with a name of digits, as `C:\\a\\0000`: read as an escape, it would end the path."""
    root = _ROOT_OF_WINDOWS.search(word[0])
    rest = word[0][root.end() :] if root else ""
    for _ in range(_NUM_ROUNDS):
        rest = _without_escapes(rest)
    return word[0][: root.start("root")] + ELSEWHERE if root and _END_WITHIN.search(rest) else word[0]


def _readings(value: str) -> Iterator[str]:
    """Iterate over what a value may say, what is decoded most first: half of an encoded path may look like another one."""
    texts = [*reversed([*_decoded(value)]), value]
    for text in texts:
        yield _COMMENT.sub(_blank_of_comment, _BLANK_OF_URL.sub("\\g<0>\n", text))
        yield text
    yield from (unquote(text) for text in texts if _ENCODED.search(text))


def _decoded(value: str) -> Iterator[str]:
    """Iterate over what a value says once it is decoded, decoded twice, and so on while it changes."""
    for _ in range(_NUM_ROUNDS):
        before = value
        for decode in (_without_overlong, _without_escapes, _with_plain_signs, _without_colors, _unquoted):
            last, value = value, decode(value)
            if value != last:
                yield value
        if value == before:
            return


def _without_escapes(value: str) -> str:
    return _ESCAPE.sub(_sign, value)


def _without_overlong(value: str) -> str:
    return _OVERLONG.sub(_shortest, value)


def _shortest(found: re.Match[str]) -> str:
    high, low = (int(byte[-2:], 16) for byte in found[0].split("%")[-2:])
    sign = chr((high & 1) << 6 | low & 0x3F)
    return sign if sign.isprintable() else "\n"


def _with_plain_signs(value: str) -> str:
    return value if value.isascii() else value.translate(_OTHER_SIGNS)


def _without_colors(value: str) -> str:
    return _COLOR.sub("\n", value)


def _unquoted(value: str) -> str:
    """Return a text without the escapes of URLs, where separators are among them. An encoded space does not end a path."""
    return unquote(value.replace("%20", "%2520")) if _ENCODED.search(value) else value


def _blank_of_comment(found: re.Match[str]) -> str:
    return "\n" if found[0].endswith("*/") else found[0]


def _sign(found: re.Match[str]) -> str:
    """Return the character that an escape spells, a line end for a control character, otherwise the escape."""
    ((kind, text),) = ((name, text) for name, text in found.groupdict().items() if text is not None)
    if kind == "unicode":
        try:
            return unicodedata.lookup(text)
        except KeyError:
            return found[0]
    if kind in ("html", "unended"):
        return html5.get(text, found[0])
    sign = chr(int(text, {"h": 16, "o": 8, "d": 10}[kind[0]])) if kind != "control" else "\x1b"
    if sign > "\x7f":
        return found[0]
    return sign if sign.isprintable() or sign == "\x1b" else "\n"


def _replacement(found: re.Match[str]) -> str:
    kept = next((found[name] for name in _KEPT if found[name] is not None), None)
    return found[0] if kept == found[0] else (kept or "") + ELSEWHERE
