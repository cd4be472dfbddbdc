"""FileRows: where the tokens of a file went: its rows and slots, and the runs whose weights they have shaped, by step and epoch."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeline.core.errors import MissingError
from pipeline.core.records import Split
from pipeline.core.table_names import DOCUMENTS
from pipeline.formats.tables import find_rows
from pipeline.lineage.origins.token_places import PlacedPiece, RowsOfSource
from pipeline.lineage.origins.trainer_answer import trainer_answer
from pipeline.lineage.stored_build import StoredBuild
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
    """A run whose newest checkpoint was shaped by the snapshot. `reads` are those of the rows: row, step and epoch.

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
class FileRows:
    """Everything that is known of where a file's tokens went."""

    source: str
    path: str
    document_id: str
    split: str
    rows: tuple[RowOfFile, ...]
    runs: tuple[RunReader, ...]
    build: Mapping[str, Any]


def rows_of_file(build: StoredBuild, source: str, path: str) -> FileRows:
    """Find the rows that hold a file in a build, and the runs that read them. Raises MissingError for a file that is in no row."""
    documents = build.part(stage_with(DOCUMENTS).name, source)
    found = find_rows(documents.paths(DOCUMENTS), "path", path)
    split = Split(found[0]["split"]) if found else Split.TRAIN
    rows = RowsOfSource(build, source, split)
    pieces = rows.pieces(found[0]["document_id"]) if found else []
    if not pieces:
        raise _in_no_row(build, source, path)
    runs = list(_runs(build.store, rows.snapshot.snapshot_id))
    if split is Split.TRAIN:
        runs = _with_reads(build.store, rows.snapshot.snapshot_id, runs, pieces)
    placed = [
        RowOfFile(str(piece.row), piece.index, piece.first_slot, piece.num_slots, piece.num_tokens) for piece in pieces
    ]
    return FileRows(source, path, pieces[0].document_id, split, tuple(placed), tuple(runs), build.facts())


def _in_no_row(build: StoredBuild, source: str, path: str) -> MissingError:
    last = why(build.store, build.corpus, source, path, build.of).steps[-1]
    gone = (
        f"{last.stage} dropped it: {last.reason}"
        if last.verdict == "dropped"
        else "it is license evidence, no document"
    )
    of = f" --of {build.of}" if build.of else ""
    remedy = f"Run `python -m pipeline why {source} {path} --corpus {build.corpus}{of}` for the evidence."
    return MissingError(f"{source}/{path}", f"it is in no row: {gone}", "", remedy)


def _runs(store: Store, snapshot_id: str) -> Iterator[RunReader]:
    """Yield the runs whose newest checkpoint a snapshot has shaped, sorted by name."""
    for corpus in sorted(store.corpora()):
        newest = store.ref(corpus, "latest") if corpus.startswith(f"{RUNS}/") else None
        if newest is None or store.locate(newest) is None:
            continue
        manifest = store.read(newest).manifest
        labels = [label for label, name in manifest.inputs.items() if name == snapshot_id]
        if labels:
            is_by_ancestor = all(label.startswith(ANCESTOR) for label in labels)
            yield RunReader(corpus.removeprefix(f"{RUNS}/"), newest, int(manifest.identity["step"]), is_by_ancestor)


def _with_reads(
    store: Store, snapshot_id: str, runs: Sequence[RunReader], pieces: Sequence[PlacedPiece]
) -> list[RunReader]:
    """Return the runs with the steps and epochs in which they read the rows of some pieces."""
    own = [f"--checkpoint={run.checkpoint_id}" for run in runs if not run.is_by_ancestor]
    if not own:
        return list(runs)
    names = {piece.row.pack_id: str(piece.row) for piece in pieces}
    answers = trainer_answer(store, "reads", f"--snapshot={snapshot_id}", *own, *names.values())
    by_id = {answer["checkpoint_id"]: answer for answer in answers}
    found = []
    for run in runs:
        answer = by_id.get(run.checkpoint_id, {"reads": [], "first_known_step": run.first_known_step})
        reads = tuple(
            {"row": names[read["pack_id"]], "step": read["step"], "epoch": read["epoch"]} for read in answer["reads"]
        )
        found.append(replace(run, reads=reads, first_known_step=answer["first_known_step"]))
    return found
