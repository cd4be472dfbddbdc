"""Loader checks, in fresh processes: two read and compute the same, as the files have it, and a third resumes where one stopped.

The processes read with other batch sizes and worker counts, which must not change anything. The third gets nothing but the
loader state. Each prints its trace: the rows that it reads, their infilling, and the losses of a model on them. Reading needs no
torch.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.core.errors import TrainingError
from pipeline.core.records import Split
from pipeline.store.snapshot import Snapshot, open_snapshot
from pipeline.store.store import Store
from trainer.config.choices import EpochOrder
from trainer.config.training_config import training_recipe
from trainer.data.batch import Batch
from trainer.data.loader import Loader, LoaderConfig
from trainer.data.open_loader import open_loader
from trainer.proof.stored_places import judge_batches, judge_order, num_places, unread_sources
from trainer.proof.stored_rows import AS_STORED, content_digest, stored_rows, told_rows
from trainer.proof.stored_slots import NOT_JUDGED, StoredSlots, are_judged

_OTHER_BATCH_ROWS = 5


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """Extent of a trace: `num_rows` rows from a loader state, read `batch_rows` at a time; then `num_steps` steps."""

    num_rows: int = 1000
    num_steps: int = 0
    batch_rows: int = 8
    num_workers: int = 0
    seed: int = 42
    recipe: str = "tiny"
    state: str | None = None
    """Loader state to begin at, as JSON; None begins at the first row."""


@dataclass(frozen=True, slots=True)
class LoaderCheck:
    """Result of one check: how many values were compared, how many differed, and the first that did."""

    name: str
    num_compared: int
    num_differing: int
    first_difference: str = ""

    @property
    def passed(self) -> bool:
        """True where values were compared, and all were equal."""
        return self.num_compared > 0 and self.num_differing == 0


def verify_loader(store: Path, snapshot_id: str, options: TraceOptions) -> list[LoaderCheck]:
    """Run the nine checks; without steps, the seven of the loader alone. The order is judged of a trace from the first row on.

    Raises TrainingError with the last line of a process that failed.
    """
    snapshot = open_snapshot(Store(store), snapshot_id)
    first = _observe(store, snapshot_id, options)
    num_workers = 1 if options.num_steps else 0  # workers need torch; without steps, the checks run without it
    second = _observe(store, snapshot_id, replace(options, batch_rows=_OTHER_BATCH_ROWS, num_workers=num_workers))
    checks = [
        check_equal("first rows, as split, source, row and pieces", first["triples"], second["triples"]),
        check_equal("hashes of the rows, stored and as the model sees them", first["rows"], second["rows"]),
        check_equal("infilling of each piece", first["infillings"], second["infillings"]),
        check_equal(
            "rows as their files have them, once in an epoch", told_rows(first), list(stored_rows(snapshot, first))
        ),
        _check_slots(snapshot, first),
    ]
    if options.state is None:
        is_permuted = training_recipe(options.recipe).epoch_order is EpochOrder.PERMUTED
        found = judge_order(snapshot, first, is_permuted)
        found += [fault for trace in (first, second) for fault in judge_batches(snapshot, trace)]
        checks.append(check_equal("places: every row of every source, in its share", found, [AS_STORED] * len(found)))
    if options.num_steps:
        checks.append(check_equal("hash of the initial parameters", first["parameters"], second["parameters"]))
        checks.append(check_equal(f"losses of {options.num_steps} steps", first["losses"], second["losses"]))
    return [*checks, _resume(store, snapshot_id, options, first)]


def check_equal(name: str, left: Sequence[Any], right: Sequence[Any]) -> LoaderCheck:
    """Check that two lists are equal; elements that only one of them has differ."""
    pairs = list(zip_longest(left, right))
    differing = [place for place, (mine, theirs) in enumerate(pairs) if mine != theirs]
    difference = f"number {differing[0]}: {pairs[differing[0]][0]} and {pairs[differing[0]][1]}" if differing else ""
    return LoaderCheck(name, len(pairs), len(differing), difference)


def _resume(store: Path, snapshot_id: str, options: TraceOptions, whole: Mapping[str, Any]) -> LoaderCheck:
    """Resume in the middle of the rows of the first process, or after its last step if that is earlier."""
    start = len(whole["infillings"]) // 2
    if options.num_steps and int(whole["state"]["position"]) < len(whole["infillings"]):
        start = int(whole["state"]["position"])
    state = whole["states"][0] | {"position": start}
    later = replace(options, num_rows=options.num_rows - start, num_steps=0, batch_rows=3, state=json.dumps(state))
    found = _observe(store, snapshot_id, later)
    wanted = {name: whole[name][start:] for name in ("triples", "infillings")}
    return check_equal(
        f"resumed at row {start}: row, source, split and infilling",
        list(zip(wanted["triples"], wanted["infillings"], strict=True)),
        list(zip(found["triples"], found["infillings"], strict=True)),
    )


def _check_slots(snapshot: Snapshot, trace: Mapping[str, Any]) -> LoaderCheck:
    """Check the slots of the first rows of each source, and of one row of each source that the trace does not reach."""
    judged = are_judged(source for _, source, *_ in trace["triples"])
    unread = unread_sources(snapshot, trace) if "unread" in trace else []
    told = [*trace["slots"], *(trace["unread"].get(name, NOT_JUDGED) for name in unread)]
    return check_equal(
        "slots as their files have them, infilling undone",
        told,
        [AS_STORED if each else NOT_JUDGED for each in judged] + [AS_STORED] * len(unread),
    )


def _observe(store: Path, snapshot_id: str, options: TraceOptions) -> dict[str, Any]:
    """Return the trace of a fresh process. The arguments are named as the options are."""
    line = [sys.executable, "-m", "trainer", "observe", f"--store={store}", f"--snapshot={snapshot_id}", "--json"]
    given = {name.removeprefix("num_").replace("_", "-"): value for name, value in asdict(options).items()}
    line += [f"--{name}={value}" for name, value in given.items() if value is not None]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        last_line = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise TrainingError("a process that reads the snapshot", f"exit {done.returncode}: {last_line}", "exit 0")
    trace: dict[str, Any] = json.loads(done.stdout)
    return trace


def observe(snapshot: Snapshot, options: TraceOptions) -> dict[str, Any]:
    """Read and train in this process, and return the trace.

    Rows stand in the order of their places, whatever the batches are: in each of them commits of a file are sorted.
    `triples`: split, source, row and the pieces in it. `rows`: digests of the row as it is stored and as the model
    sees it. `contents`: a digest of the ids that the model sees, in ascending order. `slots`: what is wrong with the row as
    the model sees it. `infillings`: source, epoch, row and the infilling of each piece. `order`: source, epoch and row of
    each place; `batches`: the same of the rows of each batch, as it has them. If the trace begins at the first row, the order
    is of two epochs, and `unread`, as `slots`, of a row of each source that is not among the rows. With steps also
    `parameters`, `losses` and the loader `state` after the last step; `states` holds the loader state at the first row.
    """
    recipe = training_recipe(options.recipe)
    config = LoaderConfig(seed=options.seed, epoch_order=recipe.epoch_order, infilling=recipe.infilling)
    loader = open_loader(snapshot, config, recipe.model.structure is not None)
    sources = {source.name: source.rows for source in loader.sources}
    first = loader.position_of(json.loads(options.state)) if options.state else 0
    specials = snapshot.vocabulary["specials"].values()
    trace: dict[str, list[Any]] = {"triples": [], "rows": [], "contents": [], "slots": [], "infillings": []}
    slots = StoredSlots(snapshot)
    batches = []
    for batch in _iterate_batches(loader, first, options):
        origins = batch.row_origins
        batches.append([triple[:3] for triple in origins])
        for place in _by_place(loader, batch):
            triple = origins[place]
            row = sources[triple.source][triple.row]
            pieces = [f"{piece:016x}" for piece in row.piece_ids_P.tolist()]
            trace["triples"].append([str(Split.TRAIN), triple.source, triple.row, *pieces])
            arrays = (row.input_ids[0], *(array[place] for array in batch.arrays))
            trace["rows"].append([hashlib.blake2b(each.tobytes(), digest_size=16).hexdigest() for each in arrays])
            trace["contents"].append(content_digest(batch.input_ids_BT[place], specials))
            trace["slots"].append(slots.judge(triple.source, triple.row, (array[place] for array in batch.arrays)))
            trace["infillings"].append(list(triple))
    found: dict[str, Any] = {name: values[: options.num_rows] for name, values in trace.items()}
    least = options.num_rows + options.batch_rows
    order = _order(loader, first, least if options.state else num_places(snapshot, least))
    found |= {"order": order, "batches": batches}
    if not options.state:
        read = {source for source, *_ in found["infillings"]}
        found["unread"] = dict(_judge_unread(loader, order["sources"], slots, read))
    return found | {"states": [loader.state_at(first)]} | (_train(snapshot, options) if options.num_steps else {})


def _by_place(loader: Loader, batch: Batch) -> list[int]:
    """Return the rows of a batch in the order of their places; one that is of none of them stays where it is."""
    sources, epochs, rows = (column.tolist() for column in loader.locate(batch.position, len(batch.input_ids_BT)))
    names = [loader.sources[source].name for source in sources]
    places = {triple: place for place, triple in enumerate(zip(names, epochs, rows, strict=True))}
    origins = batch.row_origins
    return sorted(range(len(origins)), key=lambda row: places.get(tuple(origins[row][:3]), row))


def _order(loader: Loader, first: int, number: int) -> dict[str, Any]:
    columns = zip(("sources", "epochs", "rows"), loader.locate(first, number), strict=True)
    return {"names": [source.name for source in loader.sources]} | {name: column.tolist() for name, column in columns}


def _judge_unread(
    loader: Loader, sources: Sequence[int], slots: StoredSlots, read: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Iterate over the sources that are not read yet, and the judgment of the first row of each."""
    for place in sorted(np.unique(sources, return_index=True)[1].tolist()):
        if loader.sources[sources[place]].name not in read:
            batch = loader.batch_at(place, 1)
            source, _, row, _ = batch.row_origins[0]
            yield source, slots.judge(source, row, (array[0] for array in batch.arrays))


def _iterate_batches(loader: Loader, first: int, options: TraceOptions) -> Iterator[Batch]:
    last = first + options.num_rows
    if options.num_workers == 0:
        for position in range(first, last, options.batch_rows):
            yield loader.batch_at(position, options.batch_rows)
        return
    from trainer.data.prefetch import Batches

    for batch in Batches(loader, options.batch_rows, options.num_workers, first):
        yield batch
        if batch.next_position >= last:
            return


def _train(snapshot: Snapshot, options: TraceOptions) -> dict[str, Any]:
    from trainer.checkpoint.tensor_files import digest_tensors
    from trainer.train.session import RunInputs
    from trainer.train.training_state import Training

    config = training_recipe(options.recipe)
    training = Training(snapshot.store, RunInputs(snapshot.snapshot_id, config, options.seed))
    parameters = digest_tensors(training.model.state_dict())
    for step in range(options.num_steps):
        training.step(training.loader.batch_at(step * config.batch_rows, config.batch_rows))
    state = training.loader.state_at(options.num_steps * config.batch_rows)
    losses = [float(loss).hex() for loss in training.history.losses]
    return {"parameters": [parameters], "losses": losses, "state": state}
