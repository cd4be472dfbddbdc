"""Oracle of drops for licenses: whether what a drop says is written where it says so, and is a reason by the policy.

Which words limit, the license rule knows: a drop that quotes words of its file is not judged. A change has the license of its file.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pipeline.build.oracles.audited_changes import is_change

FOR_LICENSES = frozenset({"license_unknown", "license_refused", "license_quarantined"})
_NOT_LETTERS = re.compile(rb"[^a-z]+")
_WORDS = re.compile(r"[A-Za-z]{2,}")
_QUOTED = re.compile(r"says `([^`]+)`, against ")
_SIGNS_OF_COPYLEFT = (b"gpl", b"general public", b"affero", b"copyleft", b"gnu")
_UNREADABLE = ("is not an SPDX identifier", "is not an SPDX expression", "are not read", "the expression is empty")
_NO_STATEMENT = (
    "the file states no license, and it is below the vendored root ",
    "the file states no license, and its pin inherits none",
    "the license text that it inherits is unclear: ",
    "neither the file nor the package states a license",
)
"""Words that a drop says of a file without a license."""
_OF_CHANGES = (" of its file cannot be decoded", "the license of its file changes: ")
_NO_EXCEPTION, _NONE_INHERITED = "does not go with", "the file states no license, and the recipe inherits none"
_BELOW_ROOT = re.compile(r"below the vendored root ([^;]+/)")
_STATEMENTS = ("REUSE.toml", ".reuse/dep5")
_TAG = b"spdx-license-identifier"
_NOT_SHOWN = ("<redacted-", "not shown")


def miscaused_drops(
    dropped: Iterable[Mapping[str, Any]], texts: Mapping[str, bytes], declared: str
) -> Iterator[tuple[str, str]]:
    """Yield source and path of the files that were dropped for their license by words that are not where their drop says.

    `texts` are the contents of the source's files by path, `declared` is the license that its pin declares.
    """
    words = _WordsOfTexts(texts)
    for row in dropped:
        is_judged = row["reason"] in FOR_LICENSES and row["path"] in texts
        if not is_judged or any(mark in row["detail"] for mark in _NOT_SHOWN):
            continue
        if not (_is_said_of_changes(row) if is_change(row["path"]) else _has_cause(row, words, declared)):
            yield row["source"], row["path"]


def _is_said_of_changes(row: Mapping[str, Any]) -> bool:
    """Return whether a drop of a change says what such drops say; what its file had at the commit is not judged."""
    first = row["detail"].partition("\n")[0]
    if row["reason"] == "license_refused":
        return first.startswith(f"{row['license']} is ") or _NO_EXCEPTION in first or _NONE_INHERITED in first
    said = _UNREADABLE if row["reason"] == "license_unknown" else (*_NO_STATEMENT, *_OF_CHANGES)
    return any(each in first for each in said) or (said is not _UNREADABLE and _QUOTED.search(first) is not None)


class _WordsOfTexts(dict[str, bytes]):
    """Words of texts by path, found when they are asked for."""

    def __init__(self, texts: Mapping[str, bytes]) -> None:
        self.texts = texts

    def __missing__(self, path: str) -> bytes:
        self[path] = _letters(self.texts[path]) if path in self.texts else b""
        return self[path]


def _has_cause(row: Mapping[str, Any], words: _WordsOfTexts, declared: str) -> bool:
    first, *lines = row["detail"].split("\n")
    places = [row["path"], f"{row['path']}.license", first.partition(" says `")[0]]
    places += [line.partition(":")[0] for line in (first, *lines)]
    told = b" ".join([_letters(declared.encode()), *(words[path] for path in dict.fromkeys(places))])
    license = row["license"] or ""
    if row["reason"] == "license_unknown":
        return any(each in first for each in _UNREADABLE) and _is_told(license or first, told)
    if row["reason"] == "license_refused":
        is_refusal = license and (first.startswith(f"{license} is ") or _NO_EXCEPTION in first)
        return bool(is_refusal and _is_told(license, told)) or (not license and _NONE_INHERITED in first)
    quoted = _QUOTED.search(first)
    if quoted:
        return _is_quoted(quoted[1], told)
    if _names_statements(first.removeprefix(f"{row['path']}: "), row["path"], words.texts):
        return True
    root = _BELOW_ROOT.search(first)
    is_below = root is None or row["path"].startswith(root[1])
    return is_below and any(each in first for each in _NO_STATEMENT) and _TAG not in words.texts[row["path"]].lower()


def _names_statements(said: str, path: str, texts: Mapping[str, bytes]) -> bool:
    """Return whether it is said of a file of statements in a folder of the path, or of one of them, that it cannot be read."""
    for name in _STATEMENTS:
        for place in (each for each in texts if each.endswith(name) and path.startswith(each.removesuffix(name))):
            if said.startswith((f"{place} is ", f"{place} has ", f"{place}: ")):
                return True
    return False


def _letters(content: bytes) -> bytes:
    """Return the words of a text in any encoding that has those of ASCII, in lower case, a blank between two."""
    return _NOT_LETTERS.sub(b" ", content.replace(b"\0", b"").lower())


def _is_told(license: str, told: bytes) -> bool:
    """Return whether a text has words of a license: of one of the GNU licenses those, of others any of its identifier."""
    words = [word.lower().encode() for word in _WORDS.findall(license)]
    if any(word.endswith(b"gpl") for word in words):
        return any(sign in told for sign in _SIGNS_OF_COPYLEFT)
    return not words or any(word in told for word in words)


def _is_quoted(quotation: str, told: bytes) -> bool:
    """Return whether most words of a quotation are in a text."""
    words = {word.lower().encode() for word in _WORDS.findall(quotation.replace("LicenseRef", ""))}
    return bool(words) and 2 * sum(word in told for word in words) >= len(words)
