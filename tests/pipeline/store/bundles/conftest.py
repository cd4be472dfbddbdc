"""Bundles of the made snapshot, whose rows are all there is of it, and of the built corpus with all that it was made from."""

from pathlib import Path

import pytest

from pipeline.store.bundles.export_bundle import export_bundle
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from tests.support.made.made_snapshot import commit_made

CARD = "# A card\n"


@pytest.fixture(scope="session")
def rows_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of rows alone, of 0.1 MB."""
    root = tmp_path_factory.mktemp("rows")
    store = Store(root / "store")
    export_bundle(open_snapshot(store, commit_made(store)), root / "rows.bundle", CARD, is_rows_only=True)
    return root / "rows.bundle"


@pytest.fixture(scope="session")
def whole_bundle(tiny_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of the built corpus."""
    target = tmp_path_factory.mktemp("whole") / "tiny.bundle"
    export_bundle(open_snapshot(tiny_store, tiny_store.ref("tiny", "live") or ""), target, CARD)
    return target
