"""Detectors of secrets and addresses: their registry, and the search for e-mail addresses, network addresses and home folders.

To add one, write its `find` function here, register it in DETECTORS, and, if it can be switched off, add its field to
ScrubParams. Placeholders, counts and the gate's second search derive from the registry.

Sources of the exceptions: RFC 2606 and 6761 (example names), RFC 1918, 5737, 3849 and related ones as `ipaddress`
knows them.
"""

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import re2
from detect_secrets.settings import default_settings

from pipeline.core.params import field_of
from pipeline.core.registry import Registry
from pipeline.stages.normalize.params import ScrubParams
from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.stages.normalize.scrub.private_keys import find_private_keys
from pipeline.stages.normalize.scrub.secrets import find_secrets, find_spliced_secrets


@dataclass(frozen=True)
class Detector:
    """A kind of secret or address, and how it is found and replaced.

    `find` returns findings in a text; `placeholder` is the word in `<redacted-email-1>`. `param` is the field of
    ScrubParams that switches the detector on, None for one that is always on. `stays_in_license_header` says that
    attribution in a license header may be kept. `settings` is a context that `find` needs around it.
    """

    name: str
    find: Callable[[str], Iterable[Finding]]
    placeholder: str
    param: str | None = None
    stays_in_license_header: bool = False
    settings: Callable[[], AbstractContextManager[object]] = nullcontext
    version: int = 1
    """Raised by a program that changes what its detector finds."""

    def is_on(self, params: ScrubParams) -> bool:
        """Return whether the parameters switch the detector on. Raises ParamsError if they have no such field."""
        return self.param is None or bool(field_of(params, self.param, f"detector {self.name}"))


# Names hold letters with accents too. Letters of other scripts may belong to a sentence without blanks.
_LETTER = "A-Za-z0-9À-ÖØ-öø-ɏ"
_DOMAIN = re.compile(rf"@((?:[{_LETTER}](?:[{_LETTER}-]{{0,62}}[{_LETTER}])?\.)+[A-Za-z]{{2,24}})(?![A-Za-z0-9_-])")
_LOCAL_PART = re.compile(rf"[{_LETTER}!#$%&*+=?^_`{{|}}~.-]{{1,64}}\Z")
_RESERVED_DOMAIN = re.compile(
    r"(?:^|\.)(?:example\.(?:com|net|org|edu)|example|test|invalid|localhost|local)$", re.IGNORECASE
)

_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = re.compile(rf"(?<![\w.])(?:{_OCTET}\.){{3}}{_OCTET}(?!\w|\.\w)")
_IPV6 = re.compile(r"(?<![\w:.])[23][0-9a-fA-F]{3}:(?:[0-9a-fA-F]{0,4}:){1,6}[0-9a-fA-F]{0,4}(?![\w:])")
# A necessary condition, ten times as fast: most texts hold no address.
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
    """Yield e-mail addresses, except those of example domains."""
    if "@" not in text:
        return
    for match in _DOMAIN.finditer(text):
        local = _LOCAL_PART.search(text, max(0, match.start() - 64), match.start())
        if local and not _RESERVED_DOMAIN.search(match[1]):
            start = _trimmed(text, local.start(), match.start())
            if start < match.start():
                yield Finding(start, match.end(), text[start : match.end()].lower())


def find_network_addresses(text: str) -> Iterator[Finding]:
    """Yield public IPv4 and IPv6 addresses.

    Private, loopback and documentation ranges are left out, and version and section numbers of four parts.
    """
    if not _CAN_HOLD_ADDRESS.search(text):
        return
    for match in _IPV4.finditer(text):
        if ipaddress.IPv4Address(match[0]).is_global and not _is_numbering(text, match):
            yield Finding(*match.span(), match[0])
    for match in _IPV6.finditer(text):
        try:
            address = ipaddress.IPv6Address(match[0])
        except ValueError:
            continue
        if address.is_global:
            yield Finding(*match.span(), address.compressed)


def find_local_paths(text: str) -> Iterator[Finding]:
    """Yield home folders of users: `/home/x/`, `/Users/x/`, `C:\\Users\\x\\`.

    The name must end in a separator, a quote or a blank.
    """
    if not _CAN_HOLD_HOME.search(text):
        return
    for match in _HOME.finditer(text):
        separator = match["slash"] if match["unix"] else match["end"]
        yield Finding(*match.span(), match[0].rstrip("/\\"), "/" if separator else "")


# In order of precedence: of findings that overlap, that of the earlier detector is replaced.
DETECTORS = Registry(
    "detector",
    Detector("private-key", find_private_keys, "secret"),
    Detector("spliced-secret", find_spliced_secrets, "secret", settings=default_settings),
    Detector("secret", find_secrets, "secret", settings=default_settings),
    Detector("email", find_emails, "email", "redact_emails", stays_in_license_header=True),
    Detector(
        "network-address",
        find_network_addresses,
        "network-address",
        "redact_network_addresses",
        stays_in_license_header=True,
    ),
    Detector("path", find_local_paths, "path", "redact_local_paths"),
    is_in_parts=True,
)


def placeholders() -> list[str]:
    """Return the placeholder words of all detectors, sorted."""
    return sorted({detector.placeholder for detector in DETECTORS})


def _is_numbering(text: str, match: re.Match[str]) -> bool:
    """Return whether four numbers are of a version or section: after such a word, or as the head of a comment's title."""
    before = text[max(0, match.start() - _NUM_CONTEXT_CHARACTERS) : match.start()].rpartition("\n")[2]
    if _NUMBERED.search(before):
        return True
    are_small = all(int(number) <= _MAX_SECTION_NUMBER for number in match[0].split("."))
    return are_small and bool(_COMMENT_MARGIN.match(before) and _TITLE.match(text, match.end()))


def _trimmed(text: str, start: int, end: int) -> int:
    """Return where the local part starts after an escape such as a literal's `\\n` and leading punctuation."""
    if start > 0 and text[start - 1] == "\\" and text[start].isalpha():
        start += 1
    while start < end and not text[start].isalnum():
        start += 1
    return start
