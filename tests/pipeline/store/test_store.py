"""The store keeps what it was given, says what is broken, and is never found half-written."""

import hashlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from pipeline.core.errors import DamagedError, DigestError, FormatError, LockedError, MissingError, RefMovedError
from pipeline.store.fsck import fsck
from pipeline.store.objects import MANIFEST
from pipeline.store.store import Store


def commit(store: Store, content: bytes, kind: str = "test/object", **inputs: str) -> str:
    store.root.mkdir(parents=True, exist_ok=True)
    folder = store.root / "tmp" / "made"
    folder.mkdir(parents=True)
    (folder / "content.txt").write_bytes(content)
    return store.commit(folder, kind, {"stage": "test"}, inputs)


def test_an_object_is_named_by_its_manifest(store: Store) -> None:
    object_id = commit(store, b"text")

    stored = store.root / "objects" / "test" / "object" / object_id / MANIFEST
    assert hashlib.sha256(stored.read_bytes()).hexdigest() == object_id


def test_equal_content_in_two_stores_has_one_id(tmp_path: Path) -> None:
    assert commit(Store(tmp_path / "a"), b"text") == commit(Store(tmp_path / "elsewhere" / "b"), b"text")


def test_a_store_of_another_version_is_refused_and_one_without_objects_is_not(tmp_path: Path) -> None:
    (tmp_path / "old" / "objects").mkdir(parents=True)
    (tmp_path / "new" / "blobs").mkdir(parents=True)

    with pytest.raises(FormatError, match=r"it has format 1; expected 2.* Move it aside and build again\."):
        Store(tmp_path / "old")
    commit(Store(tmp_path / "new"), b"text")
    assert (tmp_path / "new" / "format").read_text() == "2\n"
    (tmp_path / "new" / "format").write_text("3\n")
    with pytest.raises(FormatError, match="it has format 3"):
        Store(tmp_path / "new")


def test_an_object_of_another_version_is_refused_by_name(store: Store) -> None:
    path = store.read(commit(store, b"text")).path / MANIFEST
    path.write_bytes(path.read_bytes().replace(b'"identity_version":2', b'"manifest_version":1'))

    with pytest.raises(FormatError, match="its identity has version 1; expected 2"):
        store.read(path.parent.name)


def test_other_content_kind_or_input_has_another_id(store: Store) -> None:
    first = commit(store, b"text")
    ids = {
        first,
        commit(store, b"other"),
        commit(store, b"text", kind="test/other"),
        commit(store, b"text", source=first),
    }

    assert len(ids) == 4


def test_a_flipped_bit_is_refused_by_readers_and_named_by_fsck(store: Store) -> None:
    object_id = commit(store, b"text")
    user_id = commit(store, b"user", source=object_id)
    path = store.read(object_id).path / "content.txt"
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)

    with pytest.raises(DamagedError, match="content"):
        store.read(object_id).file("content.txt")
    (problem,) = fsck(store)
    assert object_id[:12] in problem
    assert f"Needed by test/object {user_id[:12]}" in problem


def test_a_damaged_object_is_made_anew_by_the_next_commit(store: Store) -> None:
    object_id = commit(store, b"text")
    (store.read(object_id).path / "content.txt").write_bytes(b"tex")

    assert commit(store, b"text") == object_id
    assert store.read(object_id).file("content.txt").read_bytes() == b"text"
    assert fsck(store) == []


def test_a_missing_object_is_named_with_who_needs_it(store: Store) -> None:
    object_id = commit(store, b"text")
    user_id = commit(store, b"user", source=object_id)
    store.move_ref("corpus", "collect", None, object_id, "built")
    (store.read(object_id).path / MANIFEST).unlink()

    (problem,) = fsck(store)
    assert "missing" in problem
    assert user_id[:12] in problem
    assert "ref corpus/collect" in problem


def test_a_ref_moves_only_from_where_its_writer_saw_it(store: Store) -> None:
    first, second = commit(store, b"1"), commit(store, b"2")
    store.move_ref("corpus", "live", None, first, "built")

    with pytest.raises(RefMovedError, match=first[:12]):
        store.move_ref("corpus", "live", None, second, "built")
    assert store.ref("corpus", "live") == first


