"""KnownSecret: a secret that a rule of gitleaks finds in a text, and the search for them.

The rules are another project's, in `gitleaks.toml` with their source; those of vendors that it has not are in
`vendor_prefixes.toml`. The gate on what is stored searches with them, and nothing here is shared with the scrubber, so that neither
hides a mistake of the other. What a rule finds counts wherever it occurs: comments such as `gitleaks:allow` are not read. Of a rule
that knows no more than the name of a vendor, `named_values` judges the name. A secret with a placeholder in it was redacted, and a
published sample opens nothing: `documented_samples.toml` lists them, `gitleaks.toml` the words that stand for a value.
"""

import hashlib
import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import re2

from pipeline.contracts.withheld_paths import withheld_path
from pipeline.core.change_text import changed_file
from pipeline.stages.normalize.text_gates.named_values import NameWords

if TYPE_CHECKING:
    import pyarrow as pa

RULES_FILE, PREFIXES_FILE, SAMPLES_FILE = "gitleaks.toml", "vendor_prefixes.toml", "documented_samples.toml"
_NUM_DIGITS = 24
"""Digits of the digest of a sample."""
_COLUMNS = ("text", "license", "license_detail", "detail")
"""Columns of documents and drops that quote a source, the text first: lines are counted from its beginning."""
IN_PATH = 0
"""Line of a finding that is in the path of a file."""
_PLACEHOLDER = "<redacted-"
ANY_SECRET = "secret"
"""Name in a waiver that stands for every rule: the word of the placeholders."""
_VENDOR = re.compile(r"\{0,50\}\?\(\?:(?P<vendor>.{3,140}?)\)\(\?:\[ \\t")
"""The names of a vendor in a rule that finds a value by what stands beside it."""
_NUM_BEFORE = 48
_MAX_MEMORY = 64 << 20
"""Bytes of the automaton of one expression. Beyond it the search is slower, and linear all the same."""


@dataclass(frozen=True)
class KnownSecret:
    """A finding: the rule, and the line from 1, or IN_PATH. The value is nowhere, so that nothing can print it."""

    rule: str
    line: int


@dataclass(frozen=True)
class WaivedFinding:
    """A finding in a text that a person decided to leave there: on a line, with a value of a digest, or both.

    `name` is that of a rule, or any other: then only the digest says which value it is, unless it is that of secrets.
    """

    name: str
    line: int | None = None
    value_sha256: str | None = None

    def covers(self, found: KnownSecret, secret: str) -> bool:
        """Return whether it is of a finding with that value."""
        if self.line not in (None, found.line):
            return False
        if self.value_sha256 is None:
            return self.name in (found.rule, ANY_SECRET)
        return self.value_sha256 == hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class GitleaksRule:
    """A rule. The secret is `group` of a match, or the first group that is not empty, or all of it.

    It counts if its entropy in bits is above `entropy`, and neither `allowed` nor a stopword is in it. `vendor` is an expression
    of the name beside which it stands, if the rule has one.
    """

    id: str
    regex: str
    group: int
    entropy: float
    allowed: tuple[str, ...]
    vendor: str


@dataclass(frozen=True)
class GitleaksRules:
    """All rules. `keywords` finds the words of a text, in any case; `rules_of` are the rules that each asks for."""

    keywords: Any
    rules_of: tuple[tuple[GitleaksRule, ...], ...]
    allowed: tuple[str, ...]
    stopwords: tuple[str, ...]
    names: NameWords


def find_known_secrets(text: str, waived: Sequence[WaivedFinding] = ()) -> list[KnownSecret]:
    """Return what the rules find in a text and nobody waived, sorted by line and rule."""
    rules, content = load_gitleaks_rules(), text.encode("utf-8", "surrogatepass")
    searched = {rule.id: rule for index in rules.keywords.Match(content) or () for rule in rules.rules_of[index]}
    found = {
        (KnownSecret(rule.id, content.count(b"\n", 0, start) + 1), secret)
        for rule in searched.values()
        for start, secret in _secrets(rule, content, rules.names)
        if _counts(secret, rule, rules)
    }
    left = {each for each, secret in found if not any(waiver.covers(each, secret) for waiver in waived)}
    return sorted(left, key=lambda each: (each.line, each.rule))


def find_in_rows(
    tables: Iterable["pa.Table"], waived: Mapping[str, Sequence[WaivedFinding]] | None = None
) -> list[tuple[str, KnownSecret]]:
    """Return what the rules find in the text, license, evidence, details and paths of documents and drops, with the path of each.

    A path in which they find something is given as a withheld one, and nothing waives that: it is how every table names the file.
    `waived` are the findings in the texts of documents that stay there, by path: elsewhere nothing is waived.
    """
    found: list[tuple[str, KnownSecret]] = []
    for table in tables:
        columns = [table[name] for name in _COLUMNS if name in table.column_names]
        for path, *values in zip(table["path"], *columns, strict=True):
            some = (waived or {}).get(path.as_py(), ()) if "text" in table.column_names else ()
            in_path = _in_path(path.as_py())
            shown = withheld_path(path.as_py()) if in_path else path.as_py()
            texts = [value.as_py() or "" for value in values]
            if some:
                found += [(shown, secret) for secret in find_known_secrets(texts.pop(0), some)]
            found += [(shown, secret) for secret in (*in_path, *find_known_secrets("\n".join(texts)))]
    return found


