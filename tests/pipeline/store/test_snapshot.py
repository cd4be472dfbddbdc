"""A snapshot is opened by the id of an object that is one, and found by its ref."""

from pathlib import Path

import pytest

from pipeline.core.errors import MissingError, SnapshotError
from pipeline.core.records import Split
from pipeline.store.snapshot import open_snapshot, resolve_snapshot
from pipeline.store.store import Store
from tests.support.stored_text import commit_text


@pytest.mark.parametrize(("ref", "command"), [("candidate", "build --recipe RECIPE"), ("live", "promote")])
def test_a_missing_ref_names_the_command_that_makes_it(store: Store, ref: str, command: str) -> None:
    with pytest.raises(
        MissingError, match=r"there is none .*Run `python -m pipeline build --recipe RECIPE --corpus tiny`"
    ):
        resolve_snapshot(store, "tiny", ref)  # there is nothing that could be promoted
    store.move_ref("tiny", "candidate" if ref == "live" else "collect", None, commit_text(store, b"text"), "a test")
    with pytest.raises(
        MissingError, match=rf"snapshot {ref} of corpus tiny: .*Run `python -m pipeline {command} --corpus tiny`"
    ):
        resolve_snapshot(store, "tiny", ref)


def test_an_object_that_is_not_a_snapshot_is_refused_by_its_kind(store: Store) -> None:
    object_id = commit_text(store, b"text")

    with pytest.raises(SnapshotError, match="it is a test/object; expected a snapshot"):
        resolve_snapshot(store, "tiny", object_id)
    with pytest.raises(SnapshotError, match="it is a test/object; expected a snapshot"):
        open_snapshot(store, object_id)


def test_an_unknown_source_is_refused_with_those_that_exist(tiny_store: Store) -> None:
    snapshot = open_snapshot(tiny_store, resolve_snapshot(tiny_store, "tiny", "candidate"))
    first, *_ = snapshot.sources

    assert all(isinstance(path, Path) for path in snapshot.row_files(first.name, Split.TRAIN))
    with pytest.raises(SnapshotError, match=f"no source none; expected one of {first.name}"):
        snapshot.row_files("none", Split.TRAIN)
