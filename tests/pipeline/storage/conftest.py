"""Buckets of tests: one server for all, and an address of its own for each test."""

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline.store.store import Store
from pipeline.store.store_layout import store_folder
from tests.pipeline.storage.s3_server import CREDENTIALS, make_bucket, s3_server

Machine = Callable[[str], Store]

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    with s3_server() as endpoint:
        make_bucket(endpoint, "sluice")
        yield endpoint


@pytest.fixture
def bucket_address(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    for name, value in CREDENTIALS.items():
        if name not in os.environ:
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path / "here"))
    return f"s3://sluice/{tmp_path.name}-{os.getpid()}-{next(_NUMBERS)}?endpoint={s3_endpoint}"


@pytest.fixture
def machine(bucket_address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    """Return the store as a machine of that name sees it, through a cache of its own."""

    def opened(name: str) -> Store:
        monkeypatch.setenv("SLUICE_CACHE", str(tmp_path / name))
        return Store(store_folder(bucket_address))

    return opened
