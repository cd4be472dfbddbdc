"""A store in which a source's folder was withdrawn and the corpus built anew, beside the snapshot from before."""

import shutil
from pathlib import Path

import pytest

from pipeline.build.withdrawal import withdraw
from pipeline.store.store import Store
from tests.conftest import build_tiny

WITHDRAWN = "lantern/src/**"


@pytest.fixture(scope="session")
def rebuilt_store(tiny_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """`live` is the snapshot of before, `candidate` the one without what was withdrawn. Tests read it."""
    root: Path = tmp_path_factory.mktemp("rebuilt") / "store"
    shutil.copytree(tiny_store.root, root)
    store = Store(root)
    withdraw(store, WITHDRAWN, "its owner asked")
    build_tiny(root)
    return store