def _in_path(path: str) -> list[KnownSecret]:
    """Return what the rules find in the path of a file, or of a file that is changed: the commit of a change is none."""
    return [replace(each, line=IN_PATH) for each in find_known_secrets(changed_file(path))]


@cache
def load_gitleaks_rules() -> GitleaksRules:
    """Read the rules, once in a process. An expression is compiled when a text has one of its keywords."""
    table, prefixes = (
        tomllib.loads(files(__package__).joinpath(name).read_text("utf-8")) for name in (RULES_FILE, PREFIXES_FILE)
    )
    by_keyword: dict[str, list[GitleaksRule]] = {}
    for entry in (*table["rules"], *({**each, "allowed": prefixes["allowed"]} for each in prefixes["rules"])):
        rule = _rule(entry)
        for keyword in entry["keywords"]:
            by_keyword.setdefault(keyword.lower(), []).append(rule)
    keywords = re2.Set.SearchSet(_options(case_sensitive=False))
    for keyword in by_keyword:
        keywords.Add(re2.escape(keyword))
    keywords.Compile()
    return GitleaksRules(
        keywords,
        tuple(map(tuple, by_keyword.values())),
        tuple(table["allowed"]),
        tuple(table["stopwords"]),
        NameWords(**{kind: frozenset(words.split()) for kind, words in table["names"].items()}),
    )


def _rule(entry: Mapping[str, Any]) -> GitleaksRule:
    allowed = tuple(entry.get("allowed", ()))
    vendor = _VENDOR.search(entry["regex"])
    expression = f"(?i){vendor['vendor']}" if vendor else ""
    return GitleaksRule(
        entry["id"], entry["regex"], entry.get("group", 0), entry.get("entropy", 0.0), allowed, expression
    )


@lru_cache(maxsize=1_024)
def _compiled(expression: str) -> Any:
    return re2.compile(expression, _options())


def _options(case_sensitive: bool = True) -> Any:
    options = re2.Options()
    options.max_mem, options.case_sensitive = _MAX_MEMORY, case_sensitive
    options.log_errors = False  # that the memory was not enough is no error: the search goes on without the automaton
    return options


def _secrets(rule: GitleaksRule, content: bytes, names: NameWords) -> Iterator[tuple[int, str]]:
    """Yield the start of each match of a rule, and the secret in it."""
    for match in _compiled(rule.regex).finditer(content):
        groups = range(1, len(match.groups()) + 1)
        group = rule.group or next((number for number in groups if match[number]), 0)
        secret = (match[group] or b"").decode("utf-8", "replace")
        if not rule.vendor or _is_named(rule.vendor, content, (match.start(), match.start(group)), secret, names):
            yield match.start(), secret


def _is_named(vendor: str, content: bytes, place: tuple[int, int], secret: str, names: NameWords) -> bool:
    """Return whether what stands at a place makes a secret of what follows, or has no name of a vendor in it."""
    start, end = place
    name = content[start:end].decode("utf-8", "replace")
    before = content[max(content.rfind(b"\n", 0, start) + 1, start - _NUM_BEFORE) : start].decode("utf-8", "replace")
    found = [match.span() for match in _compiled(vendor).finditer(name)]
    return not found or any(names.is_credential(name, span, before, secret) for span in found)


def _counts(secret: str, rule: GitleaksRule, rules: GitleaksRules) -> bool:
    if _PLACEHOLDER in secret or (rule.entropy and entropy_of(secret) <= rule.entropy):
        return False
    if any(_compiled(regex).search(secret) for regex in (*rules.allowed, *rule.allowed)):
        return False
    return not any(word in secret.lower() for word in rules.stopwords) and not _is_sample(secret)


def _is_sample(secret: str) -> bool:
    """Return whether a secret is a published sample, whole or by the claims of its token."""
    parts = [*secret.strip().split(".")[1:2], secret.strip()]
    digests = (hashlib.sha256(each.rstrip("=").encode("utf-8", "surrogatepass")).hexdigest() for each in parts)
    return any(digest[:_NUM_DIGITS] in _samples() for digest in digests)


@cache
def _samples() -> frozenset[str]:
    table = tomllib.loads(files("pipeline.stages.normalize").joinpath(SAMPLES_FILE).read_text("utf-8"))
    return frozenset(digest for digests in table.values() for digest in digests)


def entropy_of(text: str) -> float:
    """Return Shannon's entropy of the characters of a text, in bits."""
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)
