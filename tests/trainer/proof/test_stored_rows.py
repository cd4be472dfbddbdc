"""Rows of a trace are compared with their files, read without the loader."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.store.snapshot import Snapshot, open_snapshot
from pipeline.store.store import Store
from trainer.data import loader
from trainer.data.mapped_rows import TrainingRows
from trainer.proof.stored_rows import content_digest, stored_rows, told_rows
from trainer.proof.verify_loader import TraceOptions, check_equal, observe

OPTIONS = TraceOptions(num_rows=40)


@pytest.fixture
def snapshot(tiny_store: Store) -> Snapshot:
    return open_snapshot(tiny_store, tiny_store.ref("tiny", "live") or "")


def num_differing(snapshot: Snapshot, options: TraceOptions = OPTIONS) -> int:
    trace = observe(snapshot, options)
    return check_equal("rows", told_rows(trace), list(stored_rows(snapshot, trace))).num_differing


def test_rows_are_those_of_their_files_with_and_without_infilling(snapshot: Snapshot) -> None:
    assert num_differing(snapshot) == 0
    assert num_differing(snapshot, replace(OPTIONS, num_rows=300)) == 0


def test_a_loader_that_reads_one_row_for_all_differs(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    locate = TrainingRows.locate
    monkeypatch.setattr(TrainingRows, "locate", lambda self, rows_R: locate(self, rows_R * 0))

    assert num_differing(snapshot) > 30


def test_a_loader_that_names_one_row_again_differs(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "permute", lambda orders, which, rows: rows * 0)

    assert num_differing(snapshot) > 30


def test_a_content_is_the_same_in_another_order_and_with_sentinels() -> None:
    assert content_digest(np.array([5, 3, 1, 0, 0], np.int64), [0, 1]) == content_digest(
        np.array([3, 5], np.uint16), [0, 1]
    )
    assert content_digest([3, 5], []) != content_digest([3, 3], [])
