"""Logs are read whole, or the damaged line is named."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import TINY, pins_of
from pipeline.build.withdrawal import active_withdrawals
from pipeline.cli.main import main
from pipeline.core.errors import DamagedError
from pipeline.storage.checked_text import read_value, write_value
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
        file.write('{"chain":"0a')
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


def _heads(store: Store) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in [*sorted(store.root.glob("log/*.head")), store.root / "ends"]}


def _put_back(files: dict[Path, bytes]) -> None:
    for path, content in files.items():
        path.write_bytes(content)


@pytest.mark.parametrize("num_moves_after", [0, 1])
@pytest.mark.parametrize("form", ["cut", "deleted"])
def test_a_log_that_is_shorter_than_another_head_says_is_refused_with_an_older_head_of_its_own(
    store: Store, form: str, num_moves_after: int
) -> None:
    log, head = (store.root / "log" / f"withdrawals.{suffix}" for suffix in ("jsonl", "head"))
    store.accept_logs()
    if form == "cut":
        store.log_withdrawal("first", "a test")
    before = {path: path.read_bytes() for path in (log, head) if path.exists()}
    store.log_withdrawal("zlib", "a test")
    for number in range(num_moves_after):
        store.move_ref("corpus", f"ref-{number}", None, commit_text(store, b"1"), "built")
    log.unlink()
    _put_back(before)

    for read in (store.withdrawals, partial(active_withdrawals, store), partial(store.log_withdrawal, "b", "a test")):
        with pytest.raises(DamagedError, match=r"log/withdrawals\.jsonl: .*as log/\w+\.head says"):
            read()
    store.move_ref(
        "corpus", "live", None, commit_text(store, b"1"), "built"
    )  # what the other heads saw is not forgotten
    assert [problem.partition(":")[0] for problem in fsck(store)] == ["log/withdrawals.jsonl"]
    store.accept_logs()
    assert fsck(store) == []


@pytest.mark.parametrize("log", ["promotions", "withdrawals", "blobs"])
def test_each_log_is_held_by_the_heads_of_the_others(store: Store, log: str) -> None:
    store.accept_logs()
    names = [store.root / "log" / f"{log}.{suffix}" for suffix in ("jsonl", "head")]
    before = {path: path.read_bytes() for path in names if path.exists()}
    store.log_withdrawal("zlib", "a test")
    store.log_blob("0" * 64, is_removed=True)
    store.move_ref("corpus", "live", None, commit_text(store, b"1"), "built")
    names[0].unlink()
    _put_back(before)

    assert any(problem.startswith(f"log/{log}.jsonl: ") for problem in fsck(store))


@pytest.mark.parametrize("folders", [("log",), ("log", "refs")])
def test_all_of_the_logs_from_an_older_copy_are_refused_so_that_nothing_withdrawn_since_comes_back(
    store: Store, folders: tuple[str, ...]
) -> None:
    store.move_ref("corpus", "live", None, commit_text(store, b"1"), "built")
    copies = {folder: shutil.copytree(store.root / folder, store.root.parent / folder) for folder in folders}
    store.log_withdrawal("zlib", "asked")
    for folder, copy in copies.items():
        shutil.rmtree(store.root / folder)
        copy.rename(store.root / folder)

    for read in (partial(active_withdrawals, store), partial(store.log_withdrawal, "b", "a test")):
        with pytest.raises(
            DamagedError, match=r"withdrawals\.jsonl: it is older: .*names 0 lines; expected 1, as ends"
        ):
            read()
    store.move_ref("corpus", "live", commit_text(store, b"1"), commit_text(store, b"2"), "what was seen stays seen")
    assert [problem.partition(":")[0] for problem in fsck(store)] == ["log/withdrawals.jsonl"]
    store.accept_logs()
    assert fsck(store) == []
    assert active_withdrawals(store) == ()


@pytest.mark.parametrize("content", [None, b"", b"withdrawals.jsonl=0:1\n"])
def test_without_the_ends_of_the_logs_nothing_is_read(store: Store, content: bytes | None) -> None:
    store.log_withdrawal("zlib", "asked")
    ends = store.root / "ends"
    ends.unlink() if content is None else ends.write_bytes(content)
    with pytest.raises(DamagedError, match=r"the ends of all logs \(ends\): .*fsck --accept-logs"):
        active_withdrawals(store)
    assert fsck(store)
    store.accept_logs()
    assert fsck(store) == []
    assert len(active_withdrawals(store)) == 1


def test_a_head_of_an_earlier_version_that_names_no_other_log_is_read(store: Store) -> None:
    store.log_withdrawal("zlib", "a test")
    for name in ("promotions", "withdrawals", "blobs"):
        place = f"log/{name}.head"
        value = read_value(store.root, place, place, "") or ""
        write_value(store.root, place, " ".join(value.split()[:2]))
    (store.root / "ends").unlink()

    assert fsck(store) == []
    assert len(active_withdrawals(store)) == 1
    store.log_blob("0" * 64, is_removed=True)
    assert fsck(store) == []
    assert "withdrawals.jsonl=1:" in (store.root / "ends").read_text()


def test_a_head_that_was_never_moved_to_the_first_line_is_repaired_and_to_the_second_is_refused(store: Store) -> None:
    log = store.root / "log" / "withdrawals.jsonl"
    store.accept_logs()
    before = _heads(store)
    store.log_withdrawal("zlib", "a test")
    _put_back(before)
    assert [entry["selector"] for entry in store.withdrawals()] == ["zlib"]
    store.log_withdrawal("other", "a test")
    assert [entry["selector"] for entry in store.withdrawals()] == ["zlib", "other"]
    written = log.read_bytes()
    _put_back(before)
    with pytest.raises(DamagedError, match="not the last line"):
        store.log_withdrawal("third", "a test")
    with pytest.raises(DamagedError, match=r"log/withdrawals\.jsonl"):
        list(store.withdrawals())
    assert log.read_bytes() == written


@pytest.mark.parametrize("cut", [0, 1, 5, 40, 10_000])
def test_a_line_that_was_never_finished_and_a_head_that_was_never_moved_are_repaired(store: Store, cut: int) -> None:
    log = store.root / "log" / "withdrawals.jsonl"
    store.log_withdrawal("zlib", "a test")
    before, heads_before = log.read_bytes(), _heads(store)
    store.log_withdrawal("other", "a test")
    _put_back(heads_before)
    log.write_bytes(before + log.read_bytes()[len(before) :][:cut])
    whole = ["zlib", "other"] if cut == 10_000 else ["zlib"]

    assert [entry["selector"] for entry in store.withdrawals()] == whole
    assert fsck(store) == []
    store.log_withdrawal("third", "a test")
    assert [entry["selector"] for entry in store.withdrawals()] == [*whole, "third"]


def test_a_log_that_was_corrected_by_hand_is_accepted_on_request(store: Store) -> None:
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
