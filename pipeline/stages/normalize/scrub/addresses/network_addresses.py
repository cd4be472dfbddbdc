"""Network addresses: public IPv4 and IPv6 addresses in a text, and what only looks like one.

Four numbers with dots are versions, section numbers, object identifiers and masks more often than addresses. The words before
them on the line decide; small numbers count only beside a word of networks or by themselves.

Sources: RFC 1918, 5737, 3849, 7526 and related ones as `ipaddress` knows them.
"""

import ipaddress
import re
from collections.abc import Iterator
from itertools import pairwise

from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.stages.normalize.scrub.hits import condition, hit_lines

_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = re.compile(rf"(?<![\w.])(?:{_OCTET}\.){{3}}{_OCTET}(?!\w|\.\w)")
_IPV4_IN_NUMBERS = re.compile(
    rf"\b(?:IPAddress[ \t]{{0,4}}\w{{0,40}}\s?[({{]|IP4_ADDR\([^,()\n]{{1,60}},)\s{{0,4}}"
    rf"(?P<octets>(?:{_OCTET}\s{{0,2}},\s{{0,2}}){{3}}{_OCTET})\s?[)}}]"
)
"""An address as the arguments of a constructor, as Arduino's and lwIP's."""
_IPV6 = re.compile(r"(?<![\w:.])[23][0-9a-fA-F]{3}:(?:[0-9a-fA-F]{0,4}:){1,6}[0-9a-fA-F]{0,4}(?![\w:])")
NETWORK_CONDITION = (
    r"IPAddress[ \t]*\w*[ \t]?[({][ \t]*[0-9]|IP4_ADDR|[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]"
    r"|[23][0-9a-fA-F]{3}:[0-9a-fA-F]{0,4}:"
)
"""Expression that is true of every line with an address, or with what looks like one."""
_NUMBERED = re.compile(
    r"(?:version|(?<![a-z])ver(?![a-z])|(?<![a-z])v\.?\s*\Z|\brev|release|section|(?<![a-z])sect?(?![a-z])"
    r"|chapter|clause|paragraph|§"
    r"|(?<![a-z])(?:rfc|iso|iec|ieee|ansi|itu|spec|specs|specification|table|figure|fig|step|item|build|update"
    r"|firmware|driver|since|api|sdk|abi|std|eqs?\.|eqn|equation|cuda|cudnn|nuget"
    r"|c(?:89|99|11|17|2[0-9])|c\+\+[0-9]{2}|[a-z0-9]{2,}[- ]?standard|draft|appendix|annex)(?![a-z])"
    r"|\[[A-Z]{2,8}[-_][A-Z0-9]{2,20}\]|oid(?![a-z])|object.?identifier|802\.[0-9]|\.so\.)",
    re.IGNORECASE,
)
_OF_NETWORKS = re.compile(
    r"(?<![a-z])(?:ip(?:v4)?|addr\w*|inet\w*|host\w*|server\w*|peer|client|dns|ping|connect\w*|bind|listen\w*"
    r"|gateway|route|proxy|network"
    r"|subnet|socket|port|remote|endpoint|url|https?|tcp|udp|ssh|ntp|resolver|nameserver)(?![a-z])|://|@\Z",
    re.IGNORECASE,
)
_PRODUCT = re.compile(r"(?:[A-Za-z][\w.+-]{0,40}|\])/\Z")
_PRODUCT_IN_WORDS = re.compile(r"[\"(][A-Z][A-Za-z+]{1,20} \Z")
_MAX_MAJOR_VERSION = 25
_LIBRARY = re.compile(r"[A-Za-z][\w+]{0,40}[-_.]\Z")
_COMMENT = re.compile(r"(?<!:)//|/\*|^\s*[*#]")
_STANDARD_AFTER = re.compile(
    r"\)? (?:chapter|section|clause)|\)? (?:in|of) (?:the )?[\w. -]{0,30}(?:standard|specification)"
)
_TITLE_MARGIN = re.compile(r"^[\s/*!<#\[(]*\Z|[\"\s][A-Za-z]\w* \Z|\"\Z")
_TITLE = re.compile(r"\.? +[A-Z\[`]|[\])] +\w|\]")
_RESOLVERS = frozenset(("8.8.8.8", "8.8.4.4", "1.1.1.1", "9.9.9.9", "4.4.4.4", "4.2.2.2"))
"""Public resolvers, whose numbers are small and which no section has."""
_OF_SERVICES = tuple(
    map(ipaddress.IPv4Network, ("192.88.99.0/24", "192.52.193.0/24", "192.31.196.0/24", "192.175.48.0/24"))
)
"""Blocks of services that every network has: relays of 6to4 and AMT, and AS112."""
_MIN_GROUPS = 3
"""Groups of an IPv6 address that are not zero: `2600::4` is of a test."""
_MAX_SECTION_NUMBER = 60
_NUM_CONTEXT_CHARACTERS = 160


