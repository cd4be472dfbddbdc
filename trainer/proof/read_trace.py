"""What one process sees of a snapshot: which rows it reads, what becomes of them, and what a model makes of them.

Two processes that were told the same must see the same; `trainer.proof.verify_loader` compares them. Reading needs no torch.
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
class Sight:
    """What to look at: `num_rows` rows from a loader state on, read `batch_rows` at a time; then `num_steps` steps."""

    num_rows: int = 1000
    num_steps: int = 0
    batch_rows: int = 8
    num_workers: int = 0
    seed: int = 42
    recipe: str = "tiny"
    state: str | None = None
    """A loader's state as JSON: where to begin. The beginning unless given."""


def observe(snapshot: Snapshot, sight: Sight) -> dict[str, Any]:
    """What this process sees.

    `triples`: split, source, row and the pieces in it. `rows`: digests of the row as it is stored and as the model
    sees it. `infillings`: source, epoch, row and what becomes of each piece. With steps also `parameters`, `losses` and
    the loader `state` behind the last step; `states` is where the reading began.
    """
    recipe = recipe_named(sight.recipe)
    config = LoaderConfig(seed=sight.seed, infilling=recipe.infilling)
    loader = open_loader(snapshot, config, recipe.model.structure is not None)
    first = loader.position_of(json.loads(sight.state)) if sight.state else 0
    seen: dict[str, list[Any]] = {"triples": [], "rows": [], "infillings": []}
    for batch in _read(loader, first, sight):
        for place, triple in enumerate(batch.row_origins):
            row = loader.sources[_place_of(loader, triple.source)].rows[triple.row]
            pieces = [f"{piece:016x}" for piece in row.piece_ids_P.tolist()]
            seen["triples"].append([str(Split.TRAIN), triple.source, triple.row, *pieces])
            seen["rows"].append([_digest(row.input_ids[0]), *_digests_of_row(batch, place)])
            seen["infillings"].append(list(triple))
    answer: dict[str, Any] = {name: values[: sight.num_rows] for name, values in seen.items()}
    answer["states"] = [loader.state_at(first)]
    return answer | (_train(snapshot, sight) if sight.num_steps else {})


def _read(loader: Loader, first: int, sight: Sight) -> Iterator[Batch]:
    last = first + sight.num_rows
    if sight.num_workers == 0:
        for position in range(first, last, sight.batch_rows):
            yield loader.batch_at(position, sight.batch_rows)
        return
    from trainer.data.prefetch import Batches

    for batch in Batches(loader, sight.batch_rows, sight.num_workers, first):
        yield batch
        if batch.next_position >= last:
            return


def _train(snapshot: Snapshot, sight: Sight) -> dict[str, Any]:
    from trainer.checkpoint.checkpoint import digest_tensors
    from trainer.train.session import RunInputs
    from trainer.train.training_state import Training

    config = recipe_named(sight.recipe)
    training = Training(snapshot.store, RunInputs(snapshot.snapshot_id, config, sight.seed))
    parameters = digest_tensors(training.model.state_dict())
    for step in range(sight.num_steps):
        training.step(training.loader.batch_at(step * config.batch_rows, config.batch_rows))
    state = training.loader.state_at(sight.num_steps * config.batch_rows)
    losses = [float(loss).hex() for loss in training.history.losses]
    return {"parameters": [parameters], "losses": losses, "state": state}


def _place_of(loader: Loader, name: str) -> int:
    return next(place for place, source in enumerate(loader.sources) if source.name == name)


def _digests_of_row(batch: Batch, place: int) -> list[str]:
    return [_digest(array[place]) for array in batch.arrays]


def _digest(array: Any) -> str:
    return hashlib.blake2b(array.tobytes(), digest_size=16).hexdigest()
