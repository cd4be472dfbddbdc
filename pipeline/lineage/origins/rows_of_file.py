"""FileRows: where the tokens of a file went: its rows and slots, and the runs whose weights they have shaped, by step and epoch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pipeline.build.stage_objects import parts_of
from pipeline.build.withdrawal import withdrawal_lines
from pipeline.core.command_line import shell_command
from pipeline.core.errors import MissingError, SnapshotError, StoreError
from pipeline.core.records import Split
from pipeline.core.table_names import DOCUMENTS
from pipeline.formats.tables import find_rows
from pipeline.lineage.origins.token_places import PlacedPiece, RowsOfSource
from pipeline.lineage.origins.trainer_answer import trainer_answer
from pipeline.lineage.stored_build import StoredBuild, stored_build
from pipeline.lineage.why import why
from pipeline.stages.stages import stage_with
from pipeline.store.store import Store
from pipeline.store.store_layout import ANCESTOR, RUNS


@dataclass(frozen=True)
class RowOfFile:
    """A row that holds a piece of the file: its first slot there, which is BOS, its slots, and the tokens of its text."""

    row: str
    piece: int
    first_slot: int
    num_slots: int
    num_tokens: int


@dataclass(frozen=True)
class RunReader:
    """A run whose newest checkpoint was shaped by a snapshot. `reads` are those of the rows: row, step and epoch.

    `is_by_ancestor`: the weights that it began with were shaped by it; the steps of an earlier run are told by its own checkpoints.
    Of steps before `first_known_step` the checkpoint does not tell the rows.
    """

    run: str
    checkpoint_id: str
    step: int
    is_by_ancestor: bool
    reads: tuple[Mapping[str, Any], ...] = ()
    first_known_step: int = 1


@dataclass(frozen=True)
class SnapshotRows:
    """The rows of a file in one snapshot, and the runs that read that."""

    snapshot_id: str
    document_id: str
    split: str
    rows: tuple[RowOfFile, ...]
    runs: tuple[RunReader, ...]


@dataclass(frozen=True)
class FileRows:
    """Everything that is known of where a file's tokens went: in the build, and in other snapshots that runs have read."""

    source: str
    path: str
    snapshots: tuple[SnapshotRows, ...]
    """That of the build first, unless the file is in none of its rows, which `missing` tells."""
    missing: str
    left_out: tuple[str, ...]
    """Snapshots that runs have read of which the store cannot tell the rows, with the reason."""
    withdrawn: tuple[str, ...]
    build: Mapping[str, Any]


class _Placed(NamedTuple):
    snapshot_id: str
    split: Split
    pieces: Sequence[PlacedPiece]
    sha256: str


def rows_of_file(build: StoredBuild, source: str, path: str) -> FileRows:
    """Find the rows that hold a file in a build, and the runs that read them.

    Where no name of a build was given, every other snapshot that a run has read is asked too. Raises MissingError for a
    file that is in no row.
    """
    missing, left_out, error = "", list[str](), None
    try:
        placed = _placed(build, source, path)
    except MissingError as absent:  # it has composed no snapshot
        placed, error = None, absent
    readers = _readers(build.store)
    found = [] if placed is None else [placed]
    for snapshot_id in sorted(readers.keys() - {build.snapshot_id}) if build.of is None else ():
        try:
            other = _placed(stored_build(build.store, build.corpus, snapshot_id), source, path)
        except (SnapshotError, StoreError) as reason:
            names = ", ".join(reader.run for reader in readers[snapshot_id])
            left_out.append(f"snapshot {snapshot_id[:12]}, which {names} has read: {reason}")
        else:
            found += [] if other is None else [other]
    if placed is None:
        error = error or _in_no_row(build, source, path)
        if not found:
            raise error
        missing = str(error)
    runs = _with_reads(build.store, found, readers)
    snapshots = tuple(_rows(each, runs[each.snapshot_id]) for each in found)
    withdrawn = withdrawal_lines(build.store, source, path, *(each.sha256 for each in found))
    return FileRows(source, path, snapshots, missing, tuple(left_out), withdrawn, build.facts())


