"""Evaluation items that a build was given are found again in its store, and nowhere else."""

import json
from pathlib import Path

import pytest

from pipeline.build.given_items import keep_items, with_kept_items
from pipeline.build.recipes import TINY, CorpusParams, with_items
from pipeline.core.errors import MissingError
from pipeline.stages.normalize.contamination.evaluation_items import all_items, items_digest
from pipeline.store.garbage import reclaim
from pipeline.store.objects import StoredObject
from pipeline.store.store import Store
from tests.support.stored_text import commit_text

ITEMS = [
    {"id": "a/1", "prompt": "é", "solution": "int a;\n"},
    {"id": "a/2", "prompt": "b", "solution": "x", "language": "c"},
]


@pytest.fixture
def params(tmp_path: Path) -> CorpusParams:
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "one.jsonl").write_text("\n".join(map(json.dumps, ITEMS)))
    return with_items(TINY.params, tmp_path / "given")


def snapshot_of(store: Store, sha256: str, folder: Path) -> StoredObject:
    (folder / "rules").mkdir()
    rules = store.commit(folder / "rules", "normalize/rules", {"evaluation_sha256": sha256}, {})
    return store.read(commit_text(store, b"snapshot", **{"rules/mine": rules}))


def test_the_items_of_a_folder_are_kept_and_have_the_same_digest(
    store: Store, params: CorpusParams, tmp_path: Path
) -> None:
    keep_items(store, params)
    digest = items_digest(all_items(tmp_path / "given"))
    found = with_kept_items(store, TINY.params, snapshot_of(store, digest, tmp_path), tmp_path / "again")

    assert items_digest(all_items(Path(found.normalize.decontamination.items_folder or ""))) == digest


def test_without_a_folder_nothing_is_kept_or_needed(store: Store, tmp_path: Path) -> None:
    keep_items(store, TINY.params)
    assert not (store.root / "names").exists()
    snapshot = snapshot_of(store, items_digest(all_items(None)), tmp_path)
    assert with_kept_items(store, TINY.params, snapshot, tmp_path / "again") == TINY.params


def test_items_that_are_gone_are_named(store: Store, params: CorpusParams, tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="evaluation items 0000"):
        with_kept_items(store, TINY.params, snapshot_of(store, "0" * 64, tmp_path), tmp_path / "again")


def test_items_go_with_the_archives_of_no_source_once_no_kept_object_was_compared_with_them(
    store: Store, params: CorpusParams, tmp_path: Path
) -> None:
    keep_items(store, params)
    snapshot = snapshot_of(store, items_digest(all_items(tmp_path / "given")), tmp_path)
    store.move_ref("mine", "candidate", None, snapshot.object_id, "a test")
    assert reclaim(store, lambda name: False, with_blobs=True).blobs == ()
    assert with_kept_items(store, TINY.params, snapshot, tmp_path / "again") != TINY.params
    store.remove_ref("mine", "candidate", "a test")
    assert len(reclaim(store, lambda name: False, with_blobs=True).blobs) == 1
    assert not list(store.root.glob("names/*/*"))
