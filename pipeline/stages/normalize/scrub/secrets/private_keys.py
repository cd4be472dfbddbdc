"""Private keys over several lines: PEM, OpenSSH, PGP, SSH2 and PuTTY.

Every line of one key gets the same placeholder. A marker without key material is no key, but a part of a parser.

Source: RFC 7468 (textual encodings).
"""

import re
from collections.abc import Iterator

from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.stages.normalize.scrub.hits import condition

_BEGIN = re.compile(
    r"-{4,5} ?BEGIN (?P<label>[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?) ?-{4,5}|PuTTY-User-Key-File-[0-9]+:[^\n\"]*",
    re.IGNORECASE,
)
_END = re.compile(
    r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}|Private-(?:MAC|Hash): ?[0-9a-fA-F]+", re.IGNORECASE
)
_HEADER = (
    r"(?:Proc-Type|DEK-Info|Version|Comment|Encryption|Public-Lines|Private-Lines|Key-Derivation|Argon2-[A-Za-z]+|Subject|Hash|Charset)"
    r": ?[^\n\"\\]*"
)
# A line of a key: margins of comments and literals, an escaped line end, base64 or a header. A margin gives nothing back.
_MARGIN = (
    r"(?:[ \t\"',;()*#]|//|R\"[A-Za-z]*\(|\\{1,4}[nrt]|\\\n|(?:\+|<<)(?=[ \t]*\n)"
    r"|(?:[A-Za-z_][\w:.]{0,40}[ \t]?)?(?:<<|\+=|\()[ \t]?(?=(?:u8|[uUL])?\"))*+"
)
_KEY_LINE = re.compile(rf"{_MARGIN}(?:(?P<payload>{_HEADER}|=?[A-Za-z0-9+/]+={{0,2}})|(?=\n)){_MARGIN}\n?")
_MARGIN_OF_KEY_LINE = re.compile(rf"{_MARGIN}\n?")
KEY_CONDITION = "(?i:private key|putty-user)"
"""Expression that is true of every text with a key."""
_MIN_PAYLOAD = 16
_MIN_LINE = 32


def find_private_keys(text: str) -> Iterator[Finding]:
    """Yield one finding per line of each key, markers included. The value of all is the whole key."""
    if condition(KEY_CONDITION).search(text.encode()) is None:  # much faster than the expression of a beginning
        return
    position = 0
    while begin := _BEGIN.search(text, position):
        payloads, end = _payloads(text, begin.end())
        closing = _END.match(text, end)
        material = payloads if closing else _surely_key(payloads)
        if sum(stop - start for start, stop in material) >= _MIN_PAYLOAD:
            stretches = [begin.span(), *material, *([closing.span()] if closing else ())]
            whole = text[begin.start() : stretches[-1][1]]
            yield from (Finding(start, stop, whole) for start, stop in stretches)
            end = stretches[-1][1]
        position = max(end, begin.end())


def _surely_key(payloads: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the leading long lines of a key without an end marker, and one shorter line: code may follow."""
    num_long = next((index for index, (start, stop) in enumerate(payloads) if stop - start < _MIN_LINE), len(payloads))
    last = payloads[num_long : num_long + 1]
    return payloads[:num_long] + [stretch for stretch in last if stretch[1] - stretch[0] >= _MIN_PAYLOAD]


def _payloads(text: str, position: int) -> tuple[list[tuple[int, int]], int]:
    """Return the stretches of key material from `position` on, and where they end."""
    found: list[tuple[int, int]] = []
    while position < len(text):
        margin = _MARGIN_OF_KEY_LINE.match(text, position)
        assert margin is not None  # the pattern matches the empty string
        if _END.match(text, margin.end()):
            return found, margin.end()
        line = _KEY_LINE.match(text, position)
        if line is None or line.end() == position:
            return found, position
        if line["payload"]:
            found.append(line.span("payload"))
        position = line.end()
    return found, position
