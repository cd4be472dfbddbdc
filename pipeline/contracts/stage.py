"""Stage: the declaration of one, its parts, the tables that these hold, and the reasons for which it drops a file.

All names of functions are texts, as `package.module:name`: what reads a declaration imports no stage.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.contracts.drop_reasons import DropReason
from pipeline.core import records
from pipeline.core.declared import load_declared
from pipeline.core.errors import StageError
from pipeline.core.params import Params
from pipeline.formats.snapshot_json import SNAPSHOT_KIND
from pipeline.lexing.languages import grammar_distributions

READING_ORDER = ("reading order",)
"""The order of a table whose rows are in the order of the documents that a stage before stored, and packed rows of their pieces."""
AUDIT = "audit"
"""Name of the part, and of the part function, that audits a stage."""
OF_THE_BUILD = ""
"""In place of a part function that is not the stage's: the build, which runs the stages, has it by its name."""


@dataclass(frozen=True)
class StageTable:
    """A table that other folders read: its file name, the record of its rows, and what `why` shows of a row.

    `shown` are SQL expressions over a row of the table; empty for a table that `why` does not look a path up in. Rows of
    DroppedRecord and DuplicateRecord leave the pipeline: `why`, the report and `diff` read each table of these two records.
    """

    name: str
    record: type
    shown: str = ""
    order: tuple[str, ...] = ()
    """The columns by which its rows ascend, or READING_ORDER; empty where the order is of no account."""
    made: tuple[str, ...] = ()
    """The columns of documents that the stage makes although the table before has some of the same names: all others are copied."""

    @property
    def lists_kept(self) -> bool:
        """True where its rows are what the parts keep: files or documents by path, or documents by id."""
        return bool(self.shown) or self.record is records.KeptDocument

    @property
    def lists_drops(self) -> bool:
        """True where its rows are dropped records."""
        return self.record in (records.DroppedRecord, records.DuplicateRecord)


@dataclass(frozen=True)
class PartKind:
    """The parts of one kind that a stage makes: one for each source, or a single one of the name `only`.

    The part functions, but those OF_THE_BUILD, are imported as `package.module:name` when they are needed. Their keys are in
    identities and never change; modules may move.

    `measure` is a function of a job and a PartOutput that returns the report of the part. It is apart from the part functions, so
    that canaries can alter an output and have it measured by the same code. A kind without one only measures its inputs.
    """

    kind: str
    functions: Mapping[str, str]
    tables: tuple[StageTable, ...] = ()
    only: str | None = None
    measure: str | None = None
    waits: bool = False
    """Another program does the work of its parts: a process that makes one waits for it."""
    reason_kept: str = ""
    """Reason that `why` reports for a document that no table of drops lists."""
    seconds: float = 0.0
    """Seconds of a part whose work does not grow with bytes, as those of FullSlice. Progress alone reads it."""

    @property
    def follows_files(self) -> bool:
        """True where its tables list what happened to files: such a kind is a step of `why` and of the report."""
        return any(table.shown or table.lists_drops for table in self.tables)


@dataclass(frozen=True)
class FullSlice:
    """Bytes that the parts of the sources of the full slice read of the store, and seconds of one core in which they are made.

    All are measured on one machine, so that what one stage took tells what the others take. Progress alone reads them.
    """

    num_bytes: float
    seconds: float


@dataclass(frozen=True, eq=False)  # one by its identity: its whole value is long to hash
class Stage:
    """The declaration of a stage. `libraries` are distributions whose version can change the output and is part of the identity.

    `run` and `params` are imported as `package.module:name` when they are needed.
    """

    name: str
    version: int
    description: str
    """Description of the asset in the Dagster UI."""
    params: str
    run: str
    parts: tuple[PartKind, ...]
    libraries: tuple[str, ...]
    uses_grammars: bool = False
    """The grammars of all languages are libraries too, those that a program has registered included."""
    asset_kinds: frozenset[str] = frozenset({"python"})
    """Tags of the asset in the Dagster UI."""
    drops: tuple[DropReason, ...] = ()
    """Reasons for which it drops a file, or keeps it as something less; those of its filters are in FILTERS."""
    of_full: FullSlice = FullSlice(50e6, 30.0)
    start_seconds: float = 0.5
    """Seconds in which its first parts are made, whatever they read: imports, machine code. Progress alone reads it."""

    @property
    def kind(self) -> str:
        """The kind of object that lists the stage's parts."""
        return f"{self.name}/stage"

    @property
    def audit(self) -> PartKind:
        """The kind of the part that reads the stored output again and compares it with that of the stage before."""
        return PartKind(f"{self.name}/audit", {AUDIT: OF_THE_BUILD}, only=AUDIT)

    @property
    def steps(self) -> Mapping[str, PartKind]:
        """The kinds of parts that say what became of a file, by the name of the step: the stage's, or that of a single part."""
        return {kind.only or self.name: kind for kind in self.parts if kind.follows_files}

    @property
    def reasons_of_copies(self) -> frozenset[str]:
        """The reasons for which it drops what is a copy or a part of another file that is kept."""
        return frozenset(drop.name for drop in self.drops if drop.is_copy)

    @property
    def passes_rows_on(self) -> bool:
        """True where it lists no files and composes no snapshot: the rows that it was given are those that it passes on."""
        return not self.steps and SNAPSHOT_KIND not in {kind.kind for kind in self.parts}

    def part_kind(self, function: str) -> PartKind:
        """Return the kind of the parts that a part function makes. Raises StageError for a function that is not declared."""
        kinds = (*self.parts, self.audit)
        for kind in kinds:
            if function in kind.functions:
                return kind
        declared = ", ".join(sorted(name for kind in kinds for name in kind.functions))
        raise StageError(f"stage {self.name}", f"it has no part function {function}", f"one of {declared}")

    def library_names(self) -> tuple[str, ...]:
        """Return the distributions that the output depends on now."""
        return (*self.libraries, *(grammar_distributions() if self.uses_grammars else ()))

    def params_class(self) -> type[Params]:
        """Import the class of the stage's Params."""
        found: type[Params] = load_declared(f"stage {self.name}", "params", self.params)
        return found
