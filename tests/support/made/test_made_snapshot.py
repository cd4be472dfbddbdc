"""The made snapshot. `test_device_checks.py` trains on it, where nothing is built: compiled, stopped and resumed."""

from pathlib import Path

from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from tests.support.made.made_snapshot import CORPUS, commit_made


def test_the_rows_of_a_second_commit_are_those_of_the_first(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    first = commit_made(store)

    assert commit_made(store) == first
    assert [source.name for source in open_snapshot(store, first).sources] == [CORPUS]
