"""The campaigns `gc-beside` and `logs` of `python -m tests.benchmarks`, with a few tries of each."""

import shutil
from pathlib import Path

import pytest

from pipeline.build.promotion import promote
from pipeline.store.store import Store
from tests.benchmarks.store.gc_beside import beside, killed, memory
from tests.benchmarks.store.log_damages import KINDS, damaged
from tests.benchmarks.store.two_snapshots import CORPUS, TwoSnapshots, taken_back


@pytest.fixture(scope="module")
def withdrawn(rebuilt_store: Store, tmp_path_factory: pytest.TempPathFactory) -> TwoSnapshots:
    root = shutil.copytree(rebuilt_store.root, tmp_path_factory.mktemp("campaign") / "whole")
    first = Store(root).ref(CORPUS, "live") or ""
    return TwoSnapshots(root, first, promote(Store(root), CORPUS).new)


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_seen_and_makes_no_withdrawn_file_live(kind: str, withdrawn: TwoSnapshots) -> None:
    counts = damaged(withdrawn, kind, 8, built_every=0)
    assert (counts["seen"], counts["unseen"], counts["revived"]) == (8, 0, 0)


def test_live_stays_readable_beside_gc_and_after_its_kill(withdrawn: TwoSnapshots) -> None:
    with memory() as folder:
        whole = TwoSnapshots(Path(shutil.copytree(withdrawn.root, folder / "whole")), withdrawn.first, withdrawn.second)
        taken_back(whole)
        for work in ("rollback", "withdraw"):
            outcomes = beside(whole, work, 2)
            assert outcomes["done"] + outcomes["refused"] == 2
            assert (outcomes["unreadable"], outcomes["alarm"]) == (0, 0)
        num_kills, num_bad = killed(whole, 40)
    assert num_kills > 3
    assert num_bad == 0
