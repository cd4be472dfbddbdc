"""Secrets by detect-secrets, all of its default plugins, fast: a plugin only sees lines that can possibly concern it.

Over whole files the tool reads 0.1 MB/s. Each plugin has a necessary condition here, an RE2 expression; one union of
them is run over the document, and on a line that hits, the plugins whose own condition holds are asked, as the tool's
`scan_file` would ask them. A test plants lines for every plugin and compares the findings. `_scan_line` and
`_is_filtered_out` are private: detect-secrets 1.5.0.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from types import TracebackType
from typing import Any

import re2
from detect_secrets.core.scan import _is_filtered_out, _scan_line
from detect_secrets.plugins.keyword import C_PLUS_PLUS_REGEX_TO_GROUP
from detect_secrets.settings import default_settings, get_plugins
from detect_secrets.util.code_snippet import get_code_snippet

SCANNED_NAME = "x.cpp"
"""Only `.c` and `.cpp` names get the tool's keyword rules for C and C++."""

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
    # Its findings hold no letter, so the tool's own filters always drop them: addresses.py finds them.
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

MIN_DISTINCT = {"Base64HighEntropyString": 23, "HexHighEntropyString": 9}
"""Entropy is at most log2 of the number of distinct characters: 4.5 and 3.0 bits need more than 22 and 8 of them."""

_WHOLE_MATCH = frozenset({"GitHubTokenDetector", "GitLabTokenDetector", "PrivateKeyDetector"})
"""Plugins that report a fixed prefix or a marker; what must go is the whole match."""

STARTS_WORD = frozenset({"GitHubTokenDetector", "StripeDetector", "TwilioKeyDetector"})
"""Plugins whose tokens begin a word: `Highs_metis_Allocate2WayNodePartitionMemory` holds no token `ghs_...`."""

_CONTINUED = {"JwtTokenDetector": re.compile(r"[A-Za-z0-9_.+/=-]*")}
"""Plugins whose expression stops early, and what goes on behind it: the signature of a token of claims."""


@dataclass(frozen=True)
class Secret:
    """A finding.

    `value` is what the tool reports, start and end are where in the text the secret stands. Never to be printed.
    """

    plugin: str
    line: int
    value: str = field(repr=False)
    start: int
    end: int


class SecretScanner:
    """Finds secrets in texts. A context manager, since the tool keeps its settings in the process."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> "SecretScanner":
        self._stack.enter_context(default_settings())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def find(self, text: str) -> list[Secret]:
        """All findings, in order of place. They are those of the tool's `scan_file` on the same text as a C++ file."""
        hits = _hit_lines(text)
        if not hits:
            return []
        lines = text.split("\n")
        found: list[Secret] = []
        for number, start in hits:
            found += self._scan_line(lines, number, start)
        return sorted(found, key=lambda secret: (secret.start, -secret.end, secret.plugin))

    def _scan_line(self, lines: list[str], number: int, start: int) -> Iterator[Secret]:
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
                for secret in _scan_line(
                    plugin, filename=SCANNED_NAME, line=line, line_number=number + 1, context=context
                )
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
    """Number (from 0) and start of each line on which any condition holds."""
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
    if plugin not in MIN_DISTINCT:
        return condition.search(line) is not None
    return any(len(set(match.group())) >= MIN_DISTINCT[plugin] for match in condition.finditer(line))


def _places(plugin: Any, line: str) -> Iterator[tuple[str, int, int]]:
    """Each value that a plugin can report on a line, and the stretch of the line that must go with it."""
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
