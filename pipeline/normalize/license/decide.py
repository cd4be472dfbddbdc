"""Under which license a file is, on what evidence, and whether the policy allows it.

Unclear is quarantined, never guessed.

Evidence in order: tags in the file, its `.license` sidecar, REUSE.toml or `.reuse/dep5`, a license text or standard
notice in the file's leading comments; then, where the pin allows it, the nearest license text, and what the package
declares. A vendored root ends inheritance, unless a text that is recognized lies below it. Inherited is always marked.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import PurePosixPath

from pipeline.core.records import LicenseEvidence
from pipeline.cpp.comments import leading_comments_end
from pipeline.normalize.decode import Decoded, decode
from pipeline.normalize.license.folder import FolderTexts, read_folder
from pipeline.normalize.license.notices import find_notices
from pipeline.normalize.license.policy import MAX_EXPRESSION, Judged, LicenseClass, Policy, judge_expression
from pipeline.normalize.license.reuse import Annotation, Precedence, closest, read_dep5, read_reuse_toml
from pipeline.normalize.license.tags import find_notice, find_tags
from pipeline.normalize.license.texts import licenses_inside
from pipeline.normalize.params import EvidencePolicy, LicenseParams
from pipeline.normalize.refusal import Refusal

INHERITED = frozenset({LicenseEvidence.LICENSE_TEXT, LicenseEvidence.PACKAGE})
"""Evidence that speaks of more than the one file."""

_MIN_HEADER = 40
"""Characters of leading comments below which no notice fits."""
_PACKAGE_LICENSE = re.compile(r"^License-Expression:[ \t]*(.+)$", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class Statement:
    """What some evidence says: expressions that all hold, where they were read, and the lines that say so."""

    expressions: tuple[str, ...]
    evidence: LicenseEvidence
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Licensed:
    """A decision in favor: normal expression, class, branch taken, evidence, and the lines that `why` prints."""

    expression: str
    license_class: str
    branch: str
    evidence: LicenseEvidence
    detail: str


@dataclass(frozen=True)
class PackageFacts:
    """What the pin says about the whole source."""

    declared_license: str
    inherit_license: bool


class LicenseIndex:
    """The evidence of one source, read once; `decide` answers for each of its files."""

    def __init__(
        self, evidence: Mapping[str, bytes], facts: PackageFacts, policy: Policy, params: LicenseParams
    ) -> None:
        self._facts = facts
        self._policy = policy
        self._params = params
        self._sidecars = {path: content for path, content in evidence.items() if path.endswith(".license")}
        every = _read_annotations(evidence)
        self._annotations = [annotation for annotation in every if annotation.problem is None]
        self._broken = [annotation for annotation in every if annotation.problem is not None]
        self._texts = _license_texts(evidence)
        self._folders: dict[str, FolderTexts] = {}
        self._nearest: dict[str, FolderTexts | None] = {}
        self._package = _package_statement(evidence, facts)

    def decide(self, path: str, text: str) -> Licensed | Refusal:
        """The license of a file, or why it leaves: `license_refused`, `license_unknown` or `license_quarantined`."""
        statement = (
            self._own_statement(path, text)
            or _headed(path, text)
            or self._unreadable(path)
            or self._inherited_statement(path)
        )
        if isinstance(statement, Refusal):
            return statement
        judged = self._judge(statement)
        if isinstance(judged, Refusal):
            return judged
        contradiction = self._contradiction(path, text, statement, judged)
        if contradiction:
            return contradiction
        return Licensed(
            judged.expression,
            judged.license_class.name.lower(),
            judged.branch,
            statement.evidence,
            "\n".join(statement.lines),
        )

    def _own_statement(self, path: str, text: str) -> Statement | None:
        annotation = closest(self._annotations, path)
        if annotation and annotation.precedence is Precedence.OVERRIDE:
            return _annotated(annotation)
        own = _tagged(path, text, LicenseEvidence.FILE)
        sidecar = f"{path}.license"
        if own is None and sidecar in self._sidecars:
            own = _tagged(sidecar, _text_of(self._sidecars[sidecar]), LicenseEvidence.SIDECAR)
        if annotation is None or (own and annotation.precedence is Precedence.CLOSEST):
            return own
        stated = _annotated(annotation)
        return (
            stated
            if own is None
            else Statement(own.expressions + stated.expressions, own.evidence, own.lines + stated.lines)
        )

    def _unreadable(self, path: str) -> Refusal | None:
        """A statement about the file that cannot be read: whatever it says, nothing less than it may be inherited."""
        broken = next((annotation for annotation in self._broken if annotation.covers(path)), None)
        return Refusal("license_quarantined", f"{path}: {broken.where} {broken.problem}") if broken else None

    def _inherited_statement(self, path: str) -> Statement | Refusal:
        texts = self._nearest_texts(path)
        seen = (
            f"; nearest license text: {', '.join(texts.paths)}" if texts else "; no license text in its folder or above"
        )
        if self._params.license_evidence is EvidencePolicy.FILE:
            return Refusal("license_refused", f"{path}: the file states no license, and the recipe inherits none{seen}")
        if not self._facts.inherit_license:
            return Refusal(
                "license_quarantined",
                f"{path}: the file states no license, and its pin inherits none{seen}",
            )
        if texts and texts.problem is None:
            return self._stated(texts)
        problem = "\n".join(texts.lines) if texts else ""
        root = vendored_root(path, self._params.vendored_roots)
        if root:
            detail = f"{path}: the file states no license, and it is below the vendored root {root}/{seen}"
            return Refusal("license_quarantined", "\n".join(filter(None, (detail, problem))))
        if texts and (texts.is_near or not (texts.is_of_source or self._covers(texts))):
            detail = f"{path}: the license text that it inherits is unclear: {texts.problem}{seen}"
            return Refusal("license_quarantined", f"{detail}\n{problem}", is_copyleft=texts.title is not None)
        if self._package is None:
            detail = f"{path}: neither the file nor the package states a license{seen}"
            return Refusal("license_quarantined", "\n".join(filter(None, (detail, problem))))
        return replace(self._package, lines=self._package.lines + (texts.lines if texts else ()))

    def _stated(self, texts: FolderTexts) -> Statement:
        """What a folder's texts say; where they are those of the whole source, what the package declares holds too."""
        stated = Statement(texts.expressions, LicenseEvidence.LICENSE_TEXT, texts.lines)
        if not texts.is_of_source or self._package is None:
            return stated
        package = self._package.expressions
        if len(package) == 1 and " OR " in package[0] and _ids(package) == set(texts.expressions):
            # The package says how the very licenses whose texts lie here go together: the recipient chooses.
            return replace(stated, expressions=package, lines=stated.lines + self._package.lines)
        return replace(
            stated,
            expressions=stated.expressions + self._package.expressions,
            lines=stated.lines + self._package.lines,
        )

    def _covers(self, texts: FolderTexts) -> bool:
        """Whether the package names every license that was found in a folder's unclear texts: then it knew of them."""
        named = _ids(self._package.expressions) if self._package else set()
        return bool(texts.expressions) and named.issuperset(texts.expressions) and texts.title is None

    def _nearest_texts(self, path: str) -> FolderTexts | None:
        """The license texts in the folder of `path` or the nearest above it, at most up to the vendored root."""
        folder = path.rpartition("/")[0]
        if folder not in self._nearest:
            self._nearest[folder] = self._find_texts(path)
        return self._nearest[folder]

    def _find_texts(self, path: str) -> FolderTexts | None:
        root = vendored_root(path, self._params.vendored_roots)
        for folder in map(str, PurePosixPath(path).parents):
            if folder not in self._folders:
                self._folders[folder] = read_folder(folder, self._texts)
            if self._folders[folder].paths:
                return self._folders[folder]
            if folder == root:
                return None
        return None

    def _judge(self, statement: Statement) -> Judged | Refusal:
        judged: list[Judged] = []
        for expression in dict.fromkeys(statement.expressions):
            found = judge_expression(expression, self._policy)
            if isinstance(found, Refusal):
                return Refusal(found.reason, _with_lines(found.detail, statement), found.license)
            judged.append(found)
        whole = _all_of(judged)
        if whole.license_class is LicenseClass.REFUSED:
            detail = _with_lines(f"{whole.expression} is refused", statement)
            is_own = statement.evidence not in INHERITED
            is_copyleft = "GPL" in whole.expression
            return Refusal("license_refused", detail, whole.expression, is_copyleft, is_own and is_copyleft)
        if whole.license_class is LicenseClass.TAGGED and not self._params.keep_tagged:
            return Refusal(
                "license_refused", _with_lines(f"{whole.expression} is weak copyleft", statement), whole.expression
            )
        return whole

    def _contradiction(self, path: str, text: str, statement: Statement, judged: Judged) -> Refusal | None:
        """A notice in the file's header, or the title of the license text above it, that asks more than was found."""
        is_choice = statement.evidence is LicenseEvidence.HEADER and any(
            " OR " in each for each in statement.expressions
        )
        if is_choice or statement.evidence is LicenseEvidence.FILE:
            return None
        notice, where = find_notice(text), path
        texts = self._nearest_texts(path) if statement.evidence is LicenseEvidence.PACKAGE else None
        if notice is None and texts and texts.title:
            where, notice = texts.title
        if notice is None or notice.license_class <= judged.license_class:
            return None
        detail = f"{where} says `{notice.words}`, against {judged.expression} by {statement.evidence}"
        refusal = Refusal("license_quarantined", _with_lines(detail, statement), judged.expression, is_copyleft=True)
        return replace(refusal, is_own=where == path)


