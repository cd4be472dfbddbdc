"""Definition scrubber: removes from a definition of a compile command what it says about the machine.

A definition may hold any text: a path, a list of them, a whole command line. A path of the machine begins at the root, at a
drive, at a share, at a home folder, with `file:`, or with `../`, which leaves an unknown folder. It may follow an option
(`-I/opt/x`, `-isystem/opt/x`), a quote or any sign between words, and its separators may be encoded (`%2Fopt%2Fx`). A text
that can be read as a path or as something else is taken for a path: a wrong definition costs one unit, a path that remains
is personal data. What is no path of a machine is kept: `a/b`, `(a)/b`, `/*c*/`, `https://host/x`, `$ORIGIN/../lib`.
"""

import re
from collections.abc import Iterable, Sequence
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
)
"""Options of gcc, clang, ld and cl that a path follows without a separator, besides those of one letter."""
_OPTION = rf"(?<![\w-])-+(?:[A-Za-z]|{'|'.join(_LONG_OPTIONS)})"

_BEFORE_PLACE = rf"(?:(?<![\w./~+-])|(?<=:/)|(?<=://)|(?P<option>{_OPTION}))"
_AFTER_PLACE = r"(?![\w.@+-])"
"""Context before and after the path of a tree: neither is a part of a name."""

_STOP = r"\s\"'`<>;,"
_REST = rf"(?:\\\s|[^{_STOP}])*"
"""The rest of a path: up to a quote, a bracket, a comma or a space that is not escaped."""
_FIRST = rf"[^{_STOP}/*()=|&^?!:#\[\]{{}}\\]"
"""First sign of a name. None of `/*`, `/=`, `/(` begins a path."""
_LOCAL = re.compile(
    # What looks like a path and is kept: a path below a variable, a number that divides, the end of an element.
    r"(?P<variable>(?:(?<!\$)\$++(?:\w++|\{\w+\}|\(\w+\))|%\w+%|@\w+@)(?:[\\/]++[\w.+-]*+)*+"
    r"(?!(?:(?<=\W[A-Za-z])|(?<=(?i:file))):[\\/]))"
    r"|(?P<number>(?<=\s)/\d[\w.]*(?![\w.+\-/\\@]))"
    r"|(?P<element></[\w:.-]*>)"
    # Paths of a machine, from what says most to what says least.
    rf"|(?<=[\"'])(?:/(?!/)|[A-Za-z]:[\\/]|~[\\/]|\\\\)(?:[^{_STOP}]|[ ]+(?![-/@]))*[\\/][^{_STOP}]*"
    rf"|~[\w.+-]*[\\/]{_REST}"
    rf"|(?i:file):[\\/]{_REST}"
    rf"|(?:(?<!\w)|(?P<before_drive>{_OPTION}))[A-Za-z]:(?:\\|/(?!/*\*)){_REST}"
    rf"|(?P<option>{_OPTION})(?:\\?/+{_FIRST}|\\{{2,}}(?:\w|[?.]\\)|\\(?i:Users)\\|\.\.[\\/]){_REST}"
    rf"|(?P<sign>(?<![\w.+-])[+-]+)/+{_FIRST}{_REST}"
    rf"|(?<![\w.+\-/)\]}}*])(?<!\w[%\\])/{_FIRST}{_REST}"
    rf"|(?<![\w.+\-/)\]}}*])(?<!\w:)/{{2,}}{_FIRST}[^{_STOP}/\\]*[\\/]{_REST}"
    rf"|(?<=:)/{{3,}}{_FIRST}{_REST}"
    rf"|(?<![\w\\])(?:\\{{2,}}+(?:\w|[?.]\\)|\\(?i:Users)\\){_REST}"
    rf"|\.\.[\\/]{_REST}"
    r"|(?<![\w.+-])[\w.+-]+@[\w-]+\.\w[\w.-]*"
)
_KEPT = ("variable", "number", "element", "before_drive", "option", "sign")
_ENCODED = re.compile(
    r"(?:%2f|%5c)(?:(?!%2f|%5c)[^\s\"'])+(?:%2f|%5c|[\\/])|(?:%2f|%5c){2}|(?:%3a|:)(?:%2f|%5c)|%3a[\\/]|(?:%7e|~)[\w.]*(?:%2f|%5c)"
    r"|%7e[\w.]*[\\/]|\.\.(?:%2f|%5c)|%2e%2e",
    re.IGNORECASE,
)
"""Separators of a path as a URL encodes them. One `%2f` alone is a format of printf."""


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
    value = _LOCAL.sub(_replacement, value)
    if _ENCODED.search(value):
        decoded = unquote(value.replace("%20", "%2520"))  # an encoded space does not end a path
        scrubbed = _LOCAL.sub(_replacement, decoded)
        value = value if scrubbed == decoded else scrubbed
    for name in names:
        value = name.sub(ELSEWHERE, value)
    return value


def _replacement(found: re.Match[str]) -> str:
    kept = next((found[name] for name in _KEPT if found[name] is not None), None)
    return found[0] if kept == found[0] else (kept or "") + ELSEWHERE
