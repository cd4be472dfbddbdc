"""A ref moves by compare-and-swap, and its move is in the history first."""

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.core.errors import DamagedError, MissingError, RefMovedError
from pipeline.store.fsck import fsck
from pipeline.store.garbage import reclaim
from pipeline.store.refs import AFTER_BUILD, ASKED, BY_BUILD, BY_ID, WITH_BUILD
from pipeline.store.store import Store
from tests.support.stored_text import commit_text


def test_a_ref_moves_only_from_where_its_writer_saw_it(store: Store) -> None:
    first, second = commit_text(store, b"1"), commit_text(store, b"2")
    store.move_ref("corpus", "live", None, first, "built")

    with pytest.raises(RefMovedError, match=first[:12]):
        store.move_ref("corpus", "live", None, second, "built")
    assert store.ref("corpus", "live") == first


@pytest.mark.parametrize("content", [b"", b"\n", b"0123", b"\xff\xfe", b"x" * 64, None])
def test_a_damaged_ref_is_refused_named_by_fsck_and_repaired_by_the_next_move(
    store: Store, content: bytes | None
) -> None:
    first, second = commit_text(store, b"1"), commit_text(store, b"2")
    store.move_ref("corpus", "live", None, first, "built")
    path = store.root / "refs" / "corpus" / "live"
    path.unlink() if content is None else path.write_bytes(content)

    with pytest.raises(DamagedError, match="ref corpus/live"):
        store.ref("corpus", "live")
    (problem,) = fsck(store)
    assert "ref corpus/live" in problem
    store.move_ref("corpus", "live", store.ref_text("corpus", "live"), second, "again")
    assert store.ref("corpus", "live") == second
    assert fsck(store) == []
    assert [entry["new"] for entry in store.lives("corpus")] == [first, second]
    assert (store.history("corpus")[-1]["old"] is None) == (content is None)


LIVES: list[tuple[str, dict[int, str], str]] = [
    ("", {}, ""),
    ("121", {}, "2"),
    ("1212", {}, ""),  # forward again: nobody rolled back from what was there first
    ("121", {2: AFTER_BUILD}, ""),
    ("1213", {3: AFTER_BUILD}, "2"),
    ("12321", {}, "32"),
    ("1231", {}, "3"),
    ("12123", {}, ""),
    ("12121", {}, "2"),
]
"""Snapshots that were live one after another, the reasons of some of these moves, and those that people rolled back from."""


@pytest.mark.parametrize(("lives", "reasons", "expected"), LIVES)
def test_people_rolled_back_from_what_a_move_to_something_older_left_and_is_not_live_again(
    store: Store, lives: str, reasons: dict[int, str], expected: str
) -> None:
    ids = {digit: commit_text(store, digit.encode()) for digit in "123"}
    old = None
    for place, digit in enumerate(lives):
        store.move_ref("corpus", "live", old, ids[digit], reasons.get(place, "asked for"))
        store.move_ref("other", "live", None if place == 0 else ids["3"], ids["3"], "of another corpus")
        old = ids[digit]

    assert list(store.rolled_back("corpus")) == [ids[digit] for digit in expected]
    assert store.rolled_back("other") == {}


@pytest.mark.parametrize(
    ("reason", "asked", "expected"),
    [
        (WITH_BUILD, None, []),
        (WITH_BUILD, BY_BUILD, []),
        ("nightly, for a reason", BY_BUILD, []),
        ("promoted by hand", BY_ID, ["2"]),
        (AFTER_BUILD, BY_ID, ["2"]),
    ],
)
def test_what_a_build_made_again_is_no_rollback_and_what_a_person_named_is(
    store: Store, reason: str, asked: str | None, expected: list[str]
) -> None:
    ids = {digit: commit_text(store, digit.encode()) for digit in "12"}
    store.move_ref("corpus", "live", None, ids["1"], "first")
    store.move_ref("corpus", "live", ids["1"], ids["2"], "second")
    store.move_ref("corpus", "live", ids["2"], ids["1"], reason, {ASKED: asked} if asked else {})

    assert list(store.rolled_back("corpus")) == [ids[digit] for digit in expected]


def test_a_way_back_from_what_a_build_made_live_again_is_a_rollback(store: Store) -> None:
    """A change is taken back, as builds say, and then a person goes on with the change by its id."""
    ids = {digit: commit_text(store, digit.encode()) for digit in "12"}
    old = None
    for digit, asked in (("1", BY_BUILD), ("2", BY_BUILD), ("1", BY_BUILD), ("2", BY_ID)):
        store.move_ref("corpus", "live", old, ids[digit], "bad", {ASKED: asked})
        old = ids[digit]

    assert list(store.rolled_back("corpus")) == [ids["1"]]


def test_a_ref_to_nothing_is_refused(store: Store) -> None:
    with pytest.raises(MissingError, match="not in the store"):
        store.move_ref("corpus", "live", None, "0" * 64, "built")


FILES_OF_A_MOVE = ["live", "promotions.head", "withdrawals.head", "blobs.head", "ends"]
"""The files that a move replaces after its line is in the history, in that order."""


