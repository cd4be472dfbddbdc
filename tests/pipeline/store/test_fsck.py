"""fsck names what is damaged or missing, and what needs it."""

import os
from pathlib import Path

import pytest

from pipeline.core.errors import DamagedError
from pipeline.store.fsck import fsck
from pipeline.store.store import Store
from pipeline.store.store_layout import MANIFEST
from pipeline.store.verification import verify_objects
from tests.support.stored_text import commit_text


def test_a_flipped_bit_is_refused_by_readers_and_named_by_fsck(store: Store) -> None:
    object_id = commit_text(store, b"text")
    user_id = commit_text(store, b"user", source=object_id)
    path = store.read(object_id).path / "content.txt"
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)

    with pytest.raises(DamagedError, match="content"):
        store.read(object_id).file("content.txt")
    (problem,) = fsck(store)
    assert object_id[:12] in problem
    assert f"Needed by test/object {user_id[:12]}" in problem


def test_a_missing_object_is_named_with_who_needs_it(store: Store) -> None:
    object_id = commit_text(store, b"text")
    user_id = commit_text(store, b"user", source=object_id)
    store.move_ref("corpus", "collect", None, object_id, "built")
    (store.read(object_id).path / MANIFEST).unlink()

    (problem,) = fsck(store)
    assert "missing" in problem
    assert user_id[:12] in problem
    assert "ref corpus/collect" in problem


def test_a_blob_that_is_not_a_file_is_named_and_not_waited_for(store: Store) -> None:
    (store.root / "blobs" / ("a" * 64)).mkdir(parents=True)
    os.mkfifo(store.root / "blobs" / ("b" * 64))
    (store.root / "blobs" / ("c" * 64)).symlink_to("nowhere")

    assert [problem[:10] for problem in fsck(store)] == ["blob aaaaa", "blob bbbbb", "blob ccccc"]
    assert all(store.blob(letter * 64) is None for letter in "abc")


@pytest.mark.parametrize("place", ["content.txt", MANIFEST, ".", "..", "../..", "../../.."])
def test_a_link_is_refused_by_readers_and_named_by_fsck_whatever_it_leads_to(
    store: Store, tmp_path: Path, place: str
) -> None:
    object_id = commit_text(store, b"text")
    path, elsewhere = (store.read(object_id).path / place).resolve(), tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)

    with pytest.raises(DamagedError, match="is a link to"):
        store.read(object_id).file("content.txt")
    with pytest.raises(DamagedError, match="is a link to"):
        verify_objects(store, [object_id])
    assert "is a link to" in " ".join(fsck(store))


@pytest.mark.parametrize(
    "place", ["refs/corpus/collect", "refs/corpus", "log/promotions.jsonl", "log/promotions.head", "ends", "format"]
)
def test_a_link_in_the_place_of_a_record_is_damage(store: Store, tmp_path: Path, place: str) -> None:
    store.move_ref("corpus", "collect", None, commit_text(store, b"text"), "built")
    path, elsewhere = store.root / place, tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)

    assert "is a link to" in " ".join(fsck(store))