def _placed(build: StoredBuild, source: str, path: str) -> _Placed | None:
    """Find the pieces of a file in the rows of a build; None where it is in none of them."""
    stage = stage_with(DOCUMENTS).name
    if source not in parts_of(build.stage(stage)):
        return None
    found = find_rows(build.part(stage, source).paths(DOCUMENTS), "path", path, ("document_id", "split", "blob_sha256"))
    if not found:
        return None
    split = Split(found[0]["split"])
    rows = RowsOfSource(build, source, split)
    pieces = rows.pieces(found[0]["document_id"])
    return _Placed(rows.snapshot.snapshot_id, split, pieces, found[0]["blob_sha256"]) if pieces else None


def _rows(placed: _Placed, runs: Sequence[RunReader]) -> SnapshotRows:
    rows = [
        RowOfFile(str(piece.row), piece.index, piece.first_slot, piece.num_slots, piece.num_tokens)
        for piece in placed.pieces
    ]
    return SnapshotRows(placed.snapshot_id, placed.pieces[0].document_id, placed.split, tuple(rows), tuple(runs))


def _in_no_row(build: StoredBuild, source: str, path: str) -> MissingError:
    last = why(build.store, build.corpus, source, path, build.of).steps[-1]
    gone = (
        f"{last.stage} dropped it: {last.reason}"
        if last.verdict == "dropped"
        else "it is license evidence, no document"
    )
    ask = shell_command(
        "pipeline why", source, path, corpus=build.corpus, of=build.of, store=build.store.storage.address
    )
    remedy = f"Run `{ask}` for the evidence."
    return MissingError(f"{source}/{path}", f"it is in no row: {gone}", "", remedy)


def _readers(store: Store) -> dict[str, list[RunReader]]:
    """Return the runs whose newest checkpoint a snapshot has shaped, sorted by name, by the id of the snapshot."""
    found: dict[str, list[RunReader]] = {}
    for corpus in sorted(store.corpora()):
        newest = store.ref(corpus, "latest") if corpus.startswith(f"{RUNS}/") else None
        if newest is None or store.locate(newest) is None:
            continue
        manifest = store.read(newest).manifest
        if "step" not in manifest.identity:  # a ref that names no checkpoint
            continue
        for snapshot_id in sorted(set(manifest.inputs.values())):
            labels = [label for label, name in manifest.inputs.items() if name == snapshot_id]
            is_by_ancestor = all(label.startswith(ANCESTOR) for label in labels)
            reader = RunReader(corpus.removeprefix(f"{RUNS}/"), newest, int(manifest.identity["step"]), is_by_ancestor)
            found.setdefault(snapshot_id, []).append(reader)
    return found


def _with_reads(
    store: Store, found: Sequence[_Placed], readers: Mapping[str, Sequence[RunReader]]
) -> dict[str, list[RunReader]]:
    """Return the runs that were shaped by each snapshot, with the steps and epochs in which they read the rows of the file."""
    runs = {each.snapshot_id: list(readers.get(each.snapshot_id, ())) for each in found}
    read = [each for each in found if each.split is Split.TRAIN]
    own = sorted({run.checkpoint_id for each in read for run in runs[each.snapshot_id] if not run.is_by_ancestor})
    if not own:
        return runs
    names = sorted({f"{piece.row}@{each.snapshot_id}" for each in read for piece in each.pieces})
    answers = trainer_answer(store, "reads", *(f"--checkpoint={name}" for name in own), *names)
    by_id = {answer["checkpoint_id"]: answer for answer in answers}
    for each in read:
        rows = {piece.row.pack_id: str(piece.row) for piece in each.pieces}
        for place, run in enumerate(runs[each.snapshot_id]):
            if run.is_by_ancestor:
                continue
            answer = by_id[run.checkpoint_id]
            reads = tuple(
                {"row": rows[one["pack_id"]], "step": one["step"], "epoch": one["epoch"]}
                for one in answer["reads"]
                if one["snapshot_id"] == each.snapshot_id
            )
            known = replace(run, reads=reads, first_known_step=answer["first_known_step"])
            runs[each.snapshot_id][place] = known
    return runs
