"""Objects are named by their content, found whole or not at all, and equal ones are one."""

import hashlib
import multiprocessing
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from pipeline.core.errors import DamagedError, FormatError, MissingError
from pipeline.store.fsck import fsck
from pipeline.store.store import Store
from pipeline.store.store_layout import MANIFEST
from tests.support.stored_text import commit_text


def test_an_object_is_named_by_its_manifest(store: Store) -> None:
    object_id = commit_text(store, b"text")

    stored = store.root / "objects" / "test" / "object" / object_id / MANIFEST
    assert hashlib.sha256(stored.read_bytes()).hexdigest() == object_id


def test_equal_content_in_two_stores_has_one_id(tmp_path: Path) -> None:
    assert commit_text(Store(tmp_path / "a"), b"text") == commit_text(Store(tmp_path / "elsewhere" / "b"), b"text")


def test_an_object_of_another_version_is_refused_by_name(store: Store) -> None:
    path = store.read(commit_text(store, b"text")).path / MANIFEST
    path.write_bytes(path.read_bytes().replace(b'"identity_version":2', b'"manifest_version":1'))

    with pytest.raises(FormatError, match="its identity has version 1; expected 2"):
        store.read(path.parent.name)


def test_other_content_kind_or_input_has_another_id(store: Store) -> None:
    first = commit_text(store, b"text")
    ids = {
        first,
        commit_text(store, b"other"),
        commit_text(store, b"text", kind="test/other"),
        commit_text(store, b"text", source=first),
    }

    assert len(ids) == 4


def test_a_damaged_object_is_replaced_by_the_next_commit(store: Store) -> None:
    object_id = commit_text(store, b"text")
    (store.read(object_id).path / "content.txt").write_bytes(b"tex")

    assert commit_text(store, b"text") == object_id
    assert store.read(object_id).file("content.txt").read_bytes() == b"text"
    assert fsck(store) == []


def _commit_many(root: str, number: int, together: Barrier) -> None:
    for turn in range(100):
        folder = Path(root) / "tmp" / f"made-{number}-{turn}"
        folder.mkdir(parents=True)
        (folder / "content.txt").write_text(str(turn))
        together.wait(30)
        object_id = Store(Path(root)).commit(folder, "test/object", {}, {})
        assert Store(Path(root)).read(object_id).file("content.txt").read_text() == str(turn)


def test_racing_commits_of_one_object_all_succeed_and_keep_one_copy(store: Store) -> None:
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(2)
    children = [context.Process(target=_commit_many, args=(str(store.root), number, together)) for number in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()

    assert [child.exitcode for child in children] == [0, 0]
    assert fsck(store) == []
    assert not [path for path in (store.root / "tmp").iterdir() if not path.name.startswith(".")]


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_link_or_file_in_the_place_of_an_object_is_replaced_and_its_target_stays(
    store: Store, tmp_path: Path, kind: str
) -> None:
    object_id = commit_text(store, b"text")
    place, elsewhere = store.read(object_id).path, tmp_path / "elsewhere"
    place.rename(elsewhere)
    (elsewhere / "content.txt").write_bytes(b"mine")
    if kind == "link":
        place.symlink_to(elsewhere)
    else:
        place.write_bytes(b"foreign")

    assert commit_text(store, b"text") == object_id
    assert store.read(object_id).file("content.txt").read_bytes() == b"text"
    assert not place.is_symlink()
    assert (elsewhere / "content.txt").read_bytes() == b"mine"


def test_a_key_is_forgotten_with_its_object(store: Store) -> None:
    object_id = commit_text(store, b"text")
    key = store.read(object_id).manifest.key
    store.remember(key, object_id)
    assert store.known(key) == object_id

    (store.read(object_id).path / "content.txt").unlink()
    assert store.known(key) is None


def test_a_key_names_the_object_that_its_work_made_and_no_other(store: Store) -> None:
    first, second = commit_text(store, b"1"), commit_text(store, b"2", kind="test/other")
    key = store.read(first).manifest.key
    store.remember(key, second)

    assert store.known(key) is None
    (problem,) = fsck(store)
    assert f"key {key[:12]}: it names {second[:12]}" in problem


def test_a_file_that_the_manifest_does_not_name_and_an_object_in_another_folder_are_found(store: Store) -> None:
    first, second = (store.read(commit_text(store, content)).path for content in (b"1", b"2"))
    (first / "more.txt").write_bytes(b"more")
    (second.parents[1] / "other").mkdir()
    second.rename(second.parents[1] / "other" / second.name)

    assert sorted(" ".join(problem.split()[:4]) for problem in fsck(store)) == sorted(
        [f"object {first.name[:12]}: it has", f"object {second.name[:12]}: it is"]
    )
    with pytest.raises(DamagedError, match="it is in"):
        store.read(second.name)


def test_a_manifest_with_a_blank_more_is_refused(store: Store) -> None:
    object_id = commit_text(store, b"text")
    with (store.read(object_id).path / MANIFEST).open("ab") as file:
        file.write(b"\n")

    with pytest.raises(DamagedError, match="its manifest hashes to"):
        store.read(object_id)


@pytest.mark.parametrize("content", [b"[" * 200_000, b'{"a":' * 200_000], ids=["lists", "objects"])
def test_a_manifest_or_a_file_that_is_nested_too_deep_is_refused(store: Store, content: bytes) -> None:
    stored = store.read(commit_text(store, b"text"))
    written = commit_text(store, content)
    (stored.path / MANIFEST).write_bytes(content)

    with pytest.raises(DamagedError, match=r"its manifest cannot be read .*nested too deep"):
        store.read(stored.object_id)
    (name,) = (entry.name for entry in store.read(written).manifest.files)
    with pytest.raises(DamagedError, match=r"is not JSON \(it is nested too deep"):
        store.read(written).json(name)


def test_the_first_digits_of_an_id_are_answered_with_the_whole(store: Store) -> None:
    folder = store.root / "tmp" / "made"
    folder.mkdir(parents=True)
    object_id = store.commit(folder, "test/object", {}, {})

    with pytest.raises(MissingError, match=f"Did you mean {object_id}"):
        store.read(object_id[:12])
    for odd in ("", "../x", "?" * 12, "0" * 63, object_id.upper() + "A"):
        with pytest.raises(MissingError, match="64 hex digits"):
            store.read(odd)
