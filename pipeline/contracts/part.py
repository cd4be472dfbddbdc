"""Part: one source's share of a stage's output, and StageContext, through which a stage has parts made.

A stage is a function `run(context)` that requests parts. A part function is pure: the same job gives the same output in any
process. The names of its output tables end in `.parquet`, or in `.arrow` for memory-mapped ones.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pipeline.contracts.stage_report import StageReport
from pipeline.core.errors import SourceError
from pipeline.core.params import Params

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.pins.decisions import Decision
    from pipeline.pins.held_out import HeldOut
    from pipeline.pins.pins import SourcePin
    from pipeline.pins.selection import Selector

MEMORY_REMEDY = "Run again: finished parts are reused. Fewer workers need less memory."
"""The remedy where a part could not be made that no source is without."""
P_co = TypeVar("P_co", bound=Params, covariant=True)

DUPLICATES_PART = "duplicates"
"""Name of the part that compares all sources and decides which documents are kept: later stages read it by this name."""
LISTING_SUFFIX = ".listing"
"""End of the name of a part that lists a source. No source's name has a dot."""
EVIDENCE_LABEL = "evidence"
"""Label under which a source that was collected in shards has the files that state licenses of others as an input."""
LINKS_LABEL, COPIES_LABEL = "links/", "copies/"
"""Beginnings of the labels under which the part that compares all sources has what was found before, beside the sources."""
SCRATCH = "scratch"
"""Label of the folder in which a part that does not fit into memory keeps bytes while it is made."""
VOCABULARY_PART = "vocabulary"
"""Name of the part with the vocabulary's files, tokenizer.json and vocabulary.toml."""


class Tables(Protocol):
    """Read access to the tables of one object in the store."""

    @property
    def object_id(self) -> str: ...

    @property
    def kind(self) -> str:
        """Kind of the object, as STAGES declares it."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """Everything that its bytes depend on besides its inputs, as JSON."""

    @property
    def inputs(self) -> Mapping[str, str]:
        """Label -> id of an object that it was made from."""

    @property
    def shards(self) -> "Sequence[Tables]":
        """The objects that a joined one lists, in order, whose tables together are its own; of any other itself alone."""

    @property
    def is_joined(self) -> bool:
        """True where it lists shards."""

    def table(self, name: str, columns: Sequence[str] | None = None) -> "pa.Table":
        """Read the table `name`, or some of its columns, in stored order."""

    def paths(self, name: str) -> "Sequence[Path]":
        """Verify the files of the table `name` and return their paths, in order."""

    def has(self, name: str) -> bool:
        """Return whether the object has a file of that name."""

    def json(self, name: str) -> Any:
        """Parse a JSON file of the object."""

    def file(self, name: str) -> Path:
        """Verify one file of the object and return its path."""


@dataclass(frozen=True)
class Part:
    """A part that a stage requests. Its identity is every field but the paths in `places`."""

    name: str
    function: str
    """Name of the part function, which STAGES declares with the kind of object that the part becomes. Part of the identity."""
    params: Params
    """The parameters that its output depends on, and no others: changing any of them makes the part anew."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Label -> id of an object it reads."""
    identity: Mapping[str, Any] = field(default_factory=dict)
    """Everything else that its output depends on, as JSON: a pin, a digest of kept ids."""
    places: Mapping[str, Path] = field(default_factory=dict)
    """Label -> path of bytes whose digest is in `identity`: a blob, a local tree, the store."""
    version: int | None = None
    """Version of its output if that is not the stage's: a snapshot does not change with the checks of it."""
    always: bool = False
    """Made in every build, even if its key is known: canaries must be caught by the code that runs now."""


@dataclass(frozen=True)
class PartJob:
    """The argument of a part function."""

    name: str
    params: Params
    inputs: Mapping[str, Tables]
    identity: Mapping[str, Any]
    places: Mapping[str, Path]
    count: Callable[..., Any] = lambda function, *given: function(*given)
    """Calls a pure function of tables. Canaries, which alter a column at a time, know what it returned for equal ones."""


