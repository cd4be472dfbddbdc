"""`gc` removes what no ref leads to, and nothing else."""

import hashlib
import shutil
from functools import partial
from pathlib import Path

import pytest

from pipeline.build.promotion import promote
from pipeline.build.withdrawal import holds_withdrawn
from pipeline.core.errors import LockedError, MissingError
from pipeline.store.fsck import fsck
from pipeline.store.garbage import Reclaimed, forget, reclaim
from pipeline.store.store import Store


@pytest.fixture
def rebuilt(rebuilt_store: Store, tmp_path: Path) -> Store:
    shutil.copytree(rebuilt_store.root, tmp_path / "store")
    return Store(tmp_path / "store")


def gc(store: Store, **options: bool) -> Reclaimed:
    return reclaim(store, partial(holds_withdrawn, store), **options)


def objects(store: Store) -> set[str]:
    return {path.parent.name for path in store.root.glob("objects/*/*/*/manifest.json")}


def test_nothing_goes_while_refs_lead_to_it(rebuilt: Store) -> None:
    before = objects(rebuilt)
    assert gc(rebuilt).object_ids == ()
    assert objects(rebuilt) == before


def test_an_older_snapshot_goes_once_nothing_names_it_and_the_newer_one_stays_whole(rebuilt: Store) -> None:
    old = rebuilt.ref("tiny", "live") or ""
    new = promote(rebuilt, "tiny").new
    rehearsed = gc(rebuilt, is_rehearsal=True)
    assert old in objects(rebuilt)

    done = gc(rebuilt)

    assert done == rehearsed
    assert old in done.object_ids  # it was live, but one cannot roll back to what holds withdrawn documents
    assert [each.kept_for for each in done.kept if each.object_id == new] == [("ref tiny/candidate", "ref tiny/live")]
    assert sum(each.num_objects for each in done.kept) == done.num_kept == len(done.kept) + len(done.inputs)
    assert done.num_bytes > 0
    assert fsck(rebuilt) == []
    assert promote(rebuilt, "tiny", new).unchanged
    assert gc(rebuilt).object_ids == ()


def test_leftovers_of_killed_writers_go(rebuilt: Store) -> None:
    places = ["refs/tiny/.0123", "keys/.0123", "verdicts/.0123", "tmp/tiny/half.parquet", "tmp/.blobs/x.part"]
    places += [f"objects/collect/part/{'a' * 64}/files.parquet"]
    for place in places:
        (rebuilt.root / place).parent.mkdir(parents=True, exist_ok=True)
        (rebuilt.root / place).write_bytes(b"half")
    gc(rebuilt)
    assert not [place for place in places if (rebuilt.root / place).exists()]
    assert fsck(rebuilt) == []


def test_what_somebody_reads_is_left_alone(rebuilt: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.store.garbage.REMOVAL_WAIT_SECONDS", 0.1)
    with rebuilt.in_use(), pytest.raises(LockedError, match="it is being written"):
        gc(rebuilt)


def test_a_forgotten_corpus_frees_everything_and_stays_in_the_history(rebuilt: Store) -> None:
    num_refs = len(rebuilt.refs("tiny"))
    assert forget(rebuilt, "tiny", "a test") == num_refs
    assert {entry["new"] for entry in rebuilt.history("tiny")[-num_refs:]} == {None}
    gc(rebuilt)
    assert objects(rebuilt) == set()
    with pytest.raises(MissingError, match="it has none"):
        forget(rebuilt, "tiny", "a test")


def test_archives_are_removed_only_on_request_and_only_those_of_no_source(rebuilt: Store) -> None:
    digest = hashlib.sha256(b"archive").hexdigest()
    rebuilt.put_blob([b"archive"], digest, "an archive")
    assert gc(rebuilt).blobs == ()
    assert gc(rebuilt, with_blobs=True).blobs == (digest,)


def test_names_of_what_no_kept_object_uses_go_with_their_archives(rebuilt: Store) -> None:
    kept = {path: path.read_bytes() for path in rebuilt.root.glob("names/**/*") if path.is_file()}
    digest = hashlib.sha256(b"a pack").hexdigest()
    rebuilt.put_blob([b"a pack"], digest, "a pack")
    rebuilt.name_blob(f"git/{'1' * 40}.history", digest)
    assert gc(rebuilt).blobs == ()
    assert gc(rebuilt, with_blobs=True, is_rehearsal=True).blobs == (digest,)
    assert gc(rebuilt, with_blobs=True).blobs == (digest,)
    assert {path: path.read_bytes() for path in rebuilt.root.glob("names/**/*") if path.is_file()} == kept
    assert fsck(rebuilt) == []
    rebuilt.put_blob([b"a pack"], digest, "a pack")
    rebuilt.name_blob(f"git/{'1' * 40}.history", digest)
    (rebuilt.root / f"names/git/{'1' * 40}.history").unlink()
    assert len(fsck(rebuilt)) == 1


def test_a_folder_that_is_no_store_keeps_its_files(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp" / "letter.txt").write_text("mine")
    with pytest.raises(MissingError, match="it holds no store"):
        gc(Store(tmp_path))
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["tmp", "letter.txt"]
