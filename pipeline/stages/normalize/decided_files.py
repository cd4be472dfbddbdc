"""SourceDecisions: a person's decisions about one source, matched with its files, and what became of each of them.

A decision without effect is said: one that matches no file, whose file has other bytes, that was not needed, or whose file is
dropped all the same.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import compress
from operator import not_
from typing import Any

from pipeline.contracts.part import Tables
from pipeline.pins.decisions import DECISIONS, Decision
from pipeline.stages.normalize.drop import Drop
from pipeline.stages.normalize.license.decide import NO_RULING, LicenseRuling
from pipeline.stages.normalize.scrub.waiver import WaivedValues, Waiver
from pipeline.stages.normalize.text_gates.gitleaks import WaivedFinding

QUARANTINED, UNSCRUBBABLE = "license_quarantined", "unscrubbable"
_MAX_FILES = 3


class DecisionEffect(StrEnum):
    """Effect of a decision on a file that its path matches."""

    APPLIED = "applied"
    UNNECESSARY = "unnecessary"
    """The file would be as it is without the decision."""
    DROPPED = "dropped"
    """The file is dropped for another reason."""
    OTHER_BYTES = "other_bytes"


@dataclass(frozen=True)
class DecidedFile:
    """A file that the path of a decision matches, and the effect. `detail` is the reason of the drop, or the digest that it has."""

    path: str
    effect: DecisionEffect
    detail: str = ""

    def describe(self, decision: Decision) -> str:
        """Return the effect of a decision in words."""
        match self.effect:
            case DecisionEffect.APPLIED:
                return f"{self.path} is as decided"
            case DecisionEffect.UNNECESSARY if decision.waive is not None:
                place = f"on line {decision.line}" if decision.line is not None else "with that value_sha256"
                return f"{self.path} holds no {decision.waive} {place}"
            case DecisionEffect.UNNECESSARY:
                return f"{self.path} needs no such decision"
            case DecisionEffect.OTHER_BYTES:
                return f"{self.path} has other bytes, of sha256 {self.detail}"
        hint = "; where no license was found, conclude one" if self.detail == QUARANTINED else ""
        return f"{self.path} is dropped as {self.detail}{hint}"


@dataclass(frozen=True)
class DecisionOutcome:
    """The outcome of a decision: the files that it matches, in order of path."""

    decision: Decision
    files: tuple[DecidedFile, ...]

    @property
    def has_effect(self) -> bool:
        """True where it changed what became of a file."""
        return any(file.effect is DecisionEffect.APPLIED for file in self.files)

    @property
    def warning(self) -> str:
        """A sentence about a decision without effect, and about one that is about every file; empty for any other."""
        if self.has_effect:
            found = f"The decision about {self.decision.name} is about every file of the source ({self.decision.text})."
            return found if self.decision.is_of_all else ""
        found = "it matches no file"
        if self.files:
            more = f" and {len(self.files) - _MAX_FILES} more" if len(self.files) > _MAX_FILES else ""
            found = "; ".join(file.describe(self.decision) for file in self.files[:_MAX_FILES]) + more
        return f"The decision about {self.decision.name} has no effect ({self.decision.text}): {found}."

    def row(self) -> dict[str, Any]:
        """Return the decision and its outcome as a row of a table for people."""
        return {
            "source": self.decision.source,
            "path": self.decision.path,
            "decision": self.decision.what,
            "person": self.decision.person,
            "date": str(self.decision.date or ""),
            "reason": self.decision.reason,
            "num_files": sum(file.effect is DecisionEffect.APPLIED for file in self.files),
            "warning": self.warning,
        }

    def as_json(self) -> dict[str, Any]:
        return {"decision": self.decision.as_json(), "files": [asdict(file) for file in self.files]}


def outcomes_in(part: Tables) -> list[DecisionOutcome]:
    """Read what became of the decisions about the source of a cleaned part."""
    found: dict[str, DecisionOutcome] = {}
    for row in (row for shard in part.shards if shard.has(DECISIONS) for row in shard.json(DECISIONS)):
        files = tuple(
            DecidedFile(file["path"], DecisionEffect(file["effect"]), file["detail"]) for file in row["files"]
        )
        decision = Decision.model_validate(row["decision"])
        earlier = found.setdefault(decision.model_dump_json(), DecisionOutcome(decision, ()))
        found[decision.model_dump_json()] = DecisionOutcome(decision, earlier.files + files)
    return list(found.values())


def decisions_about(part: Tables, path: str) -> list[str]:
    """Return the decisions about one file of a cleaned part, in words, with the effect of each."""
    return [
        f"{outcome.decision.text} ({file.effect.replace('_', ' ')})"
        for outcome in outcomes_in(part)
        for file in outcome.files
        if file.path == path
    ]


class FileDecisions:
    """The decisions about one file, and which of them were used. Those about `other_bytes` under its path decide nothing."""

    def __init__(self, decisions: Iterable[Decision] = (), other_bytes: Iterable[Decision] = ()) -> None:
        self.decisions = tuple(decisions)
        self.other_bytes = tuple(other_bytes)
        self._used: set[Decision] = set()
        self._by_waiver = {_waiver(each): each for each in self.decisions if each.waive is not None}
        self.waived = WaivedValues(self._by_waiver)

    def releases(self, reason: str) -> bool:
        """Return whether a drop of that reason is released. Asking uses the decision."""
        found = self._releasing(reason)
        self._used.update(found)
        return bool(found)

    @property
    def ruling(self) -> LicenseRuling:
        """The decisions about the license."""
        if not self.decisions:
            return NO_RULING
        concluded = [each for each in self.decisions if each.license is not None]
        released = self._releasing(QUARANTINED)
        lines = tuple(f"decision: {each.text}" for each in concluded or released)
        return LicenseRuling(concluded[0].license if concluded else None, bool(released), lines)

    @property
    def conflict(self) -> Drop | None:
        """The drop of a file about whose license several decisions say different things."""
        found = {each.license: each for each in self.decisions if each.license is not None}
        if len(found) < 2:
            return None
        return Drop(QUARANTINED, "decisions contradict each other: " + "; ".join(each.text for each in found.values()))

    def use_license(self, is_released: bool) -> None:
        """Record that the license is as decided: concluded, or released from quarantine."""
        if is_released:
            self.releases(QUARANTINED)
        else:
            self._used.update(each for each in self.decisions if each.license is not None)

    def use_waivers(self, text: str, is_known: Callable[[WaivedFinding], bool]) -> None:
        """Record the waivers whose findings are left in a finished text; `is_known` says so of those of the gate's rules."""
        left = self.waived.left(text)
        for waiver, decision in self._by_waiver.items():
            if waiver in left or is_known(_known(decision)):
                self._used.add(decision)

    def outcome(self, decision: Decision, name: str, reason: str | None) -> DecidedFile:
        """Return what became of a decision about the file of that name, which was kept, or dropped for a reason."""
        concludes = decision.license is not None
        if decision in self._used and (reason is None or concludes):
            return DecidedFile(name, DecisionEffect.APPLIED)
        if reason is not None:
            return DecidedFile(name, DecisionEffect.DROPPED, reason)
        return DecidedFile(name, DecisionEffect.UNNECESSARY)

    def _releasing(self, reason: str) -> list[Decision]:
        return [each for each in self.decisions if reason in each.release]