def vendored_root(path: str, names: Iterable[str]) -> str | None:
    """The innermost folder of a path whose name says that what lies below came from elsewhere, or None."""
    folders = path.split("/")[:-1]
    for depth in range(len(folders), 0, -1):
        if folders[depth - 1].lower() in names:
            return "/".join(folders[:depth])
    return None


def _tagged(path: str, text: str, evidence: LicenseEvidence) -> Statement | None:
    tags = find_tags(text)
    if not tags:
        return None
    lines = tuple(f"{path}:{tag.line}: SPDX-License-Identifier: {tag.expression[:MAX_EXPRESSION]}" for tag in tags)
    return Statement(tuple(tag.expression for tag in tags), evidence, lines)


def _headed(path: str, text: str) -> Statement | None:
    """What the license texts and standard notices in a file's leading comments say."""
    header = text[: leading_comments_end(text)]
    if len(header) < _MIN_HEADER:
        return None
    texts, notices = _inside(header)
    lines = tuple(f"{path}: the header contains the text of {license}" for license in texts)
    lines += tuple(
        f"{path}: the header contains the notice of {license}" for license in notices if license not in texts
    )
    found = tuple(dict.fromkeys((*texts, *notices)))
    return Statement(found, LicenseEvidence.HEADER, lines) if found else None


