"""Under which licence a file is, on what evidence, and whether the policy allows it.

Unclear is quarantined, never guessed.

Evidence in order: tags in the file, its `.license` sidecar, REUSE.toml or `.reuse/dep5`; then, where the pin allows
it and no vendored root lies between, the nearest licence text that carries a tag, and what the package declares.
Inherited is always marked.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from pipeline.normalize.expressions import Judged, LicenceClass, Policy, judge_expression
from pipeline.normalize.params import EvidencePolicy, LicenceParams
from pipeline.normalize.refusal import Refusal
from pipeline.normalize.reuse import Annotation, Precedence, closest, read_dep5, read_reuse_toml
from pipeline.normalize.tags import find_notice, find_tags, find_title
from pipeline.records import LicenceEvidence

INHERITED = frozenset({LicenceEvidence.LICENCE_TEXT, LicenceEvidence.PACKAGE})
"""Evidence that speaks of more than the one file."""

_PACKAGE_LICENCE = re.compile(r"^License-Expression:[ \t]*(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Statement:
    """What some evidence says: expressions that all hold, where they were read, and the lines that say so."""

    expressions: tuple[str, ...]
    evidence: LicenceEvidence
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Licensed:
    """A decision in favour: normal expression, class, branch taken, evidence, and the lines that `why` prints."""

    expression: str
    licence_class: str
    branch: str
    evidence: LicenceEvidence
    detail: str


@dataclass(frozen=True)
class PackageFacts:
    """What the pin says about the whole source."""

    declared_license: str
    inherit_license: bool


class LicenceIndex:
    """The evidence of one source, read once; `decide` answers for each of its files."""

    def __init__(
        self, evidence: Mapping[str, bytes], facts: PackageFacts, policy: Policy, params: LicenceParams
    ) -> None:
        self._facts = facts
        self._policy = policy
        self._params = params
        self._sidecars = {path: content for path, content in evidence.items() if path.endswith(".license")}
        self._annotations = _read_annotations(evidence)
        self._texts = _licence_texts(evidence)
        self._package = _package_statement(evidence, facts)

    def decide(self, path: str, text: str) -> Licensed | Refusal:
        """The licence of a file, or why it leaves: `licence_refused`, `licence_unknown` or `licence_quarantined`."""
        statement = self._own_statement(path, text) or self._inherited_statement(path)
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
            judged.licence_class.name.lower(),
            judged.branch,
            statement.evidence,
            "\n".join(statement.lines),
        )

    def _own_statement(self, path: str, text: str) -> Statement | None:
        annotation = closest(self._annotations, path)
        if annotation and annotation.precedence is Precedence.OVERRIDE:
            return _annotated(annotation)
        own = _tagged(path, text, LicenceEvidence.FILE)
        sidecar = f"{path}.license"
        if own is None and sidecar in self._sidecars:
            own = _tagged(sidecar, self._sidecars[sidecar].decode("utf-8", "replace"), LicenceEvidence.SIDECAR)
        if annotation is None or (own and annotation.precedence is Precedence.CLOSEST):
            return own
        stated = _annotated(annotation)
        return (
            stated
            if own is None
            else Statement(own.expressions + stated.expressions, own.evidence, own.lines + stated.lines)
        )

    def _inherited_statement(self, path: str) -> Statement | Refusal:
        nearest = self._nearest_text(path)
        seen = f"; nearest licence text: {nearest}" if nearest else "; no licence text above it"
        if self._params.licence_evidence is EvidencePolicy.FILE:
            return Refusal("licence_refused", f"{path}: no licence of its own, and the recipe inherits none{seen}")
        if not self._facts.inherit_license:
            return Refusal("licence_quarantined", f"{path}: no licence of its own, and its pin inherits none{seen}")
        if nearest and (stated := _tagged(nearest, self._texts[nearest], LicenceEvidence.LICENCE_TEXT)):
            return stated
        root = vendored_root(path, self._params.vendored_roots)
        if root:
            return Refusal(
                "licence_quarantined", f"{path}: no licence of its own below the vendored root {root}/{seen}"
            )
        if self._package is None:
            return Refusal(
                "licence_quarantined", f"{path}: no licence of its own and none declared by the package{seen}"
            )
        lines = self._package.lines + ((f"{nearest}: nearest licence text",) if nearest else ())
        return Statement(self._package.expressions, self._package.evidence, lines)

    def _nearest_text(self, path: str) -> str | None:
        """The licence text in the folder of `path` or the nearest above it, at most up to the vendored root."""
        root = vendored_root(path, self._params.vendored_roots)
        for folder in PurePosixPath(path).parents:
            found = sorted(text for text in self._texts if PurePosixPath(text).parent == folder)
            if found:
                return found[0]
            if str(folder) == root:
                return None
        return None

    def _judge(self, statement: Statement) -> Judged | Refusal:
        judged: list[Judged] = []
        for expression in dict.fromkeys(statement.expressions):
            found = judge_expression(expression, self._policy)
            if isinstance(found, Refusal):
                return Refusal(found.reason, _with_lines(found.detail, statement), found.licence)
            judged.append(found)
        whole = _all_of(judged)
        if whole.licence_class is LicenceClass.REFUSED:
            detail = _with_lines(f"{whole.expression} is refused", statement)
            return Refusal("licence_refused", detail, whole.expression, is_copyleft="GPL" in whole.expression)
        if whole.licence_class is LicenceClass.TAGGED and not self._params.keep_tagged:
            return Refusal(
                "licence_refused", _with_lines(f"{whole.expression} is weak copyleft", statement), whole.expression
            )
        return whole

    def _contradiction(self, path: str, text: str, statement: Statement, judged: Judged) -> Refusal | None:
        """A notice in the file's header, or the title of the licence text above it, that asks more than was found."""
        if statement.evidence is LicenceEvidence.FILE:
            return None
        notice, where = find_notice(text), path
        nearest = self._nearest_text(path) if statement.evidence is LicenceEvidence.PACKAGE else None
        if notice is None and nearest:
            notice, where = find_title(self._texts[nearest]), nearest
        if notice is None or notice.licence_class <= judged.licence_class:
            return None
        detail = f"{where} says `{notice.words}`, against {judged.expression} by {statement.evidence}"
        return Refusal("licence_quarantined", _with_lines(detail, statement), judged.expression, is_copyleft=True)


