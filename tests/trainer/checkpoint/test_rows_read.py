"""The rows that a checkpoint says its run has read are what the batches of the run held, slot by slot."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from pipeline.core.errors import MissingError, TrainingError
from pipeline.core.records import Split
from pipeline.core.table_names import TRAINING_ROWS
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from tests.support.made.made_checkpoints import made, put
from trainer.checkpoint.rows_read import RowRead, RowsRead
from trainer.config.training_config import TrainingConfig, training_recipe
from trainer.data.batch import Batch
from trainer.data.loader import LoaderConfig
from trainer.data.row_selection import RowSelection
from trainer.data.small_snapshot import copy_snapshot, shorten
from trainer.train.run_data import Adoption, RunData

SEED, NUM_STEPS = 7, 9
SPECIALS = 16
INFILLING = frozenset({3, 4, 5})
"""Ids of the tokens that stand before the parts of an infilled row."""
"""Ids below are of special tokens."""


class Run(NamedTuple):
    """A run that was stepped through: its checkpoint, and the batch and the snapshot of each step."""

    store: Store
    checkpoint_id: str
    batches: list[Batch]
    snapshots: list[str]
    mixture: tuple[str, ...]


def _config(**changes: Any) -> TrainingConfig:
    infilling = {"rate": 0.8, "spm_rate": 0.5}
    fields = training_recipe("tiny").model_dump(mode="json") | {"infilling": infilling, "batch_rows": 4} | changes
    return TrainingConfig.model_validate(fields)


def _stepped(data: RunData, sizes: list[int], adopted: dict[int, str]) -> Iterator[tuple[Batch, str]]:
    """Yield the batch of each step as a training reads it, and the snapshot; `adopted` are those of the end of a step."""
    position = 0
    for step, size in enumerate(sizes, 1):
        batch = data.loader.batch_at(position, size)
        yield batch, data.snapshot.snapshot_id
        position = batch.next_position
        if step in adopted:
            data.adopt(Adoption(position, data.snapshot.snapshot_id, adopted[step]))


@pytest.fixture(scope="module", params=["adopted", "other batches", "mixture", "selected mixture", "selection"])
def run(request: pytest.FixtureRequest, tiny_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs over a short snapshot, whose epochs end within the steps."""
    live = tiny_store.ref("tiny", "live") or ""
    store = copy_snapshot(tiny_store, live, tmp_path_factory.mktemp("read") / "store")
    first, second = (shorten(store, live, number) for number in (5, 3))
    config, sizes, adopted, more = _config(), [4] * NUM_STEPS, {}, {}
    forks: list[dict[str, Any]] = []
    if request.param == "adopted":
        adopted = {5: second}
    elif request.param == "other batches":
        config, sizes = _config(batch_rows=2), [4] * 3 + [2] * (NUM_STEPS - 3)
        forks = [{"step": 3, "fields": {"config.batch_rows": [4, 2]}}]
    elif request.param in ("mixture", "selected mixture"):
        more = {"mixture": {first: 1.0, second: 2.0}}
        more |= {"selection": {"only": {"source": ["lantern"]}}} if request.param == "selected mixture" else {}
    else:
        more = {"selection": {"mix": {"source": {"lantern": 0.7, "odds": 0.3}}}}
    inputs = {"snapshot_id": min(first, second) if more.get("mixture") else first, **more}
    mixture = tuple(sorted(more.get("mixture", {}).items()))
    selection = RowSelection.of_identity(more.get("selection", {}))
    loader_config = LoaderConfig(seed=SEED, epoch_order=config.epoch_order, infilling=config.infilling)
    data = RunData(open_snapshot(store, inputs["snapshot_id"]), mixture, loader_config, selection=selection)
    batches, snapshots = zip(*_stepped(data, sizes, adopted), strict=True)
    identity = {"config": config.model_dump(mode="json"), "seed": SEED, **inputs}
    adoptions = [adoption._asdict() for adoption in data.adoptions]
    state = data.loader.state_at(sum(sizes))
    checkpoint = replace(made(NUM_STEPS), identity=identity, forks=forks, adoptions=adoptions, loader=state)
    return Run(store, put(store, checkpoint), list(batches), list(snapshots), tuple(name for name, _ in mixture))


def _snapshot_of(run: Run, step: int, name: str) -> tuple[str, str]:
    """Return the snapshot of a source of a batch, and its own name: in a mixture of snapshots their ids begin it."""
    parts = name.split("/")
    snapshots = [each for each in (run.mixture if len(parts) > 1 else ()) if each.startswith(parts[0])]
    return (snapshots[0], parts[1]) if snapshots else (run.snapshots[step - 1], parts[0])