@pytest.mark.parametrize("content", [b"", b"\n", b"0123", b"\xff\xfe", b"x" * 64])
def test_a_damaged_ref_is_refused_named_by_fsck_and_mended_by_the_next_move(store: Store, content: bytes) -> None:
    first, second = commit(store, b"1"), commit(store, b"2")
    store.move_ref("corpus", "live", None, first, "built")
    (store.root / "refs" / "corpus" / "live").write_bytes(content)

    with pytest.raises(DamagedError, match="ref corpus/live"):
        store.ref("corpus", "live")
    (problem,) = fsck(store)
    assert "ref corpus/live" in problem
    store.move_ref("corpus", "live", store.ref_text("corpus", "live"), second, "again")
    assert store.ref("corpus", "live") == second
    assert fsck(store) == []


def test_a_ref_to_nothing_is_refused(store: Store) -> None:
    with pytest.raises(MissingError, match="not in the store"):
        store.move_ref("corpus", "live", None, "0" * 64, "built")


def test_every_move_of_a_ref_is_in_the_history(store: Store) -> None:
    first, second = commit(store, b"1"), commit(store, b"2")
    store.move_ref("corpus", "live", None, first, "built")
    store.move_ref("corpus", "live", first, second, "promoted")

    assert [(entry["old"], entry["new"], entry["reason"]) for entry in store.history("corpus")] == [
        (None, first, "built"),
        (first, second, "promoted"),
    ]


def test_a_torn_line_of_the_history_is_cut_by_the_next_move(store: Store) -> None:
    first, second = commit(store, b"1"), commit(store, b"2")
    store.move_ref("corpus", "live", None, first, "built")
    with (store.root / "log" / "promotions.jsonl").open("a") as file:
        file.write('{"corpus": "cor')
    store.move_ref("corpus", "live", first, second, "promoted")

    assert [entry["new"] for entry in store.history("corpus")] == [first, second]


@pytest.mark.parametrize("line", ["no json", "[]", '"text"', "{}", "7"])
def test_a_damaged_line_of_the_history_is_named_by_its_number(store: Store, line: str) -> None:
    store.move_ref("corpus", "live", None, commit(store, b"1"), "built")
    with (store.root / "log" / "promotions.jsonl").open("a") as file:
        file.write(f"{line}\n")

    with pytest.raises(DamagedError, match="line 2 of log"):
        store.history("corpus")
    (problem,) = fsck(store)
    assert "line 2" in problem


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff"])
def test_damaged_verdicts_are_refused_and_named(store: Store, content: bytes) -> None:
    object_id = commit(store, b"1")
    store.put_verdicts(object_id, [])
    (store.root / "verdicts" / f"{object_id}.json").write_bytes(content)

    with pytest.raises(DamagedError, match=f"verdicts of object {object_id[:12]}"):
        store.verdicts(object_id)
    (problem,) = fsck(store)
    assert object_id[:12] in problem


