"""Everything that Sluice refuses, as one tree.

    SluiceError
    ├── ParamsError            a configuration that cannot be used
    ├── PinError               an entry of a pins file that names nothing immutable
    ├── SourceError            one source could not be collected; the others go on
    │   ├── FetchError         its bytes could not be had (offline, truncated, refused)
    │   ├── DigestError        its bytes are not the pinned ones
    │   └── ArchiveError       its archive is hostile or broken
    ├── StageError             a stage could not do its work
    ├── StoreError             the store refuses
    │   ├── MissingError       no such object, ref or blob
    │   ├── DamagedError       the bytes on disk are not the ones that were written
    │   ├── FormatError        another version of Sluice wrote it
    │   ├── LockedError        another writer holds the corpus
    │   └── RefMovedError      a ref is not where its writer left it
    ├── GateError              a gate could not be judged, or said no
    │   ├── BlockedError       a blocking gate failed: nothing was promoted
    │   └── MeasureError       a gate names a measure that the stage did not report
    ├── SnapshotError          a snapshot that the consumer cannot read
    └── TrainingError          a training run or checkpoint that cannot go on

Each message says four things: which object, what was found, what was expected, and what to do next.
"""


class SluiceError(Exception):
    """Base of all errors that a user can cause and mend. The command lines print it as one line, without a traceback."""

    def __init__(self, subject: str, found: str, expected: str = "", remedy: str = "") -> None:
        super().__init__(subject, found, expected, remedy)
        self.subject = subject
        self.found = found
        self.expected = expected
        self.remedy = remedy

    def __str__(self) -> str:
        text = f"{self.subject}: {self.found}"
        if self.expected:
            text += f"; expected {self.expected}"
        text = text.rstrip(".") + "."
        return f"{text} {self.remedy}" if self.remedy else text


class ParamsError(SluiceError):
    """A configuration value out of its bounds, or one without a stable identity."""


class PinError(SluiceError):
    """A pin that does not name immutable bytes: a branch, a missing digest, an unknown field."""


class SourceError(SluiceError):
    """One source failed. A build collects the others and then stops at the gate `every_pin_verified`."""


class FetchError(SourceError):
    """The bytes of a source could not be had."""


class DigestError(SourceError):
    """The bytes of a source do not have the pinned digest. They are kept aside and not used."""


class ArchiveError(SourceError):
    """An archive that is broken, too large, or that names a path outside its own tree."""


class StageError(SluiceError):
    """A stage could not do its work."""


class StoreError(SluiceError):
    """The store refuses."""


class MissingError(StoreError):
    """No such object, ref or blob."""


class DamagedError(StoreError):
    """Bytes on disk differ from what the manifest says was written."""


class FormatError(StoreError):
    """A store or an object that another version of Sluice wrote."""


class LockedError(StoreError):
    """Another writer holds the corpus."""


class RefMovedError(StoreError):
    """A compare-and-swap lost: the ref is not where its writer last saw it."""


class GateError(SluiceError):
    """A gate could not be judged, or said no."""


class BlockedError(GateError):
    """A blocking gate failed, so no ref moved."""


class MeasureError(GateError):
    """A gate names a measure that the report does not hold."""


class SnapshotError(SluiceError):
    """A snapshot that the consumer cannot read."""


class TrainingError(SluiceError):
    """A training run or a checkpoint that cannot go on."""
