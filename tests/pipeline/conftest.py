"""Fixtures of several folders: the sandbox, and a store that was built anew after a withdrawal."""

import shutil
from pathlib import Path

import pytest

from pipeline.build.withdrawal import withdraw
from pipeline.sandbox.sandbox import Limits, run_confined
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


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Skip the tests that run commands of a source where the kernel grants no sandbox: nothing is run there at all."""
    run = run_confined(["/bin/true"], {}, ["/bin"], Limits(20, 60, 1 << 30))
    if run.failure == "no_sandbox":
        pytest.skip(f"the kernel grants no sandbox: {run.output}")