@dataclass(frozen=True)
class PartOutput:
    """The result of a part function: tables by file name, small files by name, and the counts.

    Where STAGES declares a measure function for the kind of part, `report` has only what the part function alone can count, and
    what gates judge is counted from the tables and files.
    """

    tables: Mapping[str, "pa.Table"]
    report: StageReport = field(default_factory=lambda: StageReport(0, 0))
    files: Mapping[str, bytes] = field(default_factory=dict)
    streams: Mapping[str, Iterable["pa.Table"]] = field(default_factory=dict)
    """Tables that are made one after the other while they are written, each a file of its own: no more than one is in memory."""
    answer: Any = None
    """The answer of another program. It is measured and not stored: it may differ between machines."""


@dataclass(frozen=True)
class MadePart:
    """A part in the store. `unchanged` if it was recognized by its key and not made again."""

    name: str
    object_id: str
    report: StageReport
    unchanged: bool


FileName = tuple[str, str]
"""Source and path of a file."""


@dataclass(frozen=True)
class Note:
    """A sentence that explains a measure, and some of the files that it is about."""

    text: str
    files: tuple[FileName, ...] = ()


@dataclass(frozen=True)
class StageOutput:
    """The result of a stage: its parts by name, its counts and measures, and the sources that failed."""

    parts: Mapping[str, str]
    report: StageReport
    failures: Mapping[str, SourceError] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    """Shown if a gate blocks the stage."""
    warnings: tuple[str, ...] = ()
    """Sentences that are shown whatever the gates say."""
    evidence: Mapping[str, str] = field(default_factory=dict)
    """Objects that the audit of the stage reads and no later stage does: name -> object id."""


class StageContext(Protocol, Generic[P_co]):
    """The interface of a stage to its build and to the store."""

    @property
    def params(self) -> P_co: ...

    @property
    def inputs(self) -> Mapping[str, str]:
        """The parts of the stage before: name -> object id, sorted by name."""

    @property
    def input_id(self) -> str | None:
        """The object id of the stage before; None for the first stage."""

    @property
    def pins(self) -> Sequence["SourcePin"]:
        """The pins of the sources to build, sorted by name."""

    @property
    def withdrawn(self) -> Sequence["Selector"]:
        """Selectors of everything that is withdrawn, sorted. Only collect leaves out by them."""

    @property
    def decisions(self) -> Sequence["Decision"]:
        """Decisions of people about files of the sources. Only normalize reads them."""

    @property
    def held_out(self) -> "HeldOut":
        """The rule of what is held out from training."""

    @property
    def corpus_params(self) -> Params:
        """The Params of the whole corpus. Only verify reads them: canaries run with the Params of the build."""

    @property
    def consumer(self) -> Mapping[str, Any]:
        """The identity of the trainer that is installed: its code and its libraries. Only verify reads it."""

    @property
    def store_root(self) -> Path:
        """The path of the store. Only verify reads it, for the smoke test of the trainer."""

    def upstream(self, stage: str) -> Mapping[str, str]:
        """Return the parts of an earlier stage of this build: name -> object id, sorted by name."""

    def inputs_of(self, stage: str) -> Mapping[str, str]:
        """Return the parts that an earlier stage of this build read: name -> object id, sorted by name."""

    def upstream_id(self, stage: str) -> str:
        """Return the object id of an earlier stage of this build."""

    @property
    def offline(self) -> bool:
        """True where the network must not be used."""

    def blob(self, sha256: str) -> Path | None:
        """Return the path of the blob of that digest, or None."""

    def partial_blob(self, sha256: str) -> Path:
        """Return the path of an interrupted download of that blob, which can be resumed."""

    def put_blob(self, chunks: Iterable[bytes], sha256: str, subject: str) -> Path:
        """Store bytes as the blob `sha256`. Other bytes raise DigestError with both digests and are quarantined."""

    def named_blob(self, name: str) -> Path | None:
        """Return the path of the blob with a name such as `git/<commit>`, or None."""

    def name_blob(self, name: str, sha256: str) -> None:
        """Give a name to a blob, to find it without knowing its digest."""

    @property
    def erased(self) -> Collection[str]:
        """The revisions of sources whose archives were erased from the store. Only collect reads them."""

    def known(self, part: Part) -> str | None:
        """Return the id of a part that is in the store already, so that `make` only recognizes it; otherwise None."""

    def make(self, parts: Sequence[Part]) -> tuple[Mapping[str, MadePart], Mapping[str, SourceError]]:
        """Make parts in parallel; return those made, and the sources that failed with a SourceError. Other errors are raised."""

    def read(self, object_id: str) -> Tables:
        """Open an object for reading."""
