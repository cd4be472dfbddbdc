"""Oracle of licenses: whether a document has the license that its first lines name, and a branch that satisfies it, and whether
what was dropped for its license had none.

It reads expressions and the shipped policy with code of its own. What a person decided, `audited_decisions` judges.
"""

import hashlib
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import re2
from license_expression import get_license_index

from pipeline.build.oracles.audited_changes import is_change
from pipeline.build.oracles.audited_decisions import DECIDED
from pipeline.build.oracles.code_marks import marks_of
from pipeline.build.oracles.drops.license_drops import FOR_LICENSES, miscaused_drops, stands_in, unaccented_words
from pipeline.contracts.part import Tables
from pipeline.core.records import LicenseEvidence
from pipeline.core.table_names import DOCUMENTS, DROPPED, FILES, TRAINING_ROWS

FROM_FILE = "file"
"""The evidence of a license that a tag in the file itself names."""
_COLUMNS = (
    "source",
    "path",
    "text",
    "license",
    "license_class",
    "license_branch",
    "license_evidence",
    "license_detail",
)
_CLASSES = ("allowed", "tagged", "refused")
"""Names of the classes in the policy file, the least demanding first."""
_WORD = re.compile(r"[()]|[^\s()]+(?: WITH [^\s()]+)?")
_TAG = re.compile(r"[ \t/*#;-]{0,20}SPDX-License-Identifier: ?([A-Za-z0-9.+-]{1,80})(?: ?\*/)?")
_NUM_LINES = 5
_MARKS = ("reuse-ignore", 'r"')
"""Marks of a text in which a tag may not count, in lower case."""
_NAME = re.compile(r"[A-Za-z0-9+-](?:[A-Za-z0-9.+-]*[A-Za-z0-9+-])?")
_OPERATORS = frozenset({"and", "or", "with"})
_QUOTED_TAG = "SPDX-License-Identifier: "
_NOT_TOLD = ("<redacted-", "not shown", "-family")
"""Marks of a detail that does not hold the names as they were, or that of a family for a license of it."""
_QUOTATION = re.compile(r"`([^`]+)`")
_TAG_WORDS = "spdx-license-identifier"
_PINNED = "pin: declared_license = "
_NO_LICENSE = frozenset({"license_unknown", "license_refused"})
_BELOW_TAGS = frozenset({FROM_FILE, LicenseEvidence.HEADER, LicenseEvidence.LICENSE_TEXT, LicenseEvidence.PACKAGE})
"""Evidence that counts no more than a tag in the file."""
_INHERITED = frozenset({LicenseEvidence.LICENSE_TEXT, LicenseEvidence.PACKAGE})
_OF_OTHERS = (".license", "REUSE.toml", "dep5")
"""Ends of the paths of files that state the licenses of others, one by one."""
_NAMES_LICENSE = re2.compile(
    rb"(?i)licen|gpl|spdx|copyright|permission|proprietary|confidential|domain|all rights|bsd|\bmit\b|\bisc\b|apache|boost"
    rb"|zlib|cc0|[em]pl\b|cddl|artistic|wtfpl|beerware|bsl|gfdl|\belv\d|attribution"
)
_SPEAKS = re2.compile(
    rb"(?i)copy|permi|right|terms|condition|warrant|distribut|without|must|may|not |only|restrict|commerc|notice|govern|reserv"
    rb"|author|inc\b|ltd|written|secret|trade|law|legal|agree|use|property|free|public|see|adapt|deriv|based|from"
)
"""Words of sentences about licenses, the first in any place, the second in comments. A text without is silent."""


def mislicensed_documents(stored: Tables) -> Iterator[tuple[str, str]]:
    """Yield source and path of the documents under another license than their own tag or their detail names, or by a branch that
    does not satisfy it or is of another class. Nothing where the part was made by another policy than the one that is shipped.
    """
    classes = _classes(stored)
    for row in stored.table(DOCUMENTS, _COLUMNS).to_pylist() if classes else ():
        is_sound = _is_branch(row, classes) and _has_tag(row, classes) and _is_as_detailed(row)
        if row["license_evidence"] != DECIDED and not is_sound:
            yield row["source"], row["path"]


def inheriting_documents(stored: Tables) -> Iterator[tuple[str, str]]:
    """Yield source and path of the documents of a source that have the license of a folder or of their pin, stated elsewhere."""
    for row in stored.table(DOCUMENTS, ("source", "path", "license_evidence")).to_pylist():
        if row["license_evidence"] in _INHERITED:
            yield row["source"], row["path"]


