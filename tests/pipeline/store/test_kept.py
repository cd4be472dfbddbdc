"""The last live snapshots and what a blocked build reached stay, and each is told what for."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipeline.store.kept import BLOCKED_FOR, NUM_LIVE, kept_for
from pipeline.store.store import Store

DAY = timedelta(days=1)


@pytest.fixture
def now() -> list[datetime]:
    return [datetime(2026, 5, 1, tzinfo=UTC)]


@pytest.fixture
def clocked(tmp_path: Path, now: list[datetime]) -> Store:
    return Store(tmp_path / "store", lambda: now[0])


def add(store: Store, name: str) -> str:
    with store.writer("mine", "a test") as folder:
        (folder / "made").mkdir()
        (folder / "made" / "name").write_text(name)
        return store.commit(folder / "made", "verify/part", {"name": name}, {})


def kept(store: Store, withdrawn: str = "", forgotten: str | None = None) -> dict[str, list[str]]:
    return kept_for(store, lambda name: name == withdrawn, forgotten)


def test_one_can_roll_back_to_the_last_five_that_were_live(clocked: Store, now: list[datetime]) -> None:
    ids = [add(clocked, f"{number}") for number in range(7)]
    order = [*ids, ids[3]]  # rolled back to
    for before, new in zip([None, *order], order, strict=False):
        now[0] += DAY
        clocked.move_ref("mine", "live", before, new, "promoted")
    found = kept(clocked)
    assert NUM_LIVE == 5
    assert set(found) == {ids[2], ids[4], ids[5], ids[6], ids[3]}
    assert found[ids[3]] == ["ref mine/live"]
    assert found[ids[6]] == ["live in mine until 2026-05-09: one of the last 5, to roll back to"]
    assert set(kept(clocked, withdrawn=ids[5])) == set(found) - {ids[5]}
    assert kept(clocked, forgotten="mine") == {}
    clocked.remove_ref("mine", "live", "forgotten")
    assert kept(clocked) == {}


def test_what_a_gate_stopped_stays_for_a_week_unless_something_was_withdrawn(
    clocked: Store, now: list[datetime]
) -> None:
    passed, warned, blocked = (add(clocked, name) for name in ("passed", "warned", "blocked"))
    for name, blocking, has_passed in ((passed, True, True), (warned, False, False), (blocked, True, False)):
        clocked.put_verdicts(name, [{"gate": "no_secret", "blocking": blocking, "passed": has_passed}])
    now[0] += BLOCKED_FOR - timedelta(seconds=1)
    assert kept(clocked) == {blocked: ["blocked on 2026-05-01 by no_secret: kept for 7 days"]}
    now[0] += timedelta(seconds=1)
    assert kept(clocked) == {}
    now[0] -= DAY
    clocked.log_withdrawal("somebody/**", "asked")
    assert kept(clocked) == {}


def test_what_cannot_be_judged_stays_for_a_week_unless_something_was_withdrawn(
    clocked: Store, now: list[datetime]
) -> None:
    damaged = add(clocked, "damaged")
    clocked.put_verdicts(damaged, [])
    path = clocked.root / "verdicts" / f"{damaged}.json"
    path.write_text("{}")
    os.utime(path, (now[0].timestamp(), now[0].timestamp()))
    now[0] += BLOCKED_FOR - timedelta(seconds=1)
    assert "verdicts are damaged" in kept(clocked)[damaged][0]
    now[0] += timedelta(seconds=1)
    assert kept(clocked) == {}, "otherwise nothing would repair what is no longer built"
    now[0] -= DAY
    clocked.log_withdrawal("somebody/**", "asked")
    assert kept(clocked) == {}
