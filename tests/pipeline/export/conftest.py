"""The snapshot that the tests of exports read, and the facts about it."""

import pytest

from pipeline.export.card import Facts, facts_of
from pipeline.store.snapshot import Snapshot, open_snapshot
from pipeline.store.store import Store


@pytest.fixture(scope="module")
def snapshot(tiny_store: Store) -> Snapshot:
    return open_snapshot(tiny_store, tiny_store.ref("tiny", "live") or "")


@pytest.fixture(scope="module")
def facts(snapshot: Snapshot) -> Facts:
    return facts_of(snapshot)
