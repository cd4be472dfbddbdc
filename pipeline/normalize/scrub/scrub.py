"""Secrets, e-mail addresses, public network addresses and home folders become numbered placeholders.

The same value in a document has the same number, in order of first occurrence; numbers go on behind placeholders that
are there already. Lines keep their count, string literals stay closed. Texts are scrubbed until nothing is found, so
that twice is once.
"""

import re
from bisect import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import TracebackType

from pipeline.cpp.comments import license_header_end
from pipeline.normalize.params import ScrubParams
from pipeline.normalize.scrub.addresses import Finding, Kind, find_emails, find_local_paths, find_network_addresses
from pipeline.normalize.scrub.line_continuations import find_spliced
from pipeline.normalize.scrub.private_keys import find_private_keys
from pipeline.normalize.scrub.secrets import MIN_DISTINCT, STARTS_WORD, Secret, SecretScanner

_MAX_ROUNDS = 8
_PLACEHOLDER = re.compile(r"<redacted-(secret|email|network-address|path)-([0-9]+)>")
_ANGLED_INCLUDE = re.compile(r"^([ \t]*#[ \t]*include[ \t]*)<(<redacted-path-[0-9]+>[^>\n]*)>", re.MULTILINE)
_DELIMITERS = " \t\"'=:"


@dataclass(frozen=True)
class Scrubbed:
    """A text without what was found, and how many stretches were replaced.

    `is_clean` is False if something would not go away.
    """

    text: str
    num_redactions: int
    is_clean: bool


class Scrubber:
    """Scrubs texts under one set of Params. A context manager, as its SecretScanner is."""

    def __init__(self, params: ScrubParams) -> None:
        self._params = params
        self._secrets = SecretScanner()

    def __enter__(self) -> "Scrubber":
        self._secrets.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._secrets.__exit__(kind, error, trace)

    def scrub(self, text: str) -> Scrubbed:
        """Replace what is found until nothing is."""
        numbers = _Numbers(text)
        num_redactions = 0
        for _ in range(_MAX_ROUNDS):
            findings = self._find(text)
            if not findings:
                return Scrubbed(numbers.in_order(text), num_redactions, is_clean=True)
            num_redactions += len(findings)
            text = _replace(text, findings, numbers)
        return Scrubbed(numbers.in_order(text), num_redactions, is_clean=not self._find(text))

    def scan(self, text: str) -> int:
        """Number of findings in a text; 0 for everything that `scrub` returned as clean."""
        return len(self._find(text))

    def _find(self, text: str) -> list[Finding]:
        fresh = self._find_secrets(text)
        keys = list(find_private_keys(text)) if fresh or "PRIVATE KEY" in text or "PuTTY-User" in text else []
        return _disjoint([keys, find_spliced(text, self._find_secrets), fresh, *self._addresses(text)])

    def _find_secrets(self, text: str) -> list[Finding]:
        taken = [_as_finding(text, secret) for secret in self._secrets.find(text) if not _is_waived(text, secret)]
        return [finding for finding in taken if not _PLACEHOLDER.fullmatch(finding.value)]

    def _addresses(self, text: str) -> list[list[Finding]]:
        emails = list(find_emails(text)) if self._params.redact_emails and "@" in text else []
        network = list(find_network_addresses(text)) if self._params.redact_network_addresses else []
        paths = list(find_local_paths(text)) if self._params.redact_local_paths else []
        if (emails or network) and self._params.keep_addresses_in_license_header:
            end = license_header_end(text)
            emails = [finding for finding in emails if finding.start >= end]
            network = [finding for finding in network if finding.start >= end]
        return [emails, network, paths]


