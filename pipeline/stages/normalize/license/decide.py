"""Decision about a file's license: the first evidence that states one, the policy's class for it, and contradictions.

Evidence in order: what a person decided about the file; tags in the file, its `.license` sidecar, REUSE.toml or
`.reuse/dep5`, a license text or standard notice in the file's leading comments; then, where the pin allows it, the
nearest license text, and what the package declares. A vendored root ends inheritance, unless a recognized text is below
it. Unclear evidence is quarantined.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from pipeline.core.records import LicenseEvidence
from pipeline.stages.normalize.drop import Drop
from pipeline.stages.normalize.license.evidence import (
    NO_ASSERTION,
    FileText,
    FolderTexts,
    SourceEvidence,
    Statement,
    expression_ids,
    vendored_root,
)
from pipeline.stages.normalize.license.policy import (
    CLASS_NAMES,
    ClassifiedExpression,
    LicenseClass,
    Policy,
    classify_expression,
)
from pipeline.stages.normalize.license.prose.sentences import Sentence, speaks_beside_a_license
from pipeline.stages.normalize.license.prose.words import as_written
from pipeline.stages.normalize.license.read_comments import BSD_FAMILY
from pipeline.stages.normalize.params import EvidencePolicy, LicenseParams

_INHERITED = frozenset({LicenseEvidence.LICENSE_TEXT, LicenseEvidence.PACKAGE})


@dataclass(frozen=True)
class LicenseDecision:
    """The license of one file: decided once, and carried to its Document, DroppedRecord and signature.

    `detail` are the lines of evidence that `why` prints. `drop_reason` is None for a license that is allowed.
    `is_copyleft` says that the file, or what it inherits, is under copyleft: copies of it in other places are dropped.
    `is_own` says that the file itself, or a statement about this one file, says so.
    """

    expression: str | None
    detail: str
    drop_reason: str | None = None
    license_class: str = CLASS_NAMES[LicenseClass.REFUSED]
    branch: str = ""
    evidence: LicenseEvidence = LicenseEvidence.NONE
    is_copyleft: bool = False
    is_own: bool = False

    @property
    def drop(self) -> Drop | None:
        """The drop that follows, if the file is dropped."""
        return Drop(self.drop_reason, self.detail, self.expression) if self.drop_reason else None

    @property
    def is_inherited(self) -> bool:
        """True where the evidence covers more than this file."""
        return self.evidence in _INHERITED


@dataclass(frozen=True)
class PackageFacts:
    """Facts of the pin about the whole source."""

    declared_license: str
    inherit_license: bool


@dataclass(frozen=True)
class LicenseRuling:
    """A person's decision about the license of a file, with the `lines` that say so.

    `expression` is what was concluded, None for nothing. `is_released` keeps what would be quarantined, where a license was found.
    """

    expression: str | None = None
    is_released: bool = False
    lines: tuple[str, ...] = ()


NO_RULING = LicenseRuling()


class SourceLicenses:
    """Decides the license of each file of one source, whose evidence is read once."""

    def __init__(
        self, evidence: Mapping[str, bytes], facts: PackageFacts, policy: Policy, params: LicenseParams
    ) -> None:
        self._evidence = SourceEvidence(evidence, facts.declared_license, params.vendored_roots)
        self._inherits = facts.inherit_license
        self._policy = policy
        self._params = params

    def decide(self, path: str, text: str, ruling: LicenseRuling = NO_RULING) -> LicenseDecision:
        """Return the license of a file; dropped as `license_refused`, `license_unknown` or `license_quarantined`."""
        file = FileText(path, text)
        statement = (
            _concluded(ruling)
            or self._evidence.about(file)
            or self._in_comments(file)
            or self._unreadable(path)
            or self._inherited(path)
        )
        if isinstance(statement, LicenseDecision):
            return statement
        classified = self._classify(statement)
        if isinstance(classified, LicenseDecision):
            return classified
        evidence, detail = statement.evidence, "\n".join(statement.lines)
        unclear = None if ruling.expression else self._contradiction(file, statement, classified)
        if unclear and not ruling.is_released:
            return unclear
        if unclear:
            evidence, detail = LicenseEvidence.DECISION, "\n".join((*ruling.lines, unclear.detail))
        return LicenseDecision(
            expression=classified.expression,
            detail=detail,
            license_class=CLASS_NAMES[classified.license_class],
            branch=classified.branch,
            evidence=evidence,
        )

    def _in_comments(self, file: FileText) -> Statement | None:
        """Return what a file's comments state, with what it inherits where they speak of a part."""
        own = self._evidence.in_comments(file)
        inherited = self._inherited(file.path) if own and own.is_partial and self._inherits else None
        if own is None or not isinstance(inherited, Statement):
            return own
        return replace(
            inherited, expressions=inherited.expressions + own.expressions, lines=inherited.lines + own.lines
        )

    def _unreadable(self, path: str) -> LicenseDecision | None:
        """Quarantine a file that an unreadable statement covers: whatever it says, nothing less than it may be inherited."""
        broken = self._evidence.broken_annotation(path)
        return _quarantined(f"{path}: {broken.where} {broken.problem}") if broken else None

    def _inherited(self, path: str) -> Statement | LicenseDecision:
        """Return what the nearest license texts or the package state, if the file may inherit it."""
        texts, package = self._evidence.nearest_texts(path), self._evidence.package
        seen = (
            f"; nearest license text: {', '.join(texts.paths)}" if texts else "; no license text in its folder or above"
        )
        if self._params.license_evidence is EvidencePolicy.FILE:
            detail = f"{path}: the file states no license, and the recipe inherits none{seen}"
            return LicenseDecision(None, detail, "license_refused")
        if not self._inherits:
            return _quarantined(f"{path}: the file states no license, and its pin inherits none{seen}")
        if texts and texts.problem is None:
            return self._stated_by(texts)
        problem = texts.lines if texts else ()
        root = vendored_root(path, self._params.vendored_roots)
        if root:
            detail = f"{path}: the file states no license, and it is below the vendored root {root}/{seen}"
            return _quarantined(detail, problem)
        if texts and (texts.is_near or not (texts.is_of_source or self._package_covers(texts))):
            detail = f"{path}: the license text that it inherits is unclear: {texts.problem}{seen}"
            return replace(_quarantined(detail, problem), is_copyleft=texts.title is not None)
        if package is None:
            return _quarantined(f"{path}: neither the file nor the package states a license{seen}", problem)
        return replace(package, lines=package.lines + problem)

    def _stated_by(self, texts: FolderTexts) -> Statement:
        """Return what a folder's texts state; if they are those of the whole source, what the package asserts holds too."""
        stated = Statement(texts.expressions, LicenseEvidence.LICENSE_TEXT, texts.lines)
        package = self._evidence.package
        if not texts.is_of_source or package is None or package.expressions[0].upper() == NO_ASSERTION:
            return stated
        declared = package.expressions
        # A choice among the very licenses whose texts are here: the recipient chooses.
        is_choice = len(declared) == 1 and " OR " in declared[0] and expression_ids(declared) == set(texts.expressions)
        return replace(
            stated,
            expressions=declared if is_choice else stated.expressions + declared,
            lines=stated.lines + package.lines,
        )

    def _package_covers(self, texts: FolderTexts) -> bool:
        """Return whether the package names every license found in a folder's unclear texts: then it knew of them."""
        package = self._evidence.package
        named = expression_ids(package.expressions) if package else set()
        return bool(texts.expressions) and named.issuperset(texts.expressions) and texts.title is None

    def _classify(self, statement: Statement) -> ClassifiedExpression | LicenseDecision:
        """Return the class of all expressions of a statement together, or the decision to drop the file."""
        parts: list[ClassifiedExpression] = []
        for expression in dict.fromkeys(statement.expressions):
            found = classify_expression(expression, self._policy)
            if isinstance(found, Drop):
                return LicenseDecision(found.license, _with_lines(found.detail, statement), found.reason)
            parts.append(found)
        whole = _all_of(parts)
        if whole.license_class is LicenseClass.REFUSED:
            is_copyleft = "GPL" in whole.expression
            return LicenseDecision(
                whole.expression,
                _with_lines(f"{whole.expression} is refused", statement),
                "license_refused",
                is_copyleft=is_copyleft,
                is_own=is_copyleft and statement.evidence not in _INHERITED,
            )
        if whole.license_class is LicenseClass.TAGGED and not self._params.keep_tagged:
            detail = _with_lines(f"{whole.expression} is weak copyleft", statement)
            return LicenseDecision(whole.expression, detail, "license_refused")
        return whole

    def _contradiction(
        self, file: FileText, statement: Statement, classified: ClassifiedExpression
    ) -> LicenseDecision | None:
        """Quarantine a file whose comments, or the title of the license text above it, ask more than was found."""
        claim = self._claim(file, statement, classified)
        texts = self._evidence.nearest_texts(file.path) if statement.evidence in _INHERITED else None
        where, is_copyleft = file.path, False
        is_package = statement.evidence is LicenseEvidence.PACKAGE
        if claim is None and texts and (named := self._named_beside(texts, statement, classified)):
            where, claim = named
        elif (
            claim is None
            and texts
            and is_package
            and texts.title
            and texts.title[1].license_class > classified.license_class
        ):
            where, claim = texts.title[0], Sentence(texts.title[1].words, 0)
            is_copyleft = True
        if claim is None:
            return None
        quoted = as_written(claim.words, file.text) if where == file.path else claim.words
        detail = f"{where} says `{quoted}`, against {classified.expression} by {statement.evidence}"
        if claim.because:
            detail += f"\nwords that weigh most: {', '.join(claim.because)}"
        is_copyleft = is_copyleft or "GPL" in claim.words or "General Public" in claim.words
        return LicenseDecision(
            classified.expression,
            _with_lines(detail, statement),
            "license_quarantined",
            is_copyleft=is_copyleft,
            is_own=where == file.path and is_copyleft,
        )

    def _named_beside(
        self, texts: FolderTexts, statement: Statement, classified: ClassifiedExpression
    ) -> tuple[str, Sentence] | None:
        """Return a license that words beside the license texts put the work under, and that asks more, with its path."""
        families = {license.split("-")[0] for license in expression_ids(statement.expressions)}
        for path, expression in texts.named:
            found = classify_expression(expression.replace(BSD_FAMILY, "BSD-3-Clause"), self._policy)
            asks_more = isinstance(found, Drop) or found.license_class > classified.license_class
            if asks_more and families.isdisjoint(each.split("-")[0] for each in expression_ids((expression,))):
                return path, Sentence(expression, 0)
        return None

    def _claim(self, file: FileText, statement: Statement, classified: ClassifiedExpression) -> Sentence | None:
        """Return what the comments say beyond a statement: a license that it does not hold, or a sentence of one."""
        stated = expression_ids(statement.expressions) | expression_ids((classified.expression,))
        families = {license.split("-")[0] for license in stated}
        for prose, reading in file.readings:
            own = () if statement.evidence is LicenseEvidence.HEADER else expression_ids(reading.expressions)
            other = {*reading.mentions, *own}
            for license in sorted(other - stated):
                is_family = license.removeprefix("LicenseRef-").split("-")[0] in families
                demands = self._policy.class_of(license.replace(BSD_FAMILY, "BSD-3-Clause")) > classified.license_class
                if (
                    (prose.is_header or prose.is_legal)
                    and not is_family
                    and (demands or statement.evidence in _INHERITED)
                ):
                    return Sentence(license, 0)
            is_inherited = statement.evidence in _INHERITED
            sentence = reading.sentence or (self._reference(file.path, reading.files) if is_inherited else None)
            if sentence and (is_inherited or speaks_beside_a_license(sentence.words)):
                return sentence
        return None

    def _reference(self, path: str, names: tuple[str, ...]) -> Sentence | None:
        """Return the first of the license files named in a comment that is not among the texts which the file inherits."""
        texts = self._evidence.nearest_texts(path) if names else None
        here = {PurePosixPath(each).name.lower() for each in texts.paths} if texts else set()
        return next((Sentence(name, 0) for name in names if name.lower() not in here), None)


def _concluded(ruling: LicenseRuling) -> Statement | None:
    """Return what a person concluded, as a statement."""
    if ruling.expression is None:
        return None
    return Statement((ruling.expression,), LicenseEvidence.DECISION, ruling.lines)


def _quarantined(detail: str, lines: tuple[str, ...] = ()) -> LicenseDecision:
    return LicenseDecision(None, "\n".join((detail, *lines)), "license_quarantined")


def _all_of(parts: list[ClassifiedExpression]) -> ClassifiedExpression:
    expressions = dict.fromkeys(each.expression for each in parts)
    if len(expressions) == 1:
        return parts[0]
    return ClassifiedExpression(
        " AND ".join(f"({each})" if " OR " in each else each for each in expressions),
        max(each.license_class for each in parts),
        " AND ".join(dict.fromkeys(each.branch for each in parts)),
    )


def _with_lines(detail: str, statement: Statement) -> str:
    return "\n".join((detail, *statement.lines))
