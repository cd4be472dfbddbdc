"""The record that a resumed run repeats: of the run itself, else of the one that it branched from, as far as that has decided."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline.core.errors import TrainingError
from pipeline.store.store import Store
from tests.support.made.made_checkpoints import made
from trainer.checkpoint.adoption_record import AdoptionRecord, ResumedPlace, find_record, mark_record
from trainer.checkpoint.checkpoint import save

FIRST = {"position": 8, "old": "a" * 64, "new": "b" * 64}
SECOND = {"position": 16, "old": "b" * 64, "new": "c" * 64}


def write(store: Store, run: str, step: int, *adoptions: dict[str, Any], **fields: Any) -> str:
    checkpoint = replace(made(step), adoptions=list(adoptions), **fields)
    with store.writer(f"runs/{run}", "a test") as scratch:
        saved = save(store, scratch, checkpoint)
    store.move_ref(f"runs/{run}", "latest", store.ref(f"runs/{run}", "latest"), saved, f"step {step}")
    return saved


def place(run: str, checkpoint_id: str, step: int, *adoptions: dict[str, Any], **fields: Any) -> ResumedPlace:
    """At a step of the run that `made` makes."""
    of_step = made(step)
    more = {"identity": of_step.identity, "history": of_step.history, "position": 4 * step} | fields
    return ResumedPlace(run=run, checkpoint_id=checkpoint_id, adoptions=adoptions, **more)


@pytest.fixture
def first(store: Store) -> str:
    """The checkpoint of step 1, from which run r has gone on to step 3, adopting once."""
    saved = write(store, "r", 1)
    write(store, "r", 3, FIRST)
    return saved


def record_of(found: AdoptionRecord | None) -> tuple[str, int, list[Any]] | None:
    return found and (found.run, found.position, list(found.adoptions))


def test_the_run_of_the_checkpoint_tells_what_it_adopted_since(store: Store, first: str) -> None:
    expected = ("r", 12, [FIRST])
    assert record_of(find_record(store, place("r", first, 1))) == expected
    assert record_of(find_record(store, place("other", first, 1))) == expected
    assert find_record(store, place("other", "", 0)) is None, "a new run"
    newest = store.ref("runs/r", "latest") or ""
    assert find_record(store, place("other", newest, 3, FIRST)) is None, "nothing was decided after the newest"


def test_a_run_that_branched_repeats_until_it_has_decided_further_itself(store: Store, first: str) -> None:
    record = find_record(store, place("other", first, 1))
    assert record is not None
    mark_record(store, "other", record.checkpoint_id)
    second = write(store, "other", 2, FIRST)
    write(store, "r", 5, FIRST, SECOND)  # later than the branch
    assert record_of(find_record(store, place("other", second, 2, FIRST))) == ("other", 12, [FIRST])
    write(store, "other", 6, FIRST)
    assert record_of(find_record(store, place("other", second, 2, FIRST))) == ("other", 24, [FIRST])
    mark_record(store, "other", None)
    assert store.ref("runs/other", "repeated") is None


def test_a_run_with_other_batches_since_a_fork_repeats_too(store: Store, first: str) -> None:
    mark_record(store, "other", store.ref("runs/r", "latest"))
    forked = made(2, moved=1).history
    forked.extend(b"\7" * 32, 1.0, False, None)
    at_fork = {"history": forked, "position": 7, "forks": [{"step": 1, "fields": {}}]}
    assert record_of(find_record(store, place("other", "f" * 64, 2, **at_fork))) == ("other", 12, [FIRST])
    assert find_record(store, place("other", "f" * 64, 2, **{**at_fork, "forks": []})) is None


@pytest.mark.parametrize(
    "change",
    [
        {"identity": {**made(1).identity, "snapshot_id": "d" * 64}},
        {"history": replace(made(1).history, data=b"0" * 32)},
        {"adoptions": [{**FIRST, "position": 4}]},
    ],
)
def test_another_run_tells_nothing(store: Store, first: str, change: dict[str, Any]) -> None:
    at = replace(place("other", first, 1), **change)
    if "history" in change:
        at.history.batches[0] = b"other".ljust(32)
    assert find_record(store, at) is None


def test_a_damaged_checkpoint_tells_nothing_and_the_one_before_does(store: Store, first: str) -> None:
    newest = write(store, "r", 5, FIRST, SECOND)
    (store.read(newest).path / "state.json").write_text("{}")
    assert record_of(find_record(store, place("r", first, 1))) == ("r", 12, [FIRST])


def test_runs_that_went_on_apart_are_named_unless_one_is_meant(store: Store, first: str) -> None:
    assert write(store, "further", 1) == first
    write(store, "further", 4, FIRST)
    assert record_of(find_record(store, place("other", first, 1))) == ("further", 16, [FIRST]), "both agree"
    assert write(store, "apart", 1) == first
    write(store, "apart", 5, SECOND)
    with pytest.raises(
        TrainingError, match=r"run apart went on .*; run further .* --resume apart@1 or --resume further@1"
    ):
        find_record(store, place("other", first, 1))
    for name in ("further@1", "runs/further/latest"):
        named = replace(place("other", first, 1), name=name)
        assert record_of(find_record(store, named)) == ("further", 16, [FIRST])
