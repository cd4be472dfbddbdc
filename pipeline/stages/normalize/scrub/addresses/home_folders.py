"""Home folders: paths in a text that name a user of a machine, in the forms of Linux, macOS, Windows, AFS, NFS and shares."""

import re
from collections.abc import Iterator

from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.stages.normalize.scrub.hits import condition, hit_lines

_CONDITIONS = (
    r"/homes?[0-9]*/|/[Uu]sers/|/root|scratch[0-9]*/|/afs/|/u/[a-z0-9]|~[a-z_][a-z0-9_-]*/",
    r"(?i)[A-Z]:[\\/]{1,4}(?:users|documents and|profiles|home)|\\(?:users?|homes?|profiles?|userdata)\$?\\",
)
_UNIX_NAME = r"(?P<unix>[A-Za-z0-9][A-Za-z0-9._-]*|_[a-z][A-Za-z0-9._-]*)"
_END = r"""(?=["'`\s;:,)>\]]|\\[nrt"]|\Z)"""
_HOME = re.compile(
    r"(?:(?<![\w.~\-])|(?<=-[ILF])|(?<=-isystem)|(?<=file:/)|(?<=file://))(?:"
    # /home/x and where else homes are mounted, /Users/x, also below a drive of Windows
    r"(?:/(?:var|export|nfs|net/[\w.-]+|data[0-9]*|vol[0-9]*|mnt(?:/[\w.-]+)?|gpfs|lustre|fs[0-9]*|storage|cluster|shared?|private|opt|work"
    r"|remote|auto|srv|media/[\w.-]+|net|nas|Volumes/[\w.-]+|System/Volumes/Data|host_mnt|rsrch[0-9]*))?/homes?[0-9]*/"
    r"|(?:/mnt/[a-z]|/cygdrive/[a-z]|/[a-z]|/System/Volumes/Data|/Volumes/[\w.-]+|/private|/nfs|/gpfs|/data)?/[Uu]sers/"
    # work folders that are named by user, AFS with its two letters
    r"|(?:/(?:data[0-9]*|mnt|gpfs|lustre|fs[0-9]*|p|pscratch|global|nfs|net/[\w.-]+))?/(?:p?scratch)[0-9]*/(?:(?:users?|home|[a-z](?=/[a-z]))/){0,2}"
    r"|/afs/[\w.-]+/(?:u|users?|home|usr)/(?:[a-z0-9]/){0,2}"
    r"|/u/(?:home/)?(?:[a-z0-9]/){0,2}"
    r")" + _UNIX_NAME + rf"(?P<slash>/+|{_END})"
    rf"|(?<![\w.~\-/])(?P<root>/root)(?P<root_slash>/+)(?=[\w.])"
    r"|(?<![\w.~/\-])~(?P<tilde>[a-z_][a-z0-9_-]{1,31})(?P<tilde_slash>/+)(?=[\w.])"
    r"|(?<![A-Za-z0-9])[A-Za-z]:(?P<separator>\\{1,4}|/{1,2})(?i:Users|Documents and Settings|Profiles|home)(?P=separator)"
    r"(?P<windows>[^\\/\"'\s<>:|?*%]+)(?P<end>\\{1,4}|/+|(?=[\"'\s;,)>]|\Z))"
    r"|(?<![\\\w])(?P<share>\\{2,4})[A-Za-z][\w.-]{0,62}(?P<share_separator>\\{1,2})(?i:users?|homes?|profiles?|userdata)\$?(?P=share_separator)"
    r"(?P<share_user>[^\\/\"'\s<>:|?*%]+)(?P<share_end>\\{1,4}|/+|(?=[\"'\s;,)>]|\Z))",
)
_COMMENT_BEFORE = re.compile(r"//|/\*|^\s*[*#]")
_NO_USERS = frozenset(
    [
        "public",
        "shared",
        "default",
        "all",
        "user",
        "users",
        "username",
        "your",
        "you",
        "yourname",
        "your_name",
        "your-name",
        "name",
        "foo",
        "bar",
        "xxx",
        "me",
        "someone",
        "somebody",
        "lib",
        "usr",
        "etc",
    ]
)


def find_home_folders(text: str) -> Iterator[Finding]:
    """Yield home folders of users: `/home/x/`, `/Users/x/`, `C:\\Users\\x\\`, `/root/`, `/afs/cell/user/x/x/`, `~x/`.

    The name must end in a separator, a quote or a blank.
    """
    for start, end in hit_lines(text, condition(*_CONDITIONS)):
        yield from _in_line(text, start, end)


def _in_line(text: str, start: int, end: int) -> Iterator[Finding]:
    for match in _HOME.finditer(text, start, end):
        user = match["unix"] or match["windows"] or match["share_user"] or match["tilde"]
        if match["tilde"] and not _is_path_of_text(text, start, match.start()):
            continue
        if match["root"] is None and (user.lower() in _NO_USERS or user.strip(".") == ""):
            continue
        separator = match["slash"] or match["end"] or match["share_end"] or match["root_slash"] or match["tilde_slash"]
        yield Finding(*match.span(), match[0].rstrip("/\\"), "/" if separator else "")


def _is_path_of_text(text: str, line_start: int, place: int) -> bool:
    """Return whether `~x/` is a path: after a quote or in a comment. In code it is a complement that is divided."""
    return text[place - 1 : place] in ('"', "'", "`") or _COMMENT_BEFORE.search(text, line_start, place) is not None