def test_every_slot_of_every_batch_is_found_once_in_its_stored_row(run: Run) -> None:
    read, forms = RowsRead(run.store, run.checkpoint_id), set()
    for step, batch in enumerate(run.batches, 1):
        for row, origin in enumerate(batch.row_origins):
            if row % 2 != step % 2 and INFILLING & set(batch.input_ids_BT[row].tolist()):
                continue  # every second row, and all those without infilling, which are few
            found = []
            for slot, token_id in enumerate(batch.input_ids_BT[row].tolist()):
                if batch.doc_ids_BT[row, slot] < 0 or token_id in INFILLING:
                    with pytest.raises(MissingError, match=r"it is (padding|<\|fim_)"):
                        read.token(step, row, slot)
                    continue
                found.append(read.token(step, row, slot))
                assert found[-1].token_id == token_id
            snapshot_id, source = _snapshot_of(run, step, origin.source)
            assert {each.snapshot_id for each in found} == {snapshot_id}
            assert {each.epoch for each in found} == {origin.epoch}
            (name,) = {each.row for each in found}
            assert name.startswith(f"{source}/train/")
            parts = open_snapshot(run.store, snapshot_id)
            stored_id = next(each.rows for each in parts.sources if each.name == source)
            table = run.store.read(stored_id).table(TRAINING_ROWS[Split.TRAIN])
            stored = table["input_ids"][int(name.rpartition("/")[2])].as_py()
            assert sorted(each.slot for each in found) == list(range(len(found)))
            assert [stored[each.slot] for each in found] == [each.token_id for each in found]
            assert not any(stored[len(found) :])  # padding
            forms.update(each.infilling.partition(":")[0] for each in found)
    assert forms == {"plain", "psm", "spm"}


def test_every_read_of_a_row_is_found_with_its_step_and_epoch(run: Run) -> None:
    expected: dict[tuple[str, str], list[RowRead]] = {}
    read = RowsRead(run.store, run.checkpoint_id)
    for step, batch in enumerate(run.batches, 1):
        for row, origin in enumerate(batch.row_origins):
            name = read.token(step, row, 0).row
            each = RowRead(int(name.rpartition("/")[2]), step, origin.epoch)
            expected.setdefault(_snapshot_of(run, step, origin.source), []).append(each)

    for (snapshot_id, source), reads in expected.items():
        assert read.reads(snapshot_id, source, range(5)) == sorted(reads, key=lambda each: (each.step, each.pack_id))
        first = reads[0].pack_id
        alone = read.reads(snapshot_id, source, [first])
        assert {each.pack_id for each in alone} == {first}
    assert read.reads("0" * 64, "lantern", range(5)) == []


def test_a_place_that_the_run_has_not_read_is_refused_in_words(run: Run) -> None:
    read, size = RowsRead(run.store, run.checkpoint_id), len(run.batches[0].row_origins)

    for step in (0, NUM_STEPS + 1):
        with pytest.raises(MissingError, match=f"expected 1 to {NUM_STEPS}"):
            read.token(step, 0, 0)
    with pytest.raises(MissingError, match=f"the batch has {size} rows; expected 0 to {size - 1}"):
        read.token(1, size, 0)
    with pytest.raises(MissingError, match=r"a row has [0-9]+ slots"):
        read.token(1, 0, 100_000)


def test_steps_before_a_resume_with_other_rows_are_not_told(run: Run) -> None:
    stored = RowsRead(run.store, run.checkpoint_id)._place
    fork = {"step": 4, "fields": {"snapshot_id": ["0" * 64, stored.identity["snapshot_id"]]}}
    checkpoint = replace(
        made(NUM_STEPS),
        identity=stored.identity,
        forks=[*stored.forks, fork],
        adoptions=stored.adoptions,
        loader=stored.loader,
    )
    read = RowsRead(run.store, put(run.store, checkpoint))

    with pytest.raises(TrainingError, match=r"resumed after step 4 with other rows.*checkpoints list"):
        read.token(4, 0, 0)
    assert read.token(5, 0, 0) == replace(
        RowsRead(run.store, run.checkpoint_id).token(5, 0, 0), checkpoint_id=read.checkpoint_id
    )
    assert read.first_known_step == 5


def test_rows_that_this_program_draws_in_another_order_are_not_told(run: Run) -> None:
    stored = RowsRead(run.store, run.checkpoint_id)._place
    loader = dict(stored.loader) | {"mixture": "0" * 64}
    other = replace(made(NUM_STEPS), identity=stored.identity, adoptions=stored.adoptions, loader=loader)
    read = RowsRead(run.store, put(run.store, other))

    with pytest.raises(TrainingError, match=r"its mixture is 0{64}; expected [0-9a-f]{64}, which this program draws"):
        read.token(1, 0, 0)
