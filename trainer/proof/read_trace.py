"""Read trace of one process: the rows of a snapshot that it reads, their infilling, and the losses of a model on them.

Two processes with the same options must have the same trace; `trainer.proof.verify_loader` compares them. Reading needs no torch.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pipeline.core.records import Split
from pipeline.store.snapshot import Snapshot
from trainer.config.training import recipe_named
from trainer.data.batch import Batch
from trainer.data.loader import Loader, LoaderConfig
from trainer.data.open_loader import open_loader


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


def observe(snapshot: Snapshot, options: TraceOptions) -> dict[str, Any]:
    """Read and train in this process, and return the trace.

    `triples`: split, source, row and the pieces in it. `rows`: digests of the row as it is stored and as the model
    sees it. `infillings`: source, epoch, row and the infilling of each piece. With steps also `parameters`, `losses` and
    the loader `state` after the last step; `states` holds the loader state at the first row.
    """
    recipe = recipe_named(options.recipe)
    config = LoaderConfig(seed=options.seed, infilling=recipe.infilling)
    loader = open_loader(snapshot, config, recipe.model.structure is not None)
    first = loader.position_of(json.loads(options.state)) if options.state else 0
    trace: dict[str, list[Any]] = {"triples": [], "rows": [], "infillings": []}
    for batch in _read(loader, first, options):
        for place, triple in enumerate(batch.row_origins):
            row = loader.sources[_place_of(loader, triple.source)].rows[triple.row]
            pieces = [f"{piece:016x}" for piece in row.piece_ids_P.tolist()]
            trace["triples"].append([str(Split.TRAIN), triple.source, triple.row, *pieces])
            trace["rows"].append([_digest(row.input_ids[0]), *_digests_of_row(batch, place)])
            trace["infillings"].append(list(triple))
    answer: dict[str, Any] = {name: values[: options.num_rows] for name, values in trace.items()}
    answer["states"] = [loader.state_at(first)]
    return answer | (_train(snapshot, options) if options.num_steps else {})


def _read(loader: Loader, first: int, options: TraceOptions) -> Iterator[Batch]:
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
    from trainer.checkpoint.checkpoint import digest_tensors
    from trainer.train.session import RunInputs
    from trainer.train.training_state import Training

    config = recipe_named(options.recipe)
    training = Training(snapshot.store, RunInputs(snapshot.snapshot_id, config, options.seed))
    parameters = digest_tensors(training.model.state_dict())
    for step in range(options.num_steps):
        training.step(training.loader.batch_at(step * config.batch_rows, config.batch_rows))
    state = training.loader.state_at(options.num_steps * config.batch_rows)
    losses = [float(loss).hex() for loss in training.history.losses]
    return {"parameters": [parameters], "losses": losses, "state": state}


def _place_of(loader: Loader, name: str) -> int:
    return next(place for place, source in enumerate(loader.sources) if source.name == name)


def _digests_of_row(batch: Batch, place: int) -> list[str]:
    return [_digest(array[place]) for array in batch.arrays]


def _digest(array: Any) -> str:
    return hashlib.blake2b(array.tobytes(), digest_size=16).hexdigest()
