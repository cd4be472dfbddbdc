"""Home folders: paths in a text that name a user of a machine, in the forms of Linux, macOS, Windows, AFS, NFS and shares."""

import re
from collections.abc import Iterator

from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.stages.normalize.scrub.hits import condition, hit_lines

_CONDITIONS = (
    r"/homes?[0-9]*/|/[Uu]sers/|/root|scratch[0-9]*/|/nobackup|/people/|/afs/|/u/[a-z0-9]|~[a-z_][a-z0-9_.-]*/",
    r"(?i)[A-Z]:[\\/]{1,4}(?:users|documents and|profiles|home)|\\(?:users?|homes?|profiles?|userdata)\$?\\",
)
HOME_CONDITION = "|".join(f"(?:{each})" for each in _CONDITIONS)
"""Expression that is true of every line with a home folder."""
_FULL_NAME = r"[A-Z][\w.'-]{0,30}(?:(?:\\{0,2}[ ]|%20)[A-Z][\w.'-]{0,30}){1,2}(?=[\\/])"
"""Words with capitals and blanks between them, before a separator: elsewhere a sentence may go on."""
_UNIX_NAME = rf"(?P<unix>{_FULL_NAME}|[^\W_][\w.-]*|_[a-z][A-Za-z0-9._-]*)"
_END = r"""(?=["'`\s;:,)>\]]|\\[nrt"]|\Z)"""
_END_OF_WINDOWS = r"""(?=[\"'\s;,)>]|\\[nrt0\"']|\Z)"""
_USER_OF_WINDOWS = rf"""{_FULL_NAME}|[^\\/\"'\s<>:|?*%]+"""
_HOME = re.compile(
    r"(?:(?<![\w.~\-])|(?<=-[ILF])|(?<=-isystem)|(?<=file:/)|(?<=file://))(?:"
    # /home/x below any mount but the addresses of pages and the folders of programs, /Users/x below mounts and drives
    r"(?<!:/)(?!/(?:usr/(?:local|share|lib(?:64|exec)?|include|src)|etc|var/(?:lib|www|cache|spool))/)(?:/(?!(?:api|rest|v[0-9]|src|app|include|www|static|ui|web|pages|views)/)[\w.-]{1,40}){0,3}"
    r"/homes?[0-9]*/(?:users/|[a-z0-9]/(?=[a-z][\w-]{2,40}(?![\w.-])))?"
    r"|(?:/mnt(?:/[a-z])?|/cygdrive/[a-z]|/[a-z]|/System/Volumes/Data|/Volumes(?:/[\w.-]+)?|/private|/nfs|/gpfs|/data"
    r"|/work|/srv|/export|/storage|/shared?|/opt|/remote|/projects?|/proj|/raid|/disks?|/vol[0-9]*|/nas)?/[Uu]sers/"
    # work folders that are named by user, AFS with its two letters
    r"|(?:/(?:data[0-9]*|mnt|gpfs|lustre|fs[0-9]*|p|pscratch|global|nfs"
    r"|net/[\w.-]+))?/(?:[gp]?scratch|nobackup)[0-9]*/(?:(?:users?|home|sd|[a-z](?=/[a-z]))/){0,2}"
    r"|/afs/[\w.-]+/(?:u|users?|home|usr|work)/(?:[a-z0-9]{1,2}/){0,2}"
    r"|/usr/people/|/u/(?:home/)?(?:[a-z0-9]/){0,2}(?=[\w.-]{2})"
    r")" + _UNIX_NAME + rf"(?P<slash>/+|{_END})"
    rf"|(?<![\w.~\-/])(?P<root>/root)(?P<root_slash>/+)(?=[\w.])"
    r"|(?<![\w.~/\-])~(?P<tilde>[a-z_][a-z0-9_.-]{1,31})(?P<tilde_slash>/+)(?=[\w.])"
    r"|(?<![A-Za-z0-9])[A-Za-z]:(?P<separator>\\{1,4}|/{1,2})(?i:Users|Documents and Settings|Profiles|home)(?P=separator)"
    rf"(?P<windows>{_USER_OF_WINDOWS})(?P<end>(?P=separator){{1,2}}|/+|{_END_OF_WINDOWS})"
    r"|(?<![\\\w])(?P<share>\\{2,4})[A-Za-z][\w.-]{0,62}(?P<share_separator>\\{1,2})(?i:users?|homes?"
    r"|profiles?|userdata)\$?(?P=share_separator)"
    rf"(?P<share_user>{_USER_OF_WINDOWS})(?P<share_end>(?P=share_separator){{1,2}}|/+|{_END_OF_WINDOWS})",
)
_ROUTES_WORDS = """
    index list lists login logout signin signup sign_in sign_up sign_out register profile
    profiles settings dashboard search new edit create delete update
    add remove view views show all count about contact help page pages main home
    api admin account accounts info details detail
    status feed news id current self invite active online batch export import query stats token tokens password reset verify
    documents downloads images static css js assets en de fr
"""
_ROUTES = frozenset(_ROUTES_WORDS.split())
"""Names after `/home/` and `/users/` in the addresses of web servers."""
_OF_A_SERVER = re.compile(
    r"(?i)(?<![a-z])(?:get|post|put|patch|delete|route|routes|router|redirect|href|endpoint|url|uri|request"
    r"|req|http|handler|svr|server|api|path_info"
    r"|location)(?![a-z])"
)
_COMMENT_BEFORE = re.compile(r"//|/\*|^\s*[*#]|(?:^|[\s;&])(?:cd|ls|cp|mv|cat|source)[ \t]+\Z")
_NO_USERS_WORDS = """
    public shared default all user users username your you yourname your_name your-name name foo bar xxx me someone
    somebody runner travis circleci vagrant jenkins buildbot linuxbrew example pi ubuntu debian ec2-user vscode
    gitpod docker site lib usr etc
"""
_NO_USERS = frozenset((*_NO_USERS_WORDS.split(), "all users", "default user", "local service", "network service"))