def test_a_move_is_in_the_history_before_it_is_made(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first = commit(store, b"1")
    monkeypatch.setattr(os, "replace", lambda *places: os.kill(os.getpid(), signal.SIGKILL))
    child = os.fork()
    if child == 0:
        store.move_ref("corpus", "live", None, first, "promoted")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL

    assert store.ref("corpus", "live") is None
    assert [entry["new"] for entry in store.history("corpus")] == [first]


def test_a_blob_whose_bytes_changed_is_taken_for_absent_so_that_it_is_fetched_anew(store: Store) -> None:
    sha256 = hashlib.sha256(b"right").hexdigest()
    path = store.put_blob([b"right"], sha256, "one")
    path.write_bytes(b"riGht")
    assert "bytes changed" in fsck(store)[0]
    assert store.blob(sha256) is None

    assert store.put_blob([b"right"], sha256, "one").read_bytes() == b"right"
    assert store.blob(sha256) == path
    assert fsck(store) == []


def test_what_is_no_file_among_the_blobs_is_named_and_not_waited_for(store: Store) -> None:
    (store.root / "blobs" / ("a" * 64)).mkdir(parents=True)
    os.mkfifo(store.root / "blobs" / ("b" * 64))
    (store.root / "blobs" / ("c" * 64)).symlink_to("nowhere")

    assert [problem[:10] for problem in fsck(store)] == ["blob aaaaa", "blob bbbbb", "blob ccccc"]
    assert all(store.blob(letter * 64) is None for letter in "abc")


def test_what_is_written_is_as_readable_as_the_umask_allows(store: Store) -> None:
    before = os.umask(0o022)
    try:
        object_id = commit(store, b"1")
        store.move_ref("corpus", "live", None, object_id, "built")
        store.put_verdicts(object_id, [])
        store.remember("key", object_id)
        store.put_blob([b"1"], hashlib.sha256(b"1").hexdigest(), "one")
    finally:
        os.umask(before)
    modes = {path: path.stat().st_mode & 0o777 for path in store.root.rglob("*") if path.is_file()}
    assert {path: mode for path, mode in modes.items() if mode != 0o644} == {}


def test_wrong_bytes_are_kept_aside_and_both_digests_named(store: Store) -> None:
    pinned, found = hashlib.sha256(b"right").hexdigest(), hashlib.sha256(b"wrong").hexdigest()

    with pytest.raises(DigestError) as error:
        store.put_blob([b"wr", b"ong"], pinned, "source one")
    assert pinned in str(error.value)
    assert found in str(error.value)
    assert store.blob(pinned) is None
    assert (store.root / "rejected" / found).read_bytes() == b"wrong"


def test_a_download_that_breaks_leaves_no_blob(store: Store) -> None:
    def chunks():
        yield b"half"
        raise OSError("connection reset")

    with pytest.raises(OSError, match="connection reset"):
        store.put_blob(chunks(), "0" * 64, "source one")
    assert not list((store.root / "tmp" / ".blobs").iterdir())


def test_a_second_writer_waits_and_is_told_for_whom(store: Store) -> None:
    heard: list[str] = []
    with (
        store.writer("tiny", "run one"),
        pytest.raises(LockedError, match="run one"),
        store.writer("tiny", "run two", 0.3, heard.append),
    ):
        pass
    assert heard == ["run one"]


def test_another_corpus_is_not_held(store: Store) -> None:
    with store.writer("tiny", "run one"), store.writer("quick", "run two"):
        pass


def test_a_killed_writer_lets_go_and_its_leftovers_are_swept(store: Store) -> None:
    code = (
        "import sys, time; from pathlib import Path; from pipeline.store.store import Store\n"
        "with Store(Path(sys.argv[1])).writer('tiny', 'the dead') as folder:\n"
        "    (folder / 'half').write_text('x'); print('held', flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(store.root)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    child.stdout.readline()
    os.kill(child.pid, signal.SIGKILL)
    child.wait()

    with store.writer("tiny", "the living") as folder:
        assert list(folder.iterdir()) == []


def _promote_many(root: str, object_id: str, count: int) -> None:
    store = Store(Path(root))
    for _ in range(count):
        while True:
            try:
                store.move_ref(
                    "corpus", f"ref-{os.getpid()}", store.ref("corpus", f"ref-{os.getpid()}"), object_id, "race"
                )
                store.move_ref("corpus", "shared", store.ref("corpus", "shared"), object_id, "race")
                break
            except RefMovedError:
                time.sleep(0.001)


def test_racing_writers_lose_no_line_of_the_history(store: Store) -> None:
    object_id = commit(store, b"1")
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=_promote_many, args=(str(store.root), object_id, 3)) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()

    assert store.ref("corpus", "shared") == object_id
    lines = (store.root / "log" / "promotions.jsonl").read_text().splitlines()
    assert len([json.loads(line) for line in lines]) == 3  # one move a ref: the others changed nothing


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
def test_a_foreign_thing_in_the_place_of_an_object_gives_way_and_what_it_leads_to_stays(
    store: Store, tmp_path: Path, kind: str
) -> None:
    object_id = commit(store, b"text")
    place, elsewhere = store.read(object_id).path, tmp_path / "elsewhere"
    place.rename(elsewhere)
    (elsewhere / "content.txt").write_bytes(b"mine")
    if kind == "link":
        place.symlink_to(elsewhere)
    else:
        place.write_bytes(b"foreign")

    assert commit(store, b"text") == object_id
    assert store.read(object_id).file("content.txt").read_bytes() == b"text"
    assert not place.is_symlink()
    assert (elsewhere / "content.txt").read_bytes() == b"mine"


def test_a_key_is_forgotten_with_its_object(store: Store) -> None:
    object_id = commit(store, b"text")
    store.remember("key", object_id)
    assert store.known("key") == object_id

    (store.read(object_id).path / "content.txt").unlink()
    assert store.known("key") is None


def test_a_named_blob_is_found_by_its_name_until_it_is_gone(store: Store) -> None:
    first, second = (hashlib.sha256(content).hexdigest() for content in (b"first", b"second"))
    assert store.named_blob("git/one") is None
    place = store.put_blob([b"first"], first, "a test")
    store.name_blob("git/one", first)
    assert store.named_blob("git/one") == place
    store.name_blob("git/one", second)
    assert store.named_blob("git/one") is None
    assert store.put_blob([b"second"], second, "a test") == store.named_blob("git/one")
    assert fsck(store) == []
