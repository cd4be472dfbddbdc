"""Secrets found by the default plugins of detect-secrets, each run only on lines where it can find something.

Over whole files the tool reads 0.1 MB/s. Each plugin has a necessary condition here, an RE2 expression; the union of all
is searched in the document, and on a line that matches, the plugins whose own condition holds are run as the tool's
`scan_file` runs them. A test plants lines for every plugin and compares the findings. `_scan_line` and
`_is_filtered_out` are private: detect-secrets 1.5.0.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

import re2
from detect_secrets.core.scan import _is_filtered_out, _scan_line
from detect_secrets.plugins.keyword import C_PLUS_PLUS_REGEX_TO_GROUP
from detect_secrets.settings import get_plugins
from detect_secrets.util.code_snippet import get_code_snippet

from pipeline.stages.normalize.scrub.finding import Finding, find_spliced

SCANNED_NAME = "x.cpp"
"""The tool chooses keyword rules by suffix: those for C and C++ are applied to texts in all languages."""

_ASSIGNED = r"""["']?\]? *(?:=|:|:=|=>| +|::) *["']?"""
_KEY = r"(?:key|pwd|pw|password|pass|token)"
_WORD = r"[\p{L}\p{M}\p{N}_]"

CONDITIONS: Mapping[str, str | None] = {
    "ArtifactoryDetector": r"A(?:KC[a-zA-Z0-9]{10}|P[\p{Nd}ABCDEF][a-zA-Z0-9]{8})",
    "AWSKeyDetector": r"""(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}|['"][0-9a-zA-Z/+]{40}['"]""",
    "AzureStorageKeyDetector": r"AccountKey=",
    "Base64HighEntropyString": r"""["'][A-Za-z0-9+/\\\-_=]{23,}["']""",
    "BasicAuthDetector": r"://[^:/?#\[\]@!$&'()*+,;=\n]+:[^:/?#\[\]@!$&'()*+,;=\n]+@",
    "CloudantDetector": rf"(?i:cl(?:oudant|ou)?[_-]?(?:api)?{_KEY}{_ASSIGNED}[0-9a-z]{{24}}|cloudant\.com)",
    "DiscordBotTokenDetector": r"[MNO][a-zA-Z\p{Nd}_-]{23,25}\.[a-zA-Z\p{Nd}_-]{6}\.[a-zA-Z\p{Nd}_-]{27}",
    "GitHubTokenDetector": r"gh[pousr]_[A-Za-z0-9_]{36}",
    "GitLabTokenDetector": r"gl[a-z]{2,5}-(?:[0-9a-fA-F]{2}_)?[A-Za-z0-9_\-]{20}|GR1348941",
    "HexHighEntropyString": r"""["'][0-9a-fA-F]{9,}["']""",
    # Its findings hold no letter, so the tool's own filters always drop them: `find_network_addresses` finds them.
    "IPPublicDetector": None,
    "IbmCloudIamDetector": rf"(?i:{_KEY}{_ASSIGNED}[a-z0-9_\-]{{44}})",
    "IbmCosHmacDetector": rf"(?i:secret[-_]?(?:access)?[-_]?key{_ASSIGNED}[a-f0-9]{{48}})",
    "JwtTokenDetector": r"eyJ[A-Za-z0-9_=-]+\.[A-Za-z0-9_=-]",
    "KeywordDetector": (
        r"(?i:api_?key|auth_?key|service_?key|account_?key|db_?key|database_?key|priv_?key|private_?key|client_?key|db_?pass|"
        rf"database_?pass|key_?pass|password|passwd|pwd|secret|contrase(?:ñ|n)a){_WORD}*"
        r"""(?:(?:.assign)?\("|[\]'"]{0,2}[ \t\f\v\p{Z}]*[=!]=?=?[ \t\f\v\p{Z}]*['"`])"""
    ),
    "MailchimpDetector": r"[0-9a-z]{32}-us[0-9]",
    "NpmDetector": r"/:_authToken=",
    "OpenAIDetector": r"T3BlbkFJ",
    "PrivateKeyDetector": (
        r"BEGIN (?:DSA |EC |OPENSSH |RSA |SSH2 ENCRYPTED )?PRIVATE KEY"
        r"|BEGIN PGP PRIVATE KEY BLOCK|PuTTY-User-Key-File-2"
    ),
    "PypiTokenDetector": r"pypi-AgE",
    "SendGridDetector": r"SG\.[a-zA-Z0-9_-]{22}\.",
    "SlackDetector": r"(?i:xox[abposr]-[\p{Nd}]|hooks\.slack\.com/services/)",
    "SoftlayerDetector": (
        rf"(?i:(?:softlayer|sl)[_-]?(?:api)?[_-]?{_KEY}{_ASSIGNED}[a-z0-9]{{64}}|//api.softlayer.com/soap/)"
    ),
    "SquareOAuthDetector": r"sq0csp-",
    "StripeDetector": r"[rs]k_live_[0-9a-zA-Z]{24}",
    "TelegramBotTokenDetector": r"\p{Nd}{8}:[0-9A-Za-z_-]{35}",
    "TwilioKeyDetector": r"(?:AC|SK)[a-z0-9]{32}",
}
"""For each plugin a condition without which it finds nothing on a line. None: it can never report anything."""

_MIN_DISTINCT = {"Base64HighEntropyString": 23, "HexHighEntropyString": 9}
"""Entropy is at most log2 of the number of distinct characters: 4.5 and 3.0 bits need more than 22 and 8 of them."""

_WHOLE_MATCH = frozenset({"GitHubTokenDetector", "GitLabTokenDetector", "PrivateKeyDetector"})
"""Plugins that report a fixed prefix or a marker; the whole match is replaced."""

_STARTS_WORD = frozenset({"GitHubTokenDetector", "StripeDetector", "TwilioKeyDetector"})
"""Plugins whose tokens begin a word: there is no token `ghs_...` in `Highs_metis_Allocate2WayNodePartitionMemory`."""

_CONTINUED = {"JwtTokenDetector": re.compile(r"[A-Za-z0-9_.+/=-]*")}
"""Plugins whose expression ends early, and what follows it: the signature of a JSON web token."""

_DELIMITERS = " \t\"'=:"


@dataclass(frozen=True)
class Secret:
    """A finding of the tool: the value that it reports (never to be printed), and where the secret is in the text."""

    plugin: str
    line: int
    value: str = field(repr=False)
    start: int
    end: int


def find_secrets(text: str) -> list[Finding]:
    """Return the secrets of a text, each with the ends of the string literal or word that must be replaced with it."""
    return [_as_finding(text, secret) for secret in scan_secrets(text) if not _is_waived(text, secret)]


def find_spliced_secrets(text: str) -> list[Finding]:
    """Return the secrets that a line continuation divides, one finding per line."""
    return find_spliced(text, find_secrets)


def scan_secrets(text: str) -> list[Secret]:
    """Return all findings of detect-secrets, in order of place: those of its `scan_file` on the same text as a C++ file.

    To be called inside of `detect_secrets.settings.default_settings()`: the tool keeps its settings in the process.
    """
    hits = _hit_lines(text)
    if not hits:
        return []
    lines = text.split("\n")
    found: list[Secret] = []
    for number, start in hits:
        found += _secrets_on_line(lines, number, start)
    return sorted(found, key=lambda secret: (secret.start, -secret.end, secret.plugin))


def _as_finding(text: str, secret: Secret) -> Finding:
    """Return a secret with its ends moved so that no escape is divided and no quote of a string literal is included."""
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
    return Finding(start, end, text[start:end])


def _is_waived(text: str, secret: Secret) -> bool:
    """Return whether a finding is not a secret: the middle of an identifier, or an alphabet such as that of base 32.

    In an alphabet most characters are followed by their successor; among random ones of base 64, one in 64 is.
    """
    if secret.plugin in _STARTS_WORD:
        return bool(re.match(r"\w", text[secret.start - 1 : secret.start]))
    num_in_order = sum(ord(after) == ord(before) + 1 for before, after in pairwise(secret.value))
    return secret.plugin in _MIN_DISTINCT and num_in_order > len(secret.value) / 2


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


def _secrets_on_line(lines: list[str], number: int, start: int) -> Iterator[Secret]:
    line = lines[number].rstrip()
    plugins = [plugin for plugin in get_plugins() if _can_concern(type(plugin).__name__, line)]
    if not plugins:
        return
    context = get_code_snippet(lines=lines, line_number=number + 1)
    if _is_filtered_out(["line"], filename=SCANNED_NAME, line=line, context=context):
        return
    for plugin in plugins:
        reported = {
            str(secret.secret_value)
            for secret in _scan_line(plugin, filename=SCANNED_NAME, line=line, line_number=number + 1, context=context)
            if not _is_filtered_out(
                ["context"],
                filename=SCANNED_NAME,
                secret=secret.secret_value,
                plugin=plugin,
                line=line,
                context=context,
            )
        }
        for value, begin, end in _places(plugin, line) if reported else ():
            if value in reported:
                yield Secret(type(plugin).__name__, number + 1, value, start + begin, start + end)


def _hit_lines(text: str) -> list[tuple[int, int]]:
    """Return the number (from 0) and start of each line on which any condition holds."""
    content = text.encode()
    if not _union().search(content):
        return []
    hits, position, number, previous = [], 0, 0, 0
    is_ascii = len(content) == len(text)
    while match := _union().search(content, position):
        start = content.rfind(b"\n", 0, match.start()) + 1
        number += content.count(b"\n", previous, start)
        hits.append((number, start if is_ascii else len(content[:start].decode())))
        previous, position = start, content.find(b"\n", match.end())
        if position < 0:
            break
    return hits


def _can_concern(plugin: str, line: str) -> bool:
    condition = _condition(plugin)
    if condition is None:
        return False
    if plugin not in _MIN_DISTINCT:
        return condition.search(line) is not None
    return any(len(set(match.group())) >= _MIN_DISTINCT[plugin] for match in condition.finditer(line))


def _places(plugin: Any, line: str) -> Iterator[tuple[str, int, int]]:
    """Yield each value that a plugin can report on a line, and the stretch of the line to replace with it."""
    name = type(plugin).__name__
    if name == "KeywordDetector":
        for regex, group in C_PLUS_PLUS_REGEX_TO_GROUP.items():
            if match := regex.search(line):
                yield match[group], *match.span(group)
    elif hasattr(plugin, "denylist"):
        for regex in plugin.denylist:
            for match in regex.finditer(line):
                for group in range(1, regex.groups + 1) if regex.groups else (0,):
                    if match[group]:
                        start, end = match.span(0 if name in _WHOLE_MATCH else group)
                        rest = _CONTINUED[name].match(line, end) if name in _CONTINUED else None
                        yield match[group], start, rest.end() if rest else end
    else:
        for match in plugin.regex.finditer(line):
            yield match[2], *match.span(2)


@cache
def _union() -> Any:
    options = re2.Options()
    options.max_mem = 256 << 20
    return re2.compile("|".join(f"(?:{condition})" for condition in CONDITIONS.values() if condition), options)


@cache
def _condition(plugin: str) -> re.Pattern[str] | None:
    condition = CONDITIONS[plugin]
    compiled: re.Pattern[str] | None = None if condition is None else re2.compile(condition)
    return compiled
