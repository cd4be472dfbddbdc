"""SluiceError and its subclasses: every error that a user can cause and fix.

    SluiceError
    ├── ParamsError            a configuration that cannot be used
    ├── PinError               an entry of a pins file without immutable bytes
    │   └── DecisionError      an entry of a file of decisions that decides nothing that it may decide
    ├── SourceError            one source could not be collected; the others continue
    │   ├── FetchError         its bytes could not be fetched (offline, truncated, refused)
    │   ├── DigestError        its bytes are not the pinned ones
    │   ├── ArchiveError       its archive is hostile or broken
    │   └── LargeSourceError   it holds more than one part may
    ├── StageError             a stage could not do its work
    ├── StoreError             the store cannot be read or written
    │   ├── MissingError       no such object, ref or blob
    │   ├── DamagedError       the bytes on disk are not the ones that were written
    │   ├── FormatError        another version of Sluice wrote it
    │   ├── LockedError        another writer has locked the corpus
    │   └── RefMovedError      a ref was moved by another writer
    ├── GateError              a gate could not be judged, or failed
    │   ├── BlockedError       a blocking gate failed: nothing was promoted
    │   └── MeasureError       a gate names a measure that the stage did not report
    ├── SnapshotError          a snapshot that the consumer cannot read
    └── TrainingError          a training run or checkpoint that cannot continue

Each message says four things: which object, what was found, what was expected, and what to do next, in at most 2,000 characters.
"""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

MAX_MESSAGE = 2_000
"""Characters of a message: it can be read, whatever the input was."""
_MIN_SHOWN = 200
_CUT = " ... "
_MAX_COMPARED = 100


class SluiceError(Exception):
    """Base of all errors that a user can cause and fix. The command lines print it as one line, without a traceback."""

    facts: Mapping[str, Any] = {}
    """The fields of the error that `--json` prints besides its name and its message."""

    def __init__(self, subject: str, found: str, expected: str = "", remedy: str = "") -> None:
        super().__init__(subject, found, expected, remedy)
        self.subject = subject
        self.found = found
        self.expected = expected
        self.remedy = remedy

    def __str__(self) -> str:
        parts = [self.subject, self.found, self.expected, self.remedy]
        while (excess := len(_sentence(*parts)) - MAX_MESSAGE) > 0:
            longest = max(range(len(parts)), key=lambda index: len(parts[index]))
            parts[longest] = both_ends(parts[longest], max(len(parts[longest]) - excess, _MIN_SHOWN))
        return _sentence(*parts)


def _sentence(subject: str, found: str, expected: str, remedy: str) -> str:
    text = f"{subject}: {found}"
    if expected:
        text += f"; expected {expected}"
    text = text.rstrip(".") + "."
    return f"{text} {remedy}" if remedy else text


def both_ends(text: str, num_characters: int) -> str:
    """Return a text of at most so many characters: the two ends of a longer one."""
    if len(text) <= num_characters:
        return text
    half = (num_characters - len(_CUT)) // 2
    return f"{text[:half]}{_CUT}{text[-half:]}"


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the remedy for a name that is not known: those that are nearly it, else `otherwise`."""
    names = list(known)
    by_letters = {_compared(each): each for each in names}
    near = difflib.get_close_matches(_compared(name[:_MAX_COMPARED]), by_letters, 2, 0.6)
    return f"Did you mean {' or '.join(by_letters[each] for each in near)}?" if near else otherwise


def _compared(name: str) -> str:
    """Return the letters of a name without what all options, or all files of a kind, have in common."""
    return name.lower().lstrip("-").removesuffix(".toml")


class ParamsError(SluiceError):
    """A configuration value out of its bounds, or one without a stable identity."""


class PinError(SluiceError):
    """A pin that does not name immutable bytes: a branch, a missing digest, an unknown field."""


class DecisionError(PinError):
    """A decision about files that cannot be used: an unknown source, two that contradict each other, a rule that none releases."""


class SourceError(SluiceError):
    """One source failed. A build collects the others and then stops at the gate `every_pin_verified`."""


class FetchError(SourceError):
    """The bytes of a source could not be fetched."""


class DigestError(SourceError):
    """The bytes of a source do not have the pinned digest. They are kept aside and not used."""


class ArchiveError(SourceError):
    """An archive that is broken, too large, or that names a path outside its own tree; of one member of it, with its name."""

    def __init__(self, subject: str, found: str, expected: str = "", remedy: str = "", *, member: str = "") -> None:
        super().__init__(f"{subject}: {member}" if member else subject, found, expected, remedy)
        self.member = member


class LargeSourceError(SourceError):
    """A source that was read as one part and holds more bytes than a shard. Collect reads it again, in shards."""


class StageError(SluiceError):
    """A stage could not do its work."""


class StoreError(SluiceError):
    """The store cannot be read or written."""


class MissingError(StoreError):
    """No such object, ref or blob."""


class DamagedError(StoreError):
    """Bytes on disk differ from what the manifest says was written."""


class FormatError(StoreError):
    """A store or an object that another version of Sluice wrote."""


class LockedError(StoreError):
    """Another writer has locked the corpus."""


class RefMovedError(StoreError):
    """A compare-and-swap failed: another writer moved the ref."""


class GateError(SluiceError):
    """A gate could not be judged, or failed."""


class BlockedError(GateError):
    """A blocking gate failed, so neither `candidate` nor `live` moved.

    `facts` hold the id of what was judged, the verdicts, and what to run next.
    """


class MeasureError(GateError):
    """A gate names a measure that the report does not contain."""


class SnapshotError(SluiceError):
    """A snapshot that the consumer cannot read."""


class TrainingError(SluiceError):
    """A training run or a checkpoint that cannot continue."""
