"""Logs and verdicts are read whole, or the damaged line is named."""

from collections.abc import Callable
from functools import partial

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import TINY, pins_of
from pipeline.build.withdrawal import active_withdrawals
from pipeline.cli.main import main
from pipeline.core.errors import DamagedError
from pipeline.store.fsck import fsck
from pipeline.store.store import Store
from tests.support.stored_text import commit_text


def test_every_move_of_a_ref_is_in_the_history(store: Store) -> None:
    first, second = commit_text(store, b"1"), commit_text(store, b"2")
    store.move_ref("corpus", "live", None, first, "built")
    store.move_ref("corpus", "live", first, second, "promoted")

    assert [(entry["old"], entry["new"], entry["reason"]) for entry in store.history("corpus")] == [
        (None, first, "built"),
        (first, second, "promoted"),
    ]


def test_a_torn_line_of_the_history_is_cut_by_the_next_move(store: Store) -> None:
    first, second = commit_text(store, b"1"), commit_text(store, b"2")
    store.move_ref("corpus", "live", None, first, "built")
    with (store.root / "log" / "promotions.jsonl").open("a") as file:
        file.write('{"corpus": "cor')
    store.move_ref("corpus", "live", first, second, "promoted")

    assert [entry["new"] for entry in store.history("corpus")] == [first, second]


@pytest.mark.parametrize("line", ["no json", "[]", '"text"', "{}", "7", ""])
def test_a_foreign_line_of_the_history_is_named_by_its_number(store: Store, line: str) -> None:
    store.move_ref("corpus", "live", None, commit_text(store, b"1"), "built")
    with (store.root / "log" / "promotions.jsonl").open("a") as file:
        file.write(f"{line}\n")

    with pytest.raises(DamagedError, match="line 2 of log"):
        store.history("corpus")
    (problem,) = fsck(store)
    assert "line 2" in problem


def _altered(content: bytes, number: int) -> bytes:
    lines = content.splitlines(keepends=True)
    return b"".join([*lines[:number], lines[number].replace(b"zlib", b"zlob"), *lines[number + 1 :]])


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    **{f"line {number} altered": partial(_altered, number=number) for number in range(4)},
    "first line removed": lambda content: content.partition(b"\n")[2],
    "last line removed": lambda content: content[: content.rindex(b"\n", 0, -1) + 1],
    "two lines swapped": lambda content: b"".join(content.splitlines(keepends=True)[index] for index in (1, 0, 2, 3)),
    "cut by a byte": lambda content: content[:-1],
    "cut within a line": lambda content: content[:-30],
    "empty": lambda content: b"",
    "a byte more": lambda content: content + b"x",
    "a line twice": lambda content: content + content.splitlines(keepends=True)[-1],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_withdrawal_that_is_altered_or_gone_is_never_overlooked(store: Store, damage: str) -> None:
    log = store.root / "log" / "withdrawals.jsonl"
    for selector in ("zlib", "zlib/a", "zlib/b", "zlib/c"):
        store.log_withdrawal(selector, "a test")
    log.write_bytes(DAMAGES[damage](log.read_bytes()))

    with pytest.raises(DamagedError, match=r"log/withdrawals\.jsonl"):
        active_withdrawals(store)
    order = BuildRequest("tiny", TINY.params, pins_of(TINY), "a test")
    with pytest.raises(DamagedError, match=r"withdrawals\.jsonl"), open_build(order, store):
        pass
    (problem,) = fsck(store)
    assert "withdrawals.jsonl" in problem


@pytest.mark.parametrize("place", ["log/withdrawals.jsonl", "log/withdrawals.head"])
def test_a_deleted_log_or_head_is_never_an_empty_one(store: Store, place: str) -> None:
    store.log_withdrawal("zlib", "a test")
    (store.root / place).unlink()

    with pytest.raises(DamagedError, match="log/withdrawals"):
        active_withdrawals(store)
    with pytest.raises(DamagedError, match="log/withdrawals"):
        store.log_withdrawal("other", "a test")
    assert len(fsck(store)) == 1


