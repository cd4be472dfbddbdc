"""Decision: an entry of `decisions.toml`, in which a person decides about files of a source, such as

    [[decision]]
    source = "iminuit"
    path = "src/fit.cpp"                          a path, or a glob as in a pin
    sha256 = "275f..."                            of the file as received: the decision ends when its bytes change
    license = "MIT"
    reason = "The notice was withdrawn, see the message of 3 May in docs/."
    person = "A. Reader"

with one of `license` (what a person concluded), `release` (reasons of drops that shall not drop the file) and `waive` (a finding
that stays in the text). The file is beside that of the pins. What an entry may name is known to the stage that reads it.
"""

import datetime
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, ValidationError, model_validator

from pipeline.core.errors import DecisionError, did_you_mean
from pipeline.core.globs import Globs
from pipeline.core.params import Params
from pipeline.pins.pins import DIGEST_FORM, Glob, Sha256, Slug, first_error, read_tables

DECISIONS_FILE = "decisions.toml"
"""Name of the file that is read beside a file of pins."""
DECISIONS = "decisions.json"
"""Name of the file in a part that says what became of the decisions about its source."""
MAX_DECISIONS = 10_000
_FIELD = re.compile(r"[a-z][a-z0-9_]{0,20}")
_SAID_ONLY = ("reason", "person", "date")
"""Fields that change nothing of what a decision does."""


class Decision(Params):
    """A person's decision about the files of one source that a path matches, why, and who it was."""

    model_config = ConfigDict(use_attribute_docstrings=False)  # as in SourcePin

    source: Slug
    path: Glob
    """Path of a file, or a glob as in a pin."""
    sha256: Sha256 | None = None
    """Digest of the file as received; None for whatever bytes it has."""
    license: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    """SPDX expression that a person concluded. The policy judges it as any other."""
    release: tuple[Annotated[str, Field(max_length=100)], ...] = ()
    """Reasons of drops that shall not drop the file."""
    waive: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """Word of the placeholder, or name of the detector or rule, of a finding that stays in the text."""
    line: Annotated[int, Field(ge=1, strict=True)] | None = None
    """Line of the finding, from 1."""
    value_sha256: Sha256 | None = None
    """Digest of the value that was found, in UTF-8. The value itself is nowhere."""
    reason: Annotated[str, Field(min_length=1, max_length=500)]
    person: Annotated[str, Field(min_length=1, max_length=100)]
    date: datetime.date | None = None

    @model_validator(mode="after")
    def _is_one_decision(self) -> "Decision":
        if sum((self.license is not None, bool(self.release), self.waive is not None)) != 1:
            raise ValueError("one of `license`, `release` and `waive`")
        if self.waive is None and (self.line is not None or self.value_sha256 is not None):
            raise ValueError("`line` and `value_sha256` only together with `waive`")
        if self.waive is not None and self.line is None and self.value_sha256 is None:
            raise ValueError("`line` or `value_sha256` beside `waive`: a waiver is of one finding")
        for name in ("reason", "person"):
            text = getattr(self, name)
            if not text.strip() or not text.isprintable():
                raise ValueError(f"`{name}` to be one line of words")
        return self

    @property
    def name(self) -> str:
        """The files that it is about, as messages name them."""
        return f"{self.source}/{self.path}"

    @property
    def what(self) -> str:
        """The decision in words."""
        if self.license is not None:
            return f"license {self.license}"
        if self.release:
            return f"release of {', '.join(self.release)}"
        place = f" on line {self.line}" if self.line is not None else ""
        return f"waiver of {self.waive}{place}" + (f" with sha256 {self.value_sha256}" if self.value_sha256 else "")

    @property
    def text(self) -> str:
        """The decision in words, by whom and why."""
        when = f" on {self.date}" if self.date else ""
        return f"{self.what}, decided by {self.person}{when}: {self.reason}"

    def as_json(self) -> dict[str, Any]:
        """Return the fields that are set, as JSON."""
        return {name: value for name, value in self.model_dump(mode="json").items() if value not in (None, [])}

    def facts(self) -> dict[str, Any]:
        """Return what it does, as JSON, without what is only said."""
        return {name: value for name, value in self.as_json().items() if name not in _SAID_ONLY}

    @property
    def is_glob(self) -> bool:
        """True where the path may match others than itself."""
        return "*" in self.path or "?" in self.path

    @property
    def is_of_all(self) -> bool:
        """True where the path matches every file of the source."""
        return "**" in self.path and set(self.path) <= set("*/?")

    def matches(self, path: str) -> bool:
        """Return whether it is about the file at `path` of its source, if that has the right bytes."""
        return path == self.path or _globs(self.path).match_any(path)


