"""Loader checks as a command: they pass on a snapshot, and name the first difference."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from trainer.proof.stored_places import num_places, unread_sources
from trainer.proof.stored_rows import AS_STORED
from trainer.proof.verify_loader import TraceOptions, check_equal, observe

OPTIONS = TraceOptions(num_rows=40)


def num_judged(store: Store) -> int:
    """Count what is judged of the order besides batches: the places of two epochs, and the sources."""
    snapshot = open_snapshot(store, store.ref("tiny", "live") or "")
    return num_places(snapshot, 0) + sum(entry.num_rows_train > 0 for entry in snapshot.sources)


def verify(store: Store, *more: str) -> tuple[int, dict[str, Any], str]:
    line = [sys.executable, "-m", "trainer", "verify-loader", "--store", str(store.root), "--corpus", "tiny", "--json"]
    done = subprocess.run([*line, *more], capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout), done.stderr


@pytest.mark.slow
def test_all_checks_pass_on_the_made_corpus(tiny_store: Store) -> None:
    code, answer, messages = verify(tiny_store, "--rows", "100", "--steps", "3")

    assert code == 0
    assert answer["passed"] is True
    assert [check["num_compared"] for check in answer["checks"]] == [
        100,
        100,
        100,
        100,
        100,
        num_judged(tiny_store) + 13 + 20,
        1,
        3,
        88,
    ]
    assert messages.count("equal") == 9


def test_without_steps_the_loader_alone_is_checked(tiny_store: Store) -> None:
    code, answer, _ = verify(tiny_store, "--rows", "30", "--steps", "0")

    assert code == 0
    assert [check["num_compared"] for check in answer["checks"]] == [
        30,
        30,
        30,
        30,
        30,
        num_judged(tiny_store) + 4 + 6,
        15,
    ]


def test_a_row_of_each_source_that_is_not_reached_is_judged(tiny_store: Store) -> None:
    snapshot = open_snapshot(tiny_store, tiny_store.ref("tiny", "live") or "")
    trace = observe(snapshot, replace(OPTIONS, num_rows=1))
    names = {entry.name for entry in snapshot.sources if entry.num_rows_train} - {trace["triples"][0][1]}

    assert sorted(unread_sources(snapshot, trace)) == sorted(names)
    assert trace["unread"] == dict.fromkeys(names, AS_STORED)


def test_another_seed_reads_another_order_and_another_infilling(tiny_store: Store) -> None:
    snapshot = open_snapshot(tiny_store, tiny_store.ref("tiny", "live") or "")
    mine, theirs = observe(snapshot, OPTIONS), observe(snapshot, replace(OPTIONS, seed=43))

    for name in ("triples", "rows", "infillings"):
        check = check_equal(name, mine[name], theirs[name])
        assert not check.passed
        assert check.first_difference.startswith("number 0: ")


def test_a_row_that_changed_is_found(tiny_store: Store, tmp_path: Path) -> None:
    """The hashes of rows look at the bytes, not at their names: one flipped bit, and the reading is refused."""
    shutil.copytree(tiny_store.root, tmp_path / "store")
    store = Store(tmp_path / "store")
    snapshot = open_snapshot(store, store.ref("tiny", "live") or "")
    source = next(entry for entry in snapshot.sources if entry.num_rows_train)
    path = store.read(source.rows).path / "rows_train.arrow"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(content)
    code, answer, _ = verify(store, "--rows", "30", "--steps", "0")

    assert code == 1
    assert "rows_train.arrow" in answer["message"]


def test_nothing_compared_does_not_pass_and_a_shorter_list_differs() -> None:
    assert not check_equal("nothing", [], []).passed
    check = check_equal("lengths", [1, 2, 3], [1, 2])
    assert (check.num_compared, check.num_differing, check.first_difference) == (3, 1, "number 2: 3 and None")