def find_home_folders(text: str) -> Iterator[Finding]:
    """Yield home folders of users: `/home/x/`, `/Users/x/`, `C:\\Users\\x\\`, `/root/`, `/afs/cell/user/x/x/`, `~x/`.

    The name must end in a separator, a quote or a blank.
    """
    for start, end in hit_lines(text, condition(HOME_CONDITION)):
        yield from _in_line(text, start, end)


def _in_line(text: str, start: int, end: int) -> Iterator[Finding]:
    for match in _HOME.finditer(text, start, end):
        user = match["unix"] or match["windows"] or match["share_user"] or match["tilde"]
        if match["tilde"] and not _is_path_of_text(text, start, match.start()):
            continue
        if match["root"] is None and (user.lower() in _NO_USERS or user.strip(".") == ""):
            continue
        if match["unix"] and _is_route(text, start, match):
            continue
        separator = match["slash"] or match["end"] or match["share_end"] or match["root_slash"] or match["tilde_slash"]
        yield Finding(*match.span(), match[0].rstrip("/\\"), "/" if separator else "")


def _is_route(text: str, line_start: int, match: re.Match[str]) -> bool:
    """Return whether `/home/x` or `/users/x` is the address of a page: by its name, or in a line about a server."""
    if not match[0].startswith(("/home/", "/users/")):
        return False
    if match[0].startswith("/users/") and match["unix"].isdigit():
        return True
    is_end = text[match.end() : match.end() + 1] in ("", '"', "'", "`", "?", " ", ")", ",")
    if match["unix"].partition(".")[0].lower() in _ROUTES:
        return is_end or match[0].startswith("/users/")
    return (
        match[0].startswith("/users/") and is_end and _OF_A_SERVER.search(text, line_start, match.start()) is not None
    )


def _is_path_of_text(text: str, line_start: int, place: int) -> bool:
    """Return whether `~x/` is a path: after a quote or in a comment. In code it is a complement that is divided."""
    return text[place - 1 : place] in ('"', "'", "`") or _COMMENT_BEFORE.search(text, line_start, place) is not None
