"""A part: one source's share of a stage's output, and what a stage may ask of its surroundings to have it made.

A stage is a function `run(context)` that asks for parts. A part function is pure: the same job gives the same output, whatever
process it runs in. The names of its output tables end in `.parquet` (cold) or `.arrow` (memory-mapped).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pipeline.contracts.report import StageReport
from pipeline.core.errors import SourceError
from pipeline.core.params import Params

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.pins.pins import SourcePin
    from pipeline.pins.selection import Selector

P_co = TypeVar("P_co", bound=Params, covariant=True)


class Tables(Protocol):
    """Read access to the tables of one object in the store."""

    @property
    def object_id(self) -> str: ...

    def table(self, name: str, columns: Sequence[str] | None = None) -> "pa.Table":
        """The whole table `name`, or some of its columns, in stored order."""
        ...

    def json(self, name: str) -> Any:
        """The parsed content of a JSON file of the object."""
        ...

    def file(self, name: str) -> Path:
        """The verified path of one file of the object."""
        ...


@dataclass(frozen=True)
class Part:
    """What a stage asks for. The part's identity is everything here but the paths in `blobs` and `places`."""

    name: str
    kind: str
    """Kind of object it becomes, such as `collect/part`."""
    function: str
    """Name of the part function among the stage's `functions`. It is part of the identity, so it never changes."""
    params: Params
    """The parameters that its output depends on, and no others: changing any of them makes the part anew."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Label -> id of an object it reads."""
    identity: Mapping[str, Any] = field(default_factory=dict)
    """What else its output depends on, as JSON: a pin, a digest of kept ids."""
    places: Mapping[str, Path] = field(default_factory=dict)
    """Label -> where bytes lie whose digest stands in `identity`: a blob, a local tree, the store."""
    version: int | None = None
    """Version of its output where that is not the stage's: a snapshot does not change with the proofs about it."""
    always: bool = False
    """Made anew in every build, even where its key is known: canaries must be caught by the code that runs now."""


@dataclass(frozen=True)
class PartJob:
    """What a part function is handed."""

    name: str
    params: Params
    inputs: Mapping[str, Tables]
    identity: Mapping[str, Any]
    places: Mapping[str, Path]


@dataclass(frozen=True)
class PartOutput:
    """What a part function returns: tables by file name, small files by name, and the counts."""

    tables: Mapping[str, "pa.Table"]
    report: StageReport
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class MadePart:
    """A part that is in the store. `unchanged` says that it was recognized by its key and not made again."""

    name: str
    object_id: str
    report: StageReport
    unchanged: bool


@dataclass(frozen=True)
class StageOutput:
    """What a stage returns: its parts by name, its counts and measures, and the sources that failed."""

    parts: Mapping[str, str]
    report: StageReport
    failures: Mapping[str, SourceError] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """Sentences that explain a measure to whoever is stopped by it."""


class StageContext(Protocol, Generic[P_co]):
    """What a stage may ask of its surroundings."""

    @property
    def params(self) -> P_co: ...

    @property
    def inputs(self) -> Mapping[str, str]:
        """The parts of the stage before: name -> object id, sorted by name."""
        ...

    @property
    def input_id(self) -> str | None:
        """The object id of the stage before; None for the first stage."""
        ...

    @property
    def pins(self) -> Sequence["SourcePin"]:
        """The slice that is built, sorted by name."""
        ...

    @property
    def withdrawn(self) -> Sequence["Selector"]:
        """What no corpus of the store may hold any more, sorted. Only collect reads it."""
        ...

    @property
    def held_out(self) -> frozenset[str]:
        """Names of the sources that are held out from training."""
        ...

    @property
    def corpus_params(self) -> Params:
        """The Params of the whole corpus. Only verify reads it: canaries run with the Params of the build beside them."""
        ...

    @property
    def store_root(self) -> Path:
        """Where the store lies. Only verify reads it, to point the consumer smoke run at it."""
        ...

    def upstream(self, stage: str) -> Mapping[str, str]:
        """The parts of an earlier stage of this build: name -> object id, sorted by name."""
        ...

    @property
    def offline(self) -> bool:
        """Whether the network must not be used."""
        ...

    def blob(self, sha256: str) -> Path | None:
        """Where the blob of that digest lies, or None."""
        ...

    def partial_blob(self, sha256: str) -> Path:
        """Where an interrupted download of that blob is kept and can be continued."""
        ...

    def put_blob(self, chunks: Iterable[bytes], sha256: str, subject: str) -> Path:
        """Store bytes as the blob `sha256`. Other bytes raise DigestError with both digests and are kept aside."""
        ...

    def named_blob(self, name: str) -> Path | None:
        """Where the blob lies that was given the name, such as `git/<commit>`, or None."""
        ...

    def name_blob(self, name: str, sha256: str) -> None:
        """Give a name to a blob of the store, so that it is found where its digest is not known beforehand."""
        ...

    def make(self, parts: Sequence[Part]) -> tuple[Mapping[str, MadePart], Mapping[str, SourceError]]:
        """Make parts side by side: those made, and the sources that failed with a SourceError. Any other error is raised."""
        ...

    def read(self, object_id: str) -> Tables:
        """Open an object for reading."""
        ...
