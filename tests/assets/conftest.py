"""Fixtures of the assets: an instance, and a store that SLUICE_STORE names."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.checks import taking_plans_back


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    (tmp_path / "home").mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path / "home")) as opened:
        yield opened


@pytest.fixture
def in_memory() -> Iterator[dg.DagsterInstance]:
    """An instance for one test that keeps runs and events in memory: those of a file are written one by one."""
    with dg.DagsterInstance.ephemeral() as opened:
        storage: Any = opened
        taking_plans_back(storage)
        yield opened


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLUICE_STORE", str(tmp_path / "store"))
    return tmp_path / "store"
