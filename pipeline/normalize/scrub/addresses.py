"""What points at people and machines: e-mail addresses, public network addresses, home folders.

Sources of the exceptions: RFC 2606 and 6761 (example names), RFC 1918, 5737, 3849 and their kin as `ipaddress` knows
them.
"""

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

import re2


class Kind(StrEnum):
    """What was found; the value is the word in its placeholder."""

    SECRET = "secret"
    EMAIL = "email"
    NETWORK_ADDRESS = "network-address"
    PATH = "path"


@dataclass(frozen=True)
class Finding:
    """A stretch of text that must go.

    Equal `value` of one kind means the same placeholder; `tail` is written behind it.
    """

    kind: Kind
    start: int
    end: int
    value: str = field(repr=False)
    tail: str = ""


# Letters with accents are in names and labels too; of other scripts, sentences run on without a blank.
_LETTER = "A-Za-z0-9À-ÖØ-öø-ɏ"
_DOMAIN = re.compile(rf"@((?:[{_LETTER}](?:[{_LETTER}-]{{0,62}}[{_LETTER}])?\.)+[A-Za-z]{{2,24}})(?![A-Za-z0-9_-])")
_LOCAL_PART = re.compile(rf"[{_LETTER}!#$%&*+=?^_`{{|}}~.-]{{1,64}}\Z")
_RESERVED_DOMAIN = re.compile(
    r"(?:^|\.)(?:example\.(?:com|net|org|edu)|example|test|invalid|localhost|local)$", re.IGNORECASE
)

_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = re.compile(rf"(?<![\w.])(?:{_OCTET}\.){{3}}{_OCTET}(?!\w|\.\w)")
_IPV6 = re.compile(r"(?<![\w:.])[23][0-9a-fA-F]{3}:(?:[0-9a-fA-F]{0,4}:){1,6}[0-9a-fA-F]{0,4}(?![\w:])")
# A necessary condition, ten times as fast: most texts hold no address at all.
_CAN_HOLD_ADDRESS = re2.compile(r"[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]|[23][0-9a-fA-F]{3}:[0-9a-fA-F]{0,4}:")
_NUMBERED = re.compile(
    r"(?:\b(?:versions?|ver|v|rev|revision|release|section|sect|sec|chapter|clause|paragraph|rfc|table|figure)|§)\W{0,3}\w*\W{0,3}\Z",
    re.IGNORECASE,
)
_COMMENT_MARGIN = re.compile(r"[\s/*!<#\[(]*\Z")
_TITLE = re.compile(r" +[A-Z\[`]|[\])] +\w")
_MAX_SECTION_NUMBER = 30
_NUM_CONTEXT_CHARACTERS = 32

_CAN_HOLD_HOME = re2.compile(r"/home/|(?i)[\\/](?:users|documents and)")
_HOME = re.compile(
    r"(?<![\w.~])(?:(?:/var|/export)?/home/|(?:/mnt/[a-z]|/cygdrive/[a-z])?/Users/)(?P<unix>[A-Za-z0-9._-]+)"
    r"(?P<slash>/+|(?=[\"'\s;:,)>]|\Z))"
    r"|(?<![A-Za-z0-9])[A-Za-z]:(?P<separator>\\{1,4}|/{1,2})(?i:Users|Documents and Settings)(?P=separator)"
    r"(?P<windows>[^\\/\"'\s<>:|?*]+)(?P<end>\\{1,4}|/+|(?=[\"'\s;,)>]|\Z))",
)


def find_emails(text: str) -> Iterator[Finding]:
    """E-mail addresses, but those of example domains."""
    for match in _DOMAIN.finditer(text):
        local = _LOCAL_PART.search(text, max(0, match.start() - 64), match.start())
        if local and not _RESERVED_DOMAIN.search(match[1]):
            start = _trimmed(text, local.start(), match.start())
            if start < match.start():
                yield Finding(Kind.EMAIL, start, match.end(), text[start : match.end()].lower())


def find_network_addresses(text: str) -> Iterator[Finding]:
    """Public IPv4 and IPv6 addresses.

    Not private, loopback and documentation ranges, nor version and section numbers of four parts.
    """
    if not _CAN_HOLD_ADDRESS.search(text):
        return
    for match in _IPV4.finditer(text):
        if ipaddress.IPv4Address(match[0]).is_global and not _is_numbering(text, match):
            yield Finding(Kind.NETWORK_ADDRESS, *match.span(), match[0])
    for match in _IPV6.finditer(text):
        try:
            address = ipaddress.IPv6Address(match[0])
        except ValueError:
            continue
        if address.is_global:
            yield Finding(Kind.NETWORK_ADDRESS, *match.span(), address.compressed)


def find_local_paths(text: str) -> Iterator[Finding]:
    """Home folders of users: `/home/x/`, `/Users/x/`, `C:\\Users\\x\\`.

    The name must end in a separator, a quote or a blank.
    """
    if not _CAN_HOLD_HOME.search(text):
        return
    for match in _HOME.finditer(text):
        separator = match["slash"] if match["unix"] else match["end"]
        yield Finding(Kind.PATH, *match.span(), match[0].rstrip("/\\"), "/" if separator else "")


def _is_numbering(text: str, match: re.Match[str]) -> bool:
    """Whether four numbers count versions or sections.

    Such a word stands before them, or they head a comment like `// 7.18.2.5 Limits`.
    """
    before = text[max(0, match.start() - _NUM_CONTEXT_CHARACTERS) : match.start()].rpartition("\n")[2]
    if _NUMBERED.search(before):
        return True
    are_small = all(int(number) <= _MAX_SECTION_NUMBER for number in match[0].split("."))
    return are_small and bool(_COMMENT_MARGIN.match(before) and _TITLE.match(text, match.end()))


def _trimmed(text: str, start: int, end: int) -> int:
    """Where the local part starts, once an escape such as a literal's `\\n` and leading punctuation are left out."""
    if start > 0 and text[start - 1] == "\\" and text[start].isalpha():
        start += 1
    while start < end and not text[start].isalnum():
        start += 1
    return start
