"""Definition scrubber: removes from a definition of a compile command what it says about the machine.

A definition may hold any text: a path, a list of them, a whole command line. A path of the machine begins at the root, at a
drive, at a share, at a home folder, with `file:`, or with `../`, which leaves an unknown folder. It may follow an option
(`-I/opt/x`, `--any-option/opt/x`), a quote, an escape (`\\n/opt/x`) or any sign between words, and its signs may be encoded as
URLs, C or HTML do, also twice (`%2Fopt%2Fx`, `\\057opt`, `&#47;opt`, `%252Fopt`). A text that can be read as a path or as
something else is taken for a path: a wrong definition costs one unit, a path that remains is personal data. What is no path
of a machine is kept: `a/b`, `(a)/b`, `/*c*/`, `-Iinclude/x`, `%s/lib`, `https://host/x`, `$ORIGIN/../lib`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import unquote

ELSEWHERE = "elsewhere"
"""What replaces a path, an address or a user."""
_NUM_ROUNDS = 4
"""Times that a definition is scrubbed while it changes. One that still changes is dropped."""

_PERSONAL = re.compile(
    r"\w*(?:USER|USERNAME|HOST|HOSTNAME|HOME|EMAIL|BUILT_BY|PASSWORD|TOKEN|SECRET)\b(?:=|$)", re.IGNORECASE
)
_LONG_OPTIONS = (
    *("isystem-after", "isystem", "iquote", "idirafter", "include-pch", "include", "imacros", "isysroot", "iframework"),
    *("iprefix", "iwithprefixbefore", "iwithprefix", "iwithsysroot", "imultilib", "ivfsoverlay", "vfsoverlay"),
    *(
        r"stdlib\+\+-isystem",
        "cxx-isystem",
        "MMD",
        "MD",
        "MF",
        "MT",
        "MQ",
        "MJ",
        "sysroot",
        "specs",
        "wrapper",
        "config",
    ),
    *("rpath-link", "rpath", "resource-dir", "working-directory", "gcc-toolchain", "aux-info", "dumpdir", "dumpbase"),
    *("Fo", "Fd", "Fe", "Fp", "FI", "Fi", "LIBPATH", "framework", "dynamic-linker", "script"),
    *("AI", "FU", "Fx", "Fm", "Fa", "FR", "Fr", "Yc", "Yu", "Yl", "external:I", "ifcOutput", "ifcSearchDir"),
)
"""Options of gcc, clang, ld and cl that a path follows without a separator, besides those of one letter."""
_ANY_OPTION = rf"(?<![\w.+-])-+(?:(?<=--)[A-Za-z]|(?!(?:{'|'.join(_LONG_OPTIONS)})[\w.+])[a-z])[\w.+-]*"
"""Any other option: `--word`, or `-word` in small letters. Of `-Iinclude` and `-isysteminclude` the path has begun before."""
_OPTION = rf"(?:(?<![\w-])-+(?:[A-Za-z]|{'|'.join(_LONG_OPTIONS)})|{_ANY_OPTION})"

_BEFORE_PLACE = rf"(?:(?<![\w./~+-])|(?<=:/)|(?<=://)|(?P<option>{_OPTION}))"
_AFTER_PLACE = r"(?![\w.@+-])"
"""Context before and after the path of a tree: neither is a part of a name."""

_STOP = r"\s\"'`<>;,"
_REST = rf"(?:\\\s|[^{_STOP}])*"
"""The rest of a path: up to a quote, a bracket, a comma or a space that is not escaped."""
_FIRST = rf"[^{_STOP}/*()=|&^?!:#\[\]{{}}\\]"
"""First sign of a name. None of `/*`, `/=`, `/(` begins a path."""
_ROOT = r"(?:home|Users|usr|opt|etc|var|tmp|mnt|srv|root|private|Volumes|nix|cygdrive|scratch|gpfs|nfs|afs)(?![\w.+-])"
"""Folders at the root of a machine: behind a conversion of printf any other name may be below what it prints."""
_CONVERSION = r"%[-+ #0']{0,5}(?:\*|\d{1,9})?(?:\.(?:\*|\d{0,9}))?(?:hh|ll|[hlqjztL])?[A-Za-z]"
_LOCAL = re.compile(
    # What looks like a path and is kept: a path below a variable, a number that divides, the end of an element.
    r"(?P<variable>(?:(?<!\$)\$++(?:\w++|\{\w+\}|\(\w+\))|%\w+%(?![\w.+-])|@\w+@)(?:[\\/]++[\w.+-]*+)*+"
    r"(?!(?:(?<=\W[A-Za-z])|(?<=(?i:file))):[\\/]))"
    r"|(?P<number>(?<=\s)/\d[\w.]*(?![\w.+\-/\\@]))"
    r"|(?P<element></[\w:.-]*>)"
    # Paths of a machine, from what says most to what says least.
    rf"|(?<=[\"'])(?:/(?![/*\s])|[A-Za-z]:[\\/]|~[\\/]|\\\\)(?:[^{_STOP}]|[ ]+(?![-/@]))*[\\/][^{_STOP}]*"
    rf"|~[\w.+-]*[\\/]{_REST}"
    rf"|(?i:file):[\\/]{_REST}"
    rf"|(?:(?<!\w)|(?P<before_drive>{_OPTION}))[A-Za-z]:(?:\\|/(?!/*\*)){_REST}"
    rf"|(?P<option>{_OPTION})(?:\\?/+{_FIRST}|\\{{2,}}(?:\w|[?.]\\)|\\(?i:Users)\\|\.\.[\\/]){_REST}"
    rf"|(?P<sign>(?<![\w.+\-)\]}}])[+-]+)/+{_FIRST}{_REST}"
    rf"|(?P<escape>\\(?:[nrt]|0{{1,3}}))/+{_FIRST}{_REST}"
    rf"|(?P<format>{_CONVERSION}|\\[A-Za-z])/+{_ROOT}{_REST}"
    rf"|(?<=[\w.)\]}}][+-])/+{_ROOT}{_REST}"
    rf"|(?<![\w.+\-/)\]}}*])(?<!\w[%\\])/{_FIRST}{_REST}"
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
    r"|%7e[\w.]*[\\/]|\.\.(?:%2f|%5c)|%2e%2e"
    rf"|(?:%2f|%5c){_ROOT}",
    re.IGNORECASE,
)
"""Separators of a path as a URL encodes them. One `%2f` alone is a format of printf, unless a folder at the root follows."""
_NAMED_SIGNS = {"sol": "/", "bsol": "\\", "colon": ":", "tilde": "~", "solidus": "/", "reverse solidus": "\\"}
_OTHER_SIGNS = {
    **{0xFEE0 + code: code for code in range(0x21, 0x7F)},
    **str.maketrans("\u2044\u2215\u29f8\u29f9\u2216", "///\\\\"),
}
"""Full-width signs, and others that look like separators of a path, as the plain ones."""
_ESCAPE = re.compile(
    r"(?<!\\)\\+(?:[xu]\{0*(?P<hex1>[0-9a-f]{2})\}|x(?P<hex2>[0-9a-f]{2})|u0{6}(?P<hex4>[0-9a-f]{2})|u00(?P<hex3>[0-9a-f]{2})"
    r"|o\{0*(?P<octal1>[0-7]{2,3})\}|(?P<octal2>[0-7]{2,3})|N\{(?P<name1>(?:reverse )?solidus|colon|tilde)\})"
    r"|%u00(?P<hex5>[0-9a-f]{2})|%(?:25)+(?P<hex6>[0-9a-f]{2})"
    r"|&(?:amp;)*(?:\#x0*(?P<hex7>[0-9a-f]{2});?|\#0*(?P<decimal>[0-9]{2,3});?|(?P<name2>b?sol|colon|tilde);)",
    re.IGNORECASE,
)
"""Signs as C, Python, JSON, HTML and URLs that are encoded twice spell them."""


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
    for text in (*reversed([*_decoded(value)]), value):  # half of an encoded path may look like another one
        scrubbed = _LOCAL.sub(_replacement, text)
        if scrubbed != text:
            value = scrubbed
            break
    for name in names:
        value = name.sub(ELSEWHERE, value)
    return value


def _decoded(value: str) -> Iterator[str]:
    """Iterate over what a value says once it is decoded, decoded twice, and so on while it changes."""
    for _ in range(_NUM_ROUNDS):
        before, value = value, _ESCAPE.sub(_sign, value)
        if not value.isascii():
            value = value.translate(_OTHER_SIGNS)
        if value != before:
            yield value
        if _ENCODED.search(value):
            value = unquote(value.replace("%20", "%2520"))  # an encoded space does not end a path
            yield value
        if value == before:
            return


def _sign(found: re.Match[str]) -> str:
    """Return the printable sign that an escape spells, otherwise the escape."""
    ((kind, text),) = ((name, text) for name, text in found.groupdict().items() if text is not None)
    if kind.startswith("name"):
        return _NAMED_SIGNS[text.lower()]
    sign = chr(int(text, {"h": 16, "o": 8, "d": 10}[kind[0]]))
    return sign if " " <= sign <= "~" else found[0]


def _replacement(found: re.Match[str]) -> str:
    kept = next((found[name] for name in _KEPT if found[name] is not None), None)
    return found[0] if kept == found[0] else (kept or "") + ELSEWHERE