def test_the_heads_and_the_lines_of_two_logs_cannot_be_swapped(store: Store) -> None:
    store.log_withdrawal("zlib", "a test")
    folder = store.root / "log"
    for one, other in (("withdrawals.head", "promotions.head"), ("withdrawals.jsonl", "blobs.jsonl")):
        first, second = folder / one, folder / other
        second.touch()
        before = first.read_bytes(), second.read_bytes()
        first.write_bytes(before[1])
        second.write_bytes(before[0])
        with pytest.raises(DamagedError, match="log/withdrawals"):
            active_withdrawals(store)
        first.write_bytes(before[0])
        second.write_bytes(before[1])
    assert len(active_withdrawals(store)) == 1


def test_a_head_that_was_never_moved_to_the_first_line_is_repaired_and_to_the_second_is_refused(store: Store) -> None:
    log, head = (store.root / "log" / f"withdrawals.{suffix}" for suffix in ("jsonl", "head"))
    store.accept_logs()
    before = head.read_bytes()
    store.log_withdrawal("zlib", "a test")
    head.write_bytes(before)
    assert [entry["selector"] for entry in store.withdrawals()] == ["zlib"]
    store.log_withdrawal("other", "a test")
    assert [entry["selector"] for entry in store.withdrawals()] == ["zlib", "other"]
    written = log.read_bytes()
    head.write_bytes(before)
    with pytest.raises(DamagedError, match="not the last line"):
        store.log_withdrawal("third", "a test")
    with pytest.raises(DamagedError, match=r"log/withdrawals\.jsonl"):
        list(store.withdrawals())
    assert log.read_bytes() == written


@pytest.mark.parametrize("cut", [0, 1, 5, 40, 10_000])
def test_a_line_that_was_never_finished_and_a_head_that_was_never_moved_are_repaired(store: Store, cut: int) -> None:
    log, head = (store.root / "log" / f"withdrawals.{suffix}" for suffix in ("jsonl", "head"))
    store.log_withdrawal("zlib", "a test")
    before, head_before = log.read_bytes(), head.read_bytes()
    store.log_withdrawal("other", "a test")
    head.write_bytes(head_before)
    log.write_bytes(before + log.read_bytes()[len(before) :][:cut])
    whole = ["zlib", "other"] if cut == 10_000 else ["zlib"]

    assert [entry["selector"] for entry in store.withdrawals()] == whole
    assert fsck(store) == []
    store.log_withdrawal("third", "a test")
    assert [entry["selector"] for entry in store.withdrawals()] == [*whole, "third"]


def test_a_log_that_was_corrected_by_hand_is_accepted_on_request(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    for selector in ("zlib", "other"):
        store.log_withdrawal(selector, "a test")
    log = store.root / "log" / "withdrawals.jsonl"
    log.write_bytes(log.read_bytes().replace(b"zlib", b"zlob"))
    command = ["fsck", "--store", str(store.root)]
    assert main(command) == 1
    log.write_bytes(log.read_bytes().replace(b"zlob", b"zlib/**"))

    assert main([*command, "--accept-logs"]) == 0
    assert [selector.text for selector in active_withdrawals(store)] == ["other", "zlib/**"]
    assert main(command) == 0


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff", b'{"verdicts": []}', b"[" * 200_000])
def test_damaged_verdicts_are_refused_and_named(store: Store, content: bytes) -> None:
    object_id = commit_text(store, b"1")
    store.put_verdicts(object_id, [])
    assert (store.verdicts(object_id) or {})["verdicts"] == []
    (store.root / "verdicts" / f"{object_id}.json").write_bytes(content)

    with pytest.raises(DamagedError, match=f"verdicts of object {object_id[:12]}"):
        store.verdicts(object_id)
    (problem,) = fsck(store)
    assert object_id[:12] in problem