def mispinned_documents(stored: Tables, pin: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield source and path of the documents whose detail quotes another license of their pin than that declares, and of those that
    inherit a license where it lets nothing inherit one.
    """
    if pin.get("inherit_license") is False:
        yield from inheriting_documents(stored)
    for row in stored.table(DOCUMENTS, ("source", "path", "license_detail")).to_pylist() if pin else ():
        quoted = [line.removeprefix(_PINNED) for line in row["license_detail"].split("\n") if line.startswith(_PINNED)]
        if any(each != pin["declared_license"] for each in quoted):
            yield row["source"], row["path"]


def misstated_licenses(
    stored: Tables, collected: Tables, evidence: Mapping[str, bytes], pin: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield source and path of the files that were dropped for a license that the policy allows, or for words that are not there.

    `evidence` are the files of the source that are stored elsewhere, by path. Nothing where a person decided.
    """
    rows = stored.table(DROPPED, ["source", "path", "reason", "detail", "license"]).to_pylist()
    rows = [row for row in rows if row["reason"] in FOR_LICENSES and not stored.identity.get("decisions")]
    classes = _classes(stored) if rows else {}
    for row in rows:
        is_classified = row["reason"] == "license_refused" and row["license"] and " WITH " not in row["license"]
        if is_classified and classes and class_of(row["license"], classes) == _CLASSES[0]:
            yield row["source"], row["path"]
    if rows:
        table = collected.table(FILES, ["path", "content"])
        texts = {**evidence, **dict(zip(table["path"].to_pylist(), table["content"].to_pylist(), strict=True))}
        yield from miscaused_drops(rows, texts, str(pin.get("declared_license", "")))


def misdropped_licenses(stored: Tables, collected: Tables, evidence: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield source and path of the files that were dropped for their license in spite of a tag that allows them, or that are silent
    about licenses beside a silent document of their folder, which was kept for what it inherits. Which words are those of a
    license, only the rule knows of most: a file that holds the words that its drop quotes is not silent. A change is of the license
    of its file, of which it holds a part.

    Nothing where a person decided, or files state the licenses of others. `evidence` are the paths of such files of the same source
    that are stored elsewhere.
    """
    rows = stored.table(DROPPED, ["source", "path", "reason", "detail", "license"]).to_pylist()
    lost = {row["path"]: row for row in rows if row["reason"] in FOR_LICENSES and not is_change(row["path"])}
    classes = _classes(stored) if lost and not stored.identity.get("decisions") else {}
    table = collected.table(FILES, ["path", "content"]) if classes else None
    if table is None or any(path.endswith(_OF_OTHERS) for path in (*table["path"].to_pylist(), *evidence)):
        return
    silent = _silent_folders(stored, {_folder(path) for path in lost})
    for path, content in zip(table["path"], table["content"], strict=True):
        row, text = lost.get(path.as_py()), content.as_py()
        if row and text.isascii() and _is_misdropped(row, text.decode().replace("\r\n", "\n"), silent, classes):
            yield row["source"], row["path"]


def misallowed_rows(source: str, stored: Tables, asked: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the source and the license of training rows that the build does not allow, or that are of another class than they say,
    whatever they were copied from. `asked` are the policy of the build, and whether it keeps weak copyleft.
    """
    classes, allowed = _shipped_classes(asked["policy_sha256"]), _CLASSES[: 1 + asked["tagged"]]
    for table in TRAINING_ROWS.values():
        rows = stored.table(table, ["license", "license_class"]).group_by(["license", "license_class"]).aggregate([])
        for row in rows.to_pylist():
            license, name = row["license"] or "", row["license_class"]
            if name not in allowed or (classes and class_of(license, classes) != name):
                yield source, f"{table} of license {license}, which is {name}"


def _silent_folders(stored: Tables, folders: Collection[str]) -> set[str]:
    """Return which of some folders have a silent document that was kept for what it inherits. One in each is enough."""
    found: set[str] = set()
    table = stored.table(DOCUMENTS, ["path", "text", "license_evidence"])
    paths, kinds = (table[name].to_pylist() for name in ("path", "license_evidence"))
    for path, kind, text in zip(paths, kinds, table["text"], strict=True):
        folder = _folder(path)
        if kind in _INHERITED and folder in folders and folder not in found and _is_silent(text.as_py()):
            found.add(folder)
    return found


def _is_misdropped(row: Mapping[str, Any], text: str, silent: Collection[str], classes: Mapping[str, str]) -> bool:
    tag, quoted = _only_tag(text), _quoted(row)
    if not tag:
        return _folder(row["path"]) in silent and _is_silent(text, quoted)
    is_allowed = {license.lower(): name for license, name in classes.items()}.get(tag) == _CLASSES[0]
    rest = "\n".join(line for line in text.split("\n") if _TAG_WORDS not in line.lower())
    return is_allowed and (row["reason"] in _NO_LICENSE or _is_silent(rest, quoted))


def _quoted(row: Mapping[str, Any]) -> list[str]:
    """Return the words that a drop says to have found in its file, and the license that it says to be refused."""
    found = _QUOTATION.findall(row["detail"].partition("\n")[0])
    return [*found, row["license"] or ""] if row["reason"] in _NO_LICENSE else found


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _is_silent(text: str, quoted: Collection[str] = ()) -> bool:
    """Return whether a text, and its comments as those of C are marked, have no words of licenses, and none that a drop quotes."""
    content = text.encode()
    if _NAMES_LICENSE.search(content) or any(stands_in(each, unaccented_words(text)) for each in quoted if each):
        return False
    return not _SPEAKS.search(b"\n".join(content[start:end] for start, end in marks_of(content).comments))


def _classes(stored: Tables) -> dict[str, str]:
    """Return the class of each license of the shipped policy; nothing where a part was made by another one."""
    return _shipped_classes(stored.identity.get("license_policy_sha256"))


def _shipped_classes(of_policy: str | None) -> dict[str, str]:
    """Return the class of each license of the shipped policy, if it has that digest."""
    return _classes_of(_policy()) if policy_sha256() == of_policy else {}


@cache
def policy_sha256() -> str:
    """Return the digest of the shipped policy."""
    return hashlib.sha256(_policy()).hexdigest()


@cache
def _policy() -> bytes:
    return files("pipeline.stages.normalize.license").joinpath("license_policy.toml").read_bytes()


@cache
def _classes_of(policy: bytes) -> dict[str, str]:
    """Parse a policy, once for all sources."""
    named = tomllib.loads(policy.decode())
    return {license: name for name in _CLASSES for license in named[name]}


def satisfies(chosen: set[str], expression: str) -> bool:
    """Return whether those licenses are enough for an expression. AND binds before OR."""
    open_groups = [[False, True]]  # of each: whether an earlier alternative holds, and whether this one does so far
    for word in _WORD.findall(expression):
        if word == "(":
            open_groups.append([False, True])
        elif word == ")" and len(open_groups) > 1:
            holds = any(open_groups.pop())
            open_groups[-1][1] = open_groups[-1][1] and holds
        elif word == "OR":
            open_groups[-1] = [any(open_groups[-1]), True]
        elif word != "AND":
            open_groups[-1][1] = open_groups[-1][1] and word in chosen
    return any(open_groups[0])


def class_of(expression: str, classes: Mapping[str, str]) -> str:
    """Return the least demanding class whose licenses, with those of the classes before, are enough for an expression."""
    named = {each: _class_of_license(each, classes) for each in _licenses(expression)}
    known = (_CLASSES[: number + 1] for number in range(len(_CLASSES)))
    enough = (
        some[-1] for some in known if satisfies({each for each, name in named.items() if name in some}, expression)
    )
    return next(enough, "") if named else ""


def _class_of_license(license: str, classes: Mapping[str, str]) -> str:
    return classes.get(license.partition(" WITH ")[0].removesuffix("+"), _CLASSES[-1])


def _licenses(expression: str) -> set[str]:
    return set(_WORD.findall(expression)) - {"(", ")", "AND", "OR"}


def _is_branch(row: Mapping[str, Any], classes: Mapping[str, str]) -> bool:
    """Return whether the branch of a document satisfies its license with licenses of it, and is of the document's class."""
    chosen = _licenses(row["license_branch"])
    found = [_class_of_license(each, classes) for each in chosen]
    is_of_class = max(found, key=_CLASSES.index, default="") == row["license_class"]
    return is_of_class and chosen <= _licenses(row["license"]) and satisfies(chosen, row["license"])


def _has_tag(row: Mapping[str, Any], classes: Mapping[str, str]) -> bool:
    """Return whether the only tag of a text, plain, in its first lines and of a license of the policy, is of the stored license.

    What states the licenses of others, one by one, may have the last word.
    """
    if row["license_evidence"] not in _BELOW_TAGS:
        return True
    tag = _only_tag(row["text"])
    named = {license.partition(" WITH ")[0].lower() for license in _licenses(row["license"])}
    return tag not in map(str.lower, classes) or tag in named


def _is_as_detailed(row: Mapping[str, Any]) -> bool:
    """Return whether a license is of names that its detail holds, unless a package's metadata has other words for it, and has all
    of the tags that the detail quotes.
    """
    detail, names = row["license_detail"], _names(row["license"])
    if not detail or any(mark in detail for mark in _NOT_TOLD):
        return True
    tagged = _names(" ".join(line.partition(_QUOTED_TAG)[2] for line in detail.split("\n")))
    return tagged <= names and (row["license_evidence"] == LicenseEvidence.PACKAGE or names <= _names(detail))


def _names(text: str) -> set[str]:
    """Return the words of a text, in lower case, those that are old names of a license as that is named now."""
    renamed = _renamed()
    return {renamed.get(word, word) for word in map(str.lower, _NAME.findall(text))} - _OPERATORS


@cache
def _renamed() -> dict[str, str]:
    """Return the names that licenses have had, in lower case, and what they are named now, by the index of ScanCode's licenses."""
    named = ((each["spdx_license_key"], each["other_spdx_license_keys"]) for each in get_license_index())
    return {other.lower(): name.lower() for name, others in named if name for other in others}


def _only_tag(text: str) -> str:
    """Return the only tag of a text, in lower case, if it is plain and in the first lines; otherwise nothing."""
    lowered = text.lower()
    if lowered.count(_TAG_WORDS) != 1 or any(mark in lowered for mark in _MARKS):
        return ""
    tags = (_TAG.fullmatch(line) for line in text.split("\n", _NUM_LINES)[:_NUM_LINES])
    return next((found[1].lower() for found in tags if found), "")