@lru_cache(maxsize=4_096)
def _inside(header: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The license texts and the notices in leading comments: most files of a source begin with the same ones."""
    return licenses_inside(header), find_notices(header)


def _annotated(annotation: Annotation) -> Statement:
    evidence = LicenseEvidence.DEP5 if ".reuse/dep5" in annotation.where else LicenseEvidence.REUSE
    return Statement(annotation.expressions, evidence, (f"{annotation.where}: {' AND '.join(annotation.expressions)}",))


def _read_annotations(evidence: Mapping[str, bytes]) -> list[Annotation]:
    found: list[Annotation] = []
    for path in sorted(evidence):
        if PurePosixPath(path).name == "REUSE.toml":
            found += read_reuse_toml(path, evidence[path])
        elif path.endswith(".reuse/dep5"):
            found += read_dep5(path, evidence[path])
    return found


def _license_texts(evidence: Mapping[str, bytes]) -> dict[str, str]:
    """License texts by path; what lies in LICENSES/ is a library of texts and says nothing about a folder."""
    others = {"PKG-INFO", "REUSE.toml", "dep5"}
    return {
        path: _text_of(content)
        for path, content in evidence.items()
        if not path.endswith(".license")
        and PurePosixPath(path).name not in others
        and PurePosixPath(path).parent.name != "LICENSES"
    }


def _ids(expressions: Iterable[str]) -> set[str]:
    return set(re.findall(r"[\w.+-]+", " ".join(expressions))) - {"AND", "OR", "WITH"}


def _text_of(content: bytes) -> str:
    """Evidence as text, in whatever encoding it is; what none fits is read as far as it goes."""
    decoded = decode(content)
    return decoded.text if isinstance(decoded, Decoded) else content.decode("utf-8", "replace")


def _package_statement(evidence: Mapping[str, bytes], facts: PackageFacts) -> Statement | None:
    """What the package's metadata and the pin declare. Where they differ, both must hold."""
    lines, expressions = [], []
    metadata = sorted(
        (path for path in evidence if PurePosixPath(path).name == "PKG-INFO"), key=lambda path: (path.count("/"), path)
    )
    headers = _text_of(evidence[metadata[0]]).split("\n\n")[0] if metadata else ""
    for match in _PACKAGE_LICENSE.finditer(headers):
        expressions.append(match[1].strip())
        lines.append(f"{metadata[0]}:{headers.count(chr(10), 0, match.start()) + 1}: {match[0].strip()}")
    if facts.declared_license and facts.declared_license not in expressions:
        expressions.append(facts.declared_license)
        lines.append(f"pin: declared_license = {facts.declared_license}")
    return Statement(tuple(expressions), LicenseEvidence.PACKAGE, tuple(lines)) if expressions else None


def _all_of(judged: list[Judged]) -> Judged:
    if len(judged) == 1:
        return judged[0]
    expressions = dict.fromkeys(each.expression for each in judged)
    branches = dict.fromkeys(each.branch for each in judged)
    if len(expressions) == 1:
        return judged[0]
    return Judged(
        " AND ".join(f"({each})" if " OR " in each else each for each in expressions),
        max(each.license_class for each in judged),
        " AND ".join(branches),
    )


def _with_lines(detail: str, statement: Statement) -> str:
    return "\n".join((detail, *statement.lines))
