"""Logs and verdicts are read whole, or the damaged line is named."""

import pytest

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


@pytest.mark.parametrize("line", ["no json", "[]", '"text"', "{}", "7"])
def test_a_damaged_line_of_the_history_is_named_by_its_number(store: Store, line: str) -> None:
    store.move_ref("corpus", "live", None, commit_text(store, b"1"), "built")
    with (store.root / "log" / "promotions.jsonl").open("a") as file:
        file.write(f"{line}\n")

    with pytest.raises(DamagedError, match="line 2 of log"):
        store.history("corpus")
    (problem,) = fsck(store)
    assert "line 2" in problem


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff"])
def test_damaged_verdicts_are_refused_and_named(store: Store, content: bytes) -> None:
    object_id = commit_text(store, b"1")
    store.put_verdicts(object_id, [])
    (store.root / "verdicts" / f"{object_id}.json").write_bytes(content)

    with pytest.raises(DamagedError, match=f"verdicts of object {object_id[:12]}"):
        store.verdicts(object_id)
    (problem,) = fsck(store)
    assert object_id[:12] in problem
