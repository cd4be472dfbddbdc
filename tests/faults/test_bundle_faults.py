"""Imports that are killed, or run into a full disk, leave a sound store; the next one ends the same."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.store.bundles.export_bundle import export_bundle
from pipeline.store.bundles.import_bundle import import_bundle
from pipeline.store.fsck import fsck
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from tests.faults.injected_faults import Fault, die, fail, in_child, inject

FAULTS = {
    **{f"killed at {share}": (die, share) for share in (0.3, 0.7, 0.8, 0.9, 0.97)},
    **{f"full at {share}": (fail(errno.ENOSPC), share) for share in (0.2, 0.85)},
}
"""Faults, and the shares of the calls that change the disk at which they come: files, then objects, keys, verdicts and refs."""


@pytest.fixture(scope="module")
def bundle(tiny_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of the built corpus."""
    target = tmp_path_factory.mktemp("bundle") / "tiny.bundle"
    export_bundle(open_snapshot(tiny_store, tiny_store.ref("tiny", "live") or ""), target, "# A card\n")
    return target


@pytest.fixture(scope="module")
def num_calls(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> int:
    """The calls of an import that change the disk."""
    with inject(0, die) as count:
        import_bundle(Store(tmp_path_factory.mktemp("counted") / "store"), bundle)
    return count[0]


@pytest.mark.parametrize("name", FAULTS)
def test_what_an_import_leaves_is_sound_and_the_next_one_ends_the_same(
    store: Store, bundle: Path, num_calls: int, name: str
) -> None:
    fault, share = FAULTS[name]
    assert _ended_at(int(share * num_calls), fault, lambda: import_bundle(store, bundle)) != 0
    left = Store(store.root)
    named = left.refs("imported")

    assert fsck(left) == []
    assert all(left.locate(name) for name in named.values())
    done = import_bundle(left, bundle)
    assert left.ref("imported", "candidate") == done.snapshot_id
    assert fsck(left) == []


def _ended_at(number: int, fault: Fault, work: Callable[[], object]) -> int:
    """Do it in a child with a fault at a call, and return how it ended."""

    def faulty_work() -> None:
        try:
            with inject(number, fault):
                work()
        except OSError as error:
            os._exit(1 if error.errno == errno.ENOSPC else 0)

    return in_child(faulty_work)