class SourceDecisions:
    """The decisions about one source, and the files that they matched so far."""

    def __init__(self, decisions: Iterable[Decision]) -> None:
        self.decisions = tuple(decisions)
        self._of_path: dict[str, list[int]] = {}
        for number, each in enumerate(self.decisions):
            self._of_path.setdefault("" if each.is_glob else each.path, []).append(number)
        self._files: dict[Decision, list[DecidedFile]] = {}

    @classmethod
    def of_identity(cls, decisions: Iterable[Mapping[str, Any]]) -> "SourceDecisions":
        """Return those of the identity of a part."""
        return cls([Decision.model_validate(dict(each)) for each in decisions])

    def about(self, path: str, sha256: str) -> FileDecisions:
        """Return the decisions about a file with bytes of that digest."""
        found = self._matching(path)
        is_about = [each.sha256 in (None, sha256) for each in found]
        return FileDecisions(compress(found, is_about), compress(found, map(not_, is_about)))

    def settle(self, decided: FileDecisions, name: str, sha256: str, reason: str | None) -> None:
        """Record what became of the decisions about a file, which was kept, or dropped for a reason.

        `name` is its path as it may be shown.
        """
        for each in decided.decisions:
            self._files.setdefault(each, []).append(decided.outcome(each, name, reason))
        for each in decided.other_bytes:
            self._files.setdefault(each, []).append(DecidedFile(name, DecisionEffect.OTHER_BYTES, sha256))

    def known(self, path: str, sha256: str) -> list[WaivedFinding]:
        """Return the findings of the gate's rules that are waived in a file."""
        return [_known(each) for each in self.about(path, sha256).decisions if each.waive is not None]

    def outcomes(self) -> list[DecisionOutcome]:
        """Return what became of each decision, in order."""
        return [DecisionOutcome(each, tuple(self._files.get(each, ()))) for each in self.decisions]

    def _matching(self, path: str) -> list[Decision]:
        """Return the decisions whose path matches, in order."""
        if not self.decisions:
            return []
        exact, globs = self._of_path.get(path, ()), self._of_path.get("", ())
        numbers = sorted([*exact, *(number for number in globs if self.decisions[number].matches(path))])
        return [self.decisions[number] for number in numbers]


def _waiver(decision: Decision) -> Waiver:
    return Waiver(decision.waive or "", decision.line, decision.value_sha256)


def _known(decision: Decision) -> WaivedFinding:
    return WaivedFinding(decision.waive or "", decision.line, decision.value_sha256)