def vendored_root(path: str, names: Iterable[str]) -> str | None:
    """The innermost folder of a path whose name says that what lies below came from elsewhere, or None."""
    folders = PurePosixPath(path).parts[:-1]
    for depth in range(len(folders), 0, -1):
        if folders[depth - 1].lower() in names:
            return "/".join(folders[:depth])
    return None


def _tagged(path: str, text: str, evidence: LicenceEvidence) -> Statement | None:
    tags = find_tags(text)
    if not tags:
        return None
    lines = tuple(f"{path}:{tag.line}: SPDX-License-Identifier: {tag.expression}" for tag in tags)
    return Statement(tuple(tag.expression for tag in tags), evidence, lines)


def _annotated(annotation: Annotation) -> Statement:
    evidence = LicenceEvidence.DEP5 if ".reuse/dep5" in annotation.where else LicenceEvidence.REUSE
    return Statement(annotation.expressions, evidence, (f"{annotation.where}: {' AND '.join(annotation.expressions)}",))


def _read_annotations(evidence: Mapping[str, bytes]) -> list[Annotation]:
    found: list[Annotation] = []
    for path in sorted(evidence):
        if PurePosixPath(path).name == "REUSE.toml":
            found += read_reuse_toml(path, evidence[path])
        elif path.endswith(".reuse/dep5"):
            found += read_dep5(path, evidence[path])
    return found


def _licence_texts(evidence: Mapping[str, bytes]) -> dict[str, str]:
    """Licence texts by path; what lies in LICENSES/ is a library of texts and says nothing about a folder."""
    others = {"PKG-INFO", "REUSE.toml", "dep5"}
    return {
        path: content.decode("utf-8", "replace")
        for path, content in evidence.items()
        if not path.endswith(".license")
        and PurePosixPath(path).name not in others
        and PurePosixPath(path).parent.name != "LICENSES"
    }


def _package_statement(evidence: Mapping[str, bytes], facts: PackageFacts) -> Statement | None:
    """What the package's metadata and the pin declare. Where they differ, both must hold."""
    lines, expressions = [], []
    metadata = sorted(
        (path for path in evidence if PurePosixPath(path).name == "PKG-INFO"), key=lambda path: (path.count("/"), path)
    )
    headers = evidence[metadata[0]].decode("utf-8", "replace").split("\n\n")[0] if metadata else ""
    if match := _PACKAGE_LICENCE.search(headers):
        expressions.append(match[1].strip())
        lines.append(f"{metadata[0]}:{headers.count(chr(10), 0, match.start()) + 1}: {match[0].strip()}")
    if facts.declared_license and facts.declared_license not in expressions:
        expressions.append(facts.declared_license)
        lines.append(f"pin: declared_license = {facts.declared_license}")
    return Statement(tuple(expressions), LicenceEvidence.PACKAGE, tuple(lines)) if expressions else None


def _all_of(judged: list[Judged]) -> Judged:
    if len(judged) == 1:
        return judged[0]
    expressions = dict.fromkeys(each.expression for each in judged)
    branches = dict.fromkeys(each.branch for each in judged)
    if len(expressions) == 1:
        return judged[0]
    return Judged(
        " AND ".join(f"({each})" if " OR " in each else each for each in expressions),
        max(each.licence_class for each in judged),
        " AND ".join(branches),
    )


def _with_lines(detail: str, statement: Statement) -> str:
    return "\n".join((detail, *statement.lines))
