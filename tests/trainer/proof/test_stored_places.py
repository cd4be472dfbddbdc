"""Places of a loader are judged by the rows and weights of the snapshot, without the loader."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.store.snapshot import Snapshot, open_snapshot
from pipeline.store.store import Store
from trainer.proof.stored_places import judge_batches, judge_order, num_places
from trainer.proof.stored_rows import AS_STORED
from trainer.proof.verify_loader import TraceOptions, observe

OPTIONS = TraceOptions(num_rows=40)
WEIGHTS = {"quarry": 2.5, "odds": 0.3}


def weighted(store: Store, weights: dict[str, float]) -> Snapshot:
    """Return the made corpus with weights that differ."""
    found = open_snapshot(store, store.ref("tiny", "live") or "")
    sources = tuple(replace(entry, weight=weights.get(entry.name, 1.0)) for entry in found.sources)
    content = [entry | {"weight": weights.get(entry["name"], 1.0)} for entry in found.content["sources"]]
    return replace(found, sources=sources, content={**found.content, "sources": content})


@pytest.fixture(scope="module")
def snapshot(tiny_store: Store) -> Snapshot:
    return weighted(tiny_store, WEIGHTS)


@pytest.fixture(scope="module")
def chained(tiny_store: Store) -> Snapshot:
    """The made corpus, most of it of the source whose rows have chronology."""
    return weighted(tiny_store, {"loom": 200.0})


@pytest.fixture(scope="module")
def trace(snapshot: Snapshot) -> dict[str, Any]:
    return observe(snapshot, OPTIONS)


def faults(snapshot: Snapshot, trace: dict[str, Any], is_permuted: bool = True) -> set[str]:
    return {each for each in judge_order(snapshot, trace, is_permuted) if each != AS_STORED}


def test_two_epochs_of_every_source_are_in_the_shares_of_their_weights(
    snapshot: Snapshot, trace: dict[str, Any]
) -> None:
    order = trace["order"]
    sizes = {entry.name: entry.num_rows_train for entry in snapshot.sources if entry.num_rows_train}

    assert faults(snapshot, trace) == set()
    assert len(order["rows"]) == num_places(snapshot, OPTIONS.num_rows)
    for place, name in enumerate(order["names"]):
        assert order["sources"].count(place) >= 2 * sizes[name]


def test_a_loader_without_the_weights_is_off_its_shares(snapshot: Snapshot) -> None:
    plain = replace(snapshot, sources=tuple(replace(entry, weight=1.0) for entry in snapshot.sources))

    assert any("off its share" in each for each in faults(snapshot, observe(plain, OPTIONS)))


def _repeat_a_row(sources_N: Any, epochs_N: Any, rows_N: Any) -> None:
    first, second = np.flatnonzero(sources_N == 0)[100:102]
    rows_N[second] = rows_N[first]


def _keep_one_order(sources_N: Any, epochs_N: Any, rows_N: Any) -> None:
    rows_N[(sources_N == 1) & (epochs_N == 2)] = rows_N[(sources_N == 1) & (epochs_N == 1)]


def _leave_the_table(sources_N: Any, epochs_N: Any, rows_N: Any) -> None:
    rows_N[50] = 10_000


def _say_the_first_epoch(sources_N: Any, epochs_N: Any, rows_N: Any) -> None:
    epochs_N[epochs_N == 2] = 1


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (_repeat_a_row, "was read before in its epoch"),
        (_keep_one_order, "has one order in two epochs"),
        (_leave_the_table, "is not its row"),
        (_say_the_first_epoch, "is in another epoch than its number says"),
    ],
)
def test_another_order_is_named(
    snapshot: Snapshot, trace: dict[str, Any], change: Callable[[Any, Any, Any], None], fault: str
) -> None:
    columns = {name: np.array(trace["order"][name]) for name in ("sources", "epochs", "rows")}
    change(*columns.values())
    changed = {**trace, "order": trace["order"] | {name: column.tolist() for name, column in columns.items()}}

    assert any(fault in each for each in faults(snapshot, changed))


def test_rows_that_are_not_those_of_their_places_are_named(snapshot: Snapshot, trace: dict[str, Any]) -> None:
    first, second, *others = trace["batches"]
    changed = [[*first[:7], second[0]], [first[7], *second[1:]], *others]

    assert set(judge_batches(snapshot, trace)) == {AS_STORED}
    assert [each for each in judge_batches(snapshot, {**trace, "batches": changed}) if each != AS_STORED] == [
        "the batch at 0 has not the rows of its places, in the order of commits",
        "the batch at 8 has not the rows of its places, in the order of commits",
    ]


def test_commits_are_sorted_in_batches_of_any_size_and_rows_are_equal_by_their_places(chained: Snapshot) -> None:
    traces = [observe(chained, replace(OPTIONS, batch_rows=number)) for number in (8, 5)]

    assert {fault for trace in traces for fault in judge_batches(chained, trace)} == {AS_STORED}
    assert [row for batch in traces[0]["batches"] for row in batch][:40] != [row[:3] for row in traces[0]["infillings"]]
    for name in ("triples", "rows", "infillings"):
        assert traces[0][name] == traces[1][name]


def test_commits_that_are_not_sorted_are_named(chained: Snapshot) -> None:
    trace = observe(chained, OPTIONS)
    unsorted = [
        batch if place else sorted(batch, key=lambda row: -row[2]) for place, batch in enumerate(trace["batches"])
    ]

    assert [each for each in judge_batches(chained, {**trace, "batches": unsorted}) if each != AS_STORED] == [
        "the batch at 0 has not the rows of its places, in the order of commits"
    ]


def test_a_published_order_may_be_the_same_in_two_epochs(snapshot: Snapshot, trace: dict[str, Any]) -> None:
    order = trace["order"]
    columns = {name: np.array(order[name]) for name in ("sources", "epochs", "rows")}
    _keep_one_order(*columns.values())
    changed = {**trace, "order": order | {name: column.tolist() for name, column in columns.items()}}

    assert faults(snapshot, changed, is_permuted=False) == set()
    assert len(faults(snapshot, changed)) == 1
