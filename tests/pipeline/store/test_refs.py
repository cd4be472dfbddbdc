"""A ref moves by compare-and-swap, and its move is in the history first."""

import json
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from pipeline.core.errors import DamagedError, MissingError, RefMovedError
from pipeline.store.fsck import fsck
from pipeline.store.garbage import reclaim
from pipeline.store.store import Store
from tests.support.stored_text import commit_text


def test_a_ref_moves_only_from_where_its_writer_saw_it(store: Store) -> None:
    first, second = commit_text(store, b"1"), commit_text(store, b"2")
    store.move_ref("corpus", "live", None, first, "built")

    with pytest.raises(RefMovedError, match=first[:12]):
        store.move_ref("corpus", "live", None, second, "built")
    assert store.ref("corpus", "live") == first


@pytest.mark.parametrize("content", [b"", b"\n", b"0123", b"\xff\xfe", b"x" * 64])
def test_a_damaged_ref_is_refused_named_by_fsck_and_mended_by_the_next_move(store: Store, content: bytes) -> None:
    first, second = commit_text(store, b"1"), commit_text(store, b"2")
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


@pytest.mark.parametrize("named", ["promotions.head", "live"])
def test_a_move_is_in_the_history_before_it_is_made(store: Store, monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    first, replace = commit_text(store, b"1"), os.replace

    def replace_or_die(source: Path, target: Path) -> None:
        if target.name == named and target.exists():
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_or_die)
    child = os.fork()
    if child == 0:
        store.move_ref("corpus", "live", None, first, "promoted")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL

    assert store.ref("corpus", "live") is None
    assert [entry["new"] for entry in store.history("corpus")] == [first]
    assert store.refs("corpus") == {}
    assert fsck(store) == []


def test_a_ref_that_was_deleted_or_put_in_another_place_is_named_and_nothing_is_collected(store: Store) -> None:
    first, second = commit_text(store, b"1"), commit_text(store, b"2")
    store.move_ref("corpus", "live", None, first, "built")
    store.move_ref("corpus", "collect", None, second, "built")
    live, other = (store.root / "refs" / "corpus" / name for name in ("live", "collect"))
    one, two = live.read_bytes(), other.read_bytes()
    for damaged in ({live: two, other: one}, {live: b"", other: two}, {other: two}):
        for path in (live, other):
            path.unlink(missing_ok=True)
        for path, content in damaged.items():
            path.write_bytes(content)
        assert any("ref corpus/live" in problem for problem in fsck(store))
        with pytest.raises(DamagedError, match="ref corpus"):
            reclaim(store)
    assert {first, second} <= {path.name for path in store.root.glob("objects/*/*/*")}


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
    object_id = commit_text(store, b"1")
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=_promote_many, args=(str(store.root), object_id, 3)) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()

    assert store.ref("corpus", "shared") == object_id
    lines = (store.root / "log" / "promotions.jsonl").read_text().splitlines()
    assert len([json.loads(line) for line in lines]) == 3  # one move a ref: the others changed nothing