def load_decisions(path: Path, sources: Iterable[str]) -> tuple[Decision, ...]:
    """Return the decisions of a TOML file that holds `[[decision]]` tables and nothing else, in order of files.

    `sources` are the names of the pins beside it. Raises DecisionError for the first bad entry, for one about another source, and
    for two that decide the same.
    """
    known, seen = set(sources), dict[tuple[str, ...], set[str | None]]()
    decisions = []
    for subject, entry in read_tables(path, "decision", DecisionError, is_required=False)[: MAX_DECISIONS + 1]:
        decision = _parse_decision(entry, subject)
        if decision.source not in known:
            found, expected = f"source is {decision.source!r}", f"one of {', '.join(sorted(known))}"
            remedy = "Correct the name, or name the decisions of these pins by `--decisions`."
            remedy = did_you_mean(decision.source, known, remedy)
            raise DecisionError(subject, found, expected, remedy)
        _refuse_twice(decision, subject, seen)
        decisions.append(decision)
    if len(decisions) > MAX_DECISIONS:
        found, remedy = f"it has more than {MAX_DECISIONS} entries", "Decide about folders, by globs."
        raise DecisionError(str(path), found, "fewer", remedy)
    return tuple(sorted(decisions, key=lambda each: (each.source, each.path, each.what, each.sha256 or "")))


@lru_cache(maxsize=MAX_DECISIONS)
def _globs(path: str) -> Globs:
    return Globs((path,))


def _parse_decision(entry: Mapping[str, Any], subject: str) -> Decision:
    try:
        return Decision.model_validate(entry)
    except ValidationError as error:
        field, found, expected = first_error(error, Decision)
        # What is in the wrong field, or in the place of one, may be the secret itself.
        if found.startswith(f"{field} is "):
            found = f"{field} is not valid, and not shown, as it may be the value of a secret"
        elif not field:  # of the entry as a whole, whose fields are all known
            found = f"it has {', '.join(sorted(entry))}"
        elif not _FIELD.fullmatch(field):
            found = "a field is not known, and not shown, as it may be the value of a secret"
        expected, remedy = _HINTS.get(field, (expected, "Correct the entry."))
        raise DecisionError(subject, found, expected, remedy) from None


def _refuse_twice(decision: Decision, subject: str, seen: dict[tuple[str, ...], set[str | None]]) -> None:
    """Raise DecisionError for a decision of what another one decides about the same path and bytes."""
    topics = ["license"] if decision.license is not None else [f"release {reason}" for reason in decision.release]
    if decision.waive is not None:
        topics = [f"waive {decision.waive} {decision.line} {decision.value_sha256}"]
    for topic in topics:
        digests = seen.setdefault((decision.source, decision.path, topic), set())
        if digests and (None in digests or decision.sha256 is None or decision.sha256 in digests):
            found = f"another entry decides about the {topic.split()[0]} of {decision.name} too"
            raise DecisionError(subject, found, "one decision", "Remove one of the two.")
        digests.add(decision.sha256)


_HINTS = {
    "source": ("the name of a pin", "Correct the entry."),
    "path": ("a path inside the source, or a glob", "Write it as `why` prints it."),
    "sha256": (DIGEST_FORM, "Run sha256sum on the file as it is in its source, or leave the line out."),
    "value_sha256": (DIGEST_FORM, "Write the output of `printf %s VALUE | sha256sum`, or the line of the finding."),
    "reason": ("a sentence of at most 500 characters", "Write why it was decided so."),
    "person": ("a name of at most 100 characters", "Write who decided it."),
    "date": ("a date such as 2026-05-03", "Correct the entry, or leave it out."),
}