class _Numbers:
    """Gives each value of a kind its number."""

    def __init__(self, text: str) -> None:
        self._numbers: dict[tuple[Kind, str], int] = {}
        self._there_already = dict.fromkeys(Kind, 0)
        for kind, number in _PLACEHOLDER.findall(text):
            self._there_already[Kind(kind)] = max(self._there_already[Kind(kind)], int(number))
        self._last = dict(self._there_already)

    def placeholder(self, finding: Finding) -> str:
        key = (finding.kind, finding.value)
        if key not in self._numbers:
            self._last[finding.kind] += 1
            self._numbers[key] = self._last[finding.kind]
        return f"<redacted-{finding.kind}-{self._numbers[key]}>{finding.tail}"

    def in_order(self, text: str) -> str:
        """The text with the numbers that were given counted anew in order of place: a later round finds what stands earlier."""
        last = dict(self._there_already)
        given: dict[tuple[Kind, int], int] = {}

        def renumber(match: re.Match[str]) -> str:
            kind, number = Kind(match[1]), int(match[2])
            if number <= self._there_already[kind]:
                return match[0]
            if (kind, number) not in given:
                last[kind] += 1
                given[kind, number] = last[kind]
            return f"<redacted-{kind}-{given[kind, number]}>"

        return _PLACEHOLDER.sub(renumber, text) if self._numbers else text


def _as_finding(text: str, secret: Secret) -> Finding:
    """A secret with its ends moved so that no escape is cut and no quote of a string literal is swallowed."""
    start, end = secret.start, secret.end
    while start < end and text[start] in _DELIMITERS:
        start += 1
    while start < end and text[end - 1] in _DELIMITERS:
        end -= 1
    quote = text[start - 1] if start else ""
    if quote in ("'", '"') and _num_backslashes(text, start - 1) % 2 == 0:
        closing = _closing_quote(text, start, quote)
        end = closing if closing is not None and (closing < end or text[end - 1] == "\\") else end
    else:
        start -= _num_backslashes(text, start) % 2
        end = min(
            (position for position in (text.find(quote, start, end) for quote in "'\"") if position >= 0), default=end
        )
    end += _num_backslashes(text, end) % 2 if text[end : end + 1] not in ("", "\n") else 0
    return Finding(Kind.SECRET, start, end, text[start:end])


def _is_waived(text: str, secret: Secret) -> bool:
    """Whether a finding is no secret after all: the middle of an identifier, or an alphabet such as that of base 32.

    In an alphabet most characters are followed by their successor; among random ones of base 64 it is one in 64.
    """
    if secret.plugin in STARTS_WORD:
        return bool(re.match(r"\w", text[secret.start - 1 : secret.start]))
    num_in_order = sum(ord(after) == ord(before) + 1 for before, after in pairwise(secret.value))
    return secret.plugin in MIN_DISTINCT and num_in_order > len(secret.value) / 2


def _closing_quote(text: str, start: int, quote: str) -> int | None:
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    position = text.find(quote, start, line_end)
    while position >= 0 and _num_backslashes(text, position) % 2:
        position = text.find(quote, position + 1, line_end)
    return position if position >= 0 else None


def _num_backslashes(text: str, end: int) -> int:
    count = 0
    while end - count > 0 and text[end - count - 1] == "\\":
        count += 1
    return count


def _disjoint(groups: Sequence[Iterable[Finding]]) -> list[Finding]:
    """Findings in order of place. Of overlapping ones that of the earlier group stays, then the earlier, the longer."""
    kept: list[Finding] = []
    for group in groups:
        for finding in sorted(group, key=lambda finding: (finding.start, -finding.end)):
            position = bisect(kept, finding.start, key=lambda other: other.start)
            before, behind = kept[max(0, position - 1) : position], kept[position : position + 1]
            is_apart = all(other.end <= finding.start for other in before) and all(
                finding.end <= other.start for other in behind
            )
            if finding.start < finding.end and is_apart:
                kept.insert(position, finding)
    return kept


def _replace(text: str, findings: list[Finding], numbers: _Numbers) -> str:
    pieces, position = [], 0
    for finding in findings:
        pieces += [text[position : finding.start], numbers.placeholder(finding)]
        position = finding.end
    # The placeholder's own bracket would close an angled include: quotes name the same file.
    return _ANGLED_INCLUDE.sub(r'\1"\2"', "".join([*pieces, text[position:]]))