def killed_before(named: str, work: Callable[[], object]) -> None:
    """Do it in a process that is killed before it replaces the file of that name."""
    replace = os.replace

    def replace_or_die(source: Path, target: Path) -> None:
        if target.name == named:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)

    child = os.fork()
    if child == 0:
        os.replace = replace_or_die  # type: ignore[assignment]
        work()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("named", FILES_OF_A_MOVE)
def test_a_move_is_in_the_history_before_it_is_made_and_the_next_one_finishes_or_undoes_it(
    store: Store, named: str, is_first: bool
) -> None:
    first, second, third = (commit_text(store, text) for text in (b"1", b"2", b"3"))
    old = None if is_first else first
    if not is_first:
        store.move_ref("corpus", "live", None, first, "built")
    killed_before(named, lambda: store.move_ref("corpus", "live", old, second, "promoted"))

    is_made = named != "live"
    expected = second if is_made else old
    assert store.ref("corpus", "live") == expected
    assert [entry["new"] for entry in store.history("corpus")][-1] == second
    assert fsck(store) == []
    store.move_ref("corpus", "other", None, third, "built")
    assert store.ref("corpus", "live") == expected
    moves = [entry["new"] for entry in store.history("corpus") if entry["ref"] == "live"]
    assert moves == [each for each in (None if is_first else first, second if is_made else None) if each]
    store.move_ref("corpus", "live", expected, third, "promoted")
    assert store.ref("corpus", "live") == third
    assert fsck(store) == []


@pytest.mark.parametrize("named", FILES_OF_A_MOVE[1:])
def test_a_ref_that_is_being_removed_is_gone_or_there_after_a_kill(store: Store, named: str) -> None:
    first = commit_text(store, b"1")
    store.move_ref("corpus", "live", None, first, "built")
    killed_before(named, lambda: store.remove_ref("corpus", "live", "a test"))

    assert fsck(store) == []
    assert store.ref("corpus", "live") is None
    store.move_ref("corpus", "live", None, first, "built")
    assert fsck(store) == []


def test_an_older_version_of_a_ref_is_damage_that_readers_and_fsck_report_and_the_next_move_repairs(
    store: Store,
) -> None:
    first, second = commit_text(store, b"1"), commit_text(store, b"2")
    live = store.root / "refs" / "corpus" / "live"
    store.move_ref("corpus", "live", None, first, "built")
    older = live.read_bytes()
    store.move_ref("corpus", "live", first, second, "promoted")
    live.write_bytes(older)

    with pytest.raises(DamagedError, match=f"it is at {first[:12]}; expected {second[:12]}"):
        store.ref("corpus", "live")
    (problem,) = fsck(store)
    assert problem.startswith("ref corpus/live: it is at")
    with pytest.raises(DamagedError, match="ref corpus/live"):
        reclaim(store, lambda name: False)
    store.move_ref("corpus", "live", store.ref_text("corpus", "live"), second, "promoted")
    assert store.ref("corpus", "live") == second
    assert fsck(store) == []


@pytest.mark.parametrize("head", ["promotions.head", "withdrawals.head"])
def test_an_older_ref_beside_an_older_head_is_damage(store: Store, head: str) -> None:
    """The history then ends as after a kill before the ref was written, but another head names its last line."""
    first, second = commit_text(store, b"1"), commit_text(store, b"2")
    store.move_ref("corpus", "live", None, first, "built")
    paths = [store.root / "refs" / "corpus" / "live", store.root / "log" / head]
    older = [path.read_bytes() for path in paths]
    store.move_ref("corpus", "live", first, second, "promoted")
    for path, content in zip(paths, older, strict=True):
        path.write_bytes(content)

    with pytest.raises(DamagedError):
        store.ref("corpus", "live")
    assert fsck(store)


def test_a_ref_that_was_removed_is_not_put_back(store: Store) -> None:
    first = commit_text(store, b"1")
    store.move_ref("corpus", "live", None, first, "built")
    path = store.root / "refs" / "corpus" / "live"
    before = path.read_bytes()
    store.remove_ref("corpus", "live", "a test")
    path.write_bytes(before)

    with pytest.raises(DamagedError, match="expected nothing"):
        store.ref("corpus", "live")


def _move_to_and_fro(root: str, one: str, other: str) -> None:
    store = Store(Path(root))
    for number in range(60):
        old, new = (one, other) if number % 2 else (other, one)
        store.move_ref("corpus", "live", old, new, "race")


def test_a_reader_beside_a_writer_reads_no_move_half_made(store: Store) -> None:
    one, other = commit_text(store, b"1"), commit_text(store, b"2")
    store.move_ref("corpus", "live", None, other, "built")
    child = multiprocessing.get_context("spawn").Process(
        target=_move_to_and_fro, args=(str(store.root), one, other), daemon=True
    )
    child.start()
    while child.is_alive():
        assert store.ref("corpus", "live") in (one, other)
        assert list(store.bad_refs()) == []
    assert child.exitcode == 0


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
            reclaim(store, lambda name: False)
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