def find_network_addresses(text: str) -> Iterator[Finding]:
    """Yield public IPv4 and IPv6 addresses.

    Private, loopback, documentation, multicast and reserved ranges are left out, and versions, sections and identifiers.
    """
    for start, end in hit_lines(text, condition(NETWORK_CONDITION)):
        yield from _in_line(text, start, end)


def _in_line(text: str, start: int, end: int) -> Iterator[Finding]:
    for match in _IPV4.finditer(text, start, end):
        if _is_of_a_host(ipaddress.IPv4Address(match[0])) and not _is_numbering(text, match):
            yield Finding(*match.span(), match[0])
    for match in _IPV4_IN_NUMBERS.finditer(text, start, end):
        host = ipaddress.IPv4Address(".".join(re.findall("[0-9]+", match["octets"])))
        if _is_of_a_host(host) and not _is_made_up(list(host.packed)):
            yield Finding(*match.span("octets"), str(host))
    for match in _IPV6.finditer(text, start, end):
        try:
            address = ipaddress.IPv6Address(match[0])
        except ValueError:
            continue
        num_groups = sum(group.strip("0") != "" for group in address.exploded.split(":"))
        if address.is_global and num_groups >= _MIN_GROUPS:
            yield Finding(*match.span(), address.compressed)


def _is_of_a_host(address: ipaddress.IPv4Address) -> bool:
    """Return whether an address is that of one machine in the public network: no group, mask or whole block."""
    if any(address in network for network in _OF_SERVICES):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved and address.packed[2:] != b"\0\0"


def _is_made_up(numbers: list[int]) -> bool:
    """Return whether four numbers are in equal steps, as in `2.3.4.5`, end in one that repeats, or count through the digits."""
    steps = {after - before for before, after in pairwise(numbers)}
    return len(steps) == 1 or len(set(numbers[1:])) == 1 or "".join(map(str, numbers)) in "1234567890"


def _is_numbering(text: str, match: re.Match[str]) -> bool:
    """Return whether four numbers are of a version, a section or an identifier, by what is before them on the line."""
    before = text[max(0, match.start() - _NUM_CONTEXT_CHARACTERS) : match.start()].rpartition("\n")[2]
    is_url = before.endswith("//")
    numbered = list(_NUMBERED.finditer(before))
    if numbered and not _OF_NETWORKS.search(before, numbered[-1].end()):
        return True
    if not is_url and (_PRODUCT.search(before) or _LIBRARY.search(before)):
        return True
    numbers = [int(number) for number in match[0].split(".")]
    if _is_made_up(numbers) and match[0] not in _RESOLVERS:
        return True
    if numbers[:3] in ([1, 2, 840], [1, 3, 6], [1, 3, 101], [2, 5, 4], [2, 5, 29], [2, 16, 840], [1, 2, 3]):
        return True
    if _STANDARD_AFTER.match(text, match.end()):
        return True
    if _PRODUCT_IN_WORDS.search(before) and numbers[0] <= _MAX_MAJOR_VERSION and not _OF_NETWORKS.search(before):
        return True
    are_small = max(numbers) <= _MAX_SECTION_NUMBER and match[0] not in _RESOLVERS
    return are_small and _is_of_text(
        before, text[match.end() : match.end() + _NUM_CONTEXT_CHARACTERS].partition("\n")[0]
    )


def _is_of_text(before: str, after: str) -> bool:
    """Return whether small numbers are a section or a version: in a comment, as a title or alone in a literal, with no network."""
    is_bracketed = before.endswith("[") and after.startswith("]")
    is_titled = _TITLE.match(after) is not None and _TITLE_MARGIN.search(before) is not None
    is_prose = _COMMENT.search(before) is not None or is_bracketed or is_titled
    is_alone = before.endswith('"') and after.startswith('"') and not _OF_NETWORKS.search(after)
    return (is_prose or is_alone) and not _OF_NETWORKS.search(before)
