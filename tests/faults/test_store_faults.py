"""Faults at each call by which a build or a promotion changes the disk leave old or new state, one sentence, and nothing to repair.

Each call is found by counting: the run is made again and again, with the fault one call later, until it meets none.
"""

import errno
import hashlib
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.promotion import promote
from pipeline.build.recipes import TINY
from pipeline.build.run_stage import StageResult, run_stages
from pipeline.core.durable import write_synced
from pipeline.pins.local_tree import tree_digest
from pipeline.stages.collect.kinds.local import LocalPin
from pipeline.store.fsck import fsck
from pipeline.store.garbage import reclaim
from pipeline.store.objects import key_of
from pipeline.store.store import Store
from tests.faults.injected_faults import REMOVALS, WRITES, die, fail, in_child, inject

CODE = "// SPDX-License-" + "Identifier: MIT\n" + "".join(f"int f{n}(int a) {{ return a * {n}; }}\n" for n in range(60))
KEY = key_of("collect/part", {"name": "mine"}, {})


def build(root: Path, tree: Path) -> str:
    pin = LocalPin(name="mine", path=tree, digest=tree_digest(tree), declared_license="MIT")
    with open_build(BuildRequest("mine", TINY.params, (pin,), "a test"), Store(root)) as opened:
        return [result.object_id for result in run_stages(opened, "tokenize")][-1]


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder in memory where there is one: thousands of syncs of a disk take minutes, and no power is cut here."""
    place = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=place if place.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    (folder / "main.c").write_text(CODE)
    return folder


@pytest.fixture(scope="module")
def expected_id(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return build(tmp_path_factory.mktemp("whole") / "store", tree)


def work_of_a_build(root: Path) -> dict[str, str]:
    """All that a build does to its store, without the work: blob, part, key, stage, verdicts, refs. Returns the refs."""
    store = Store(root)
    with store.writer("mine", "a test") as scratch:
        blob = store.put_blob([b"by", b"tes"], hashlib.sha256(b"bytes").hexdigest(), "mine")
        for name in ("part", "stage"):
            (scratch / name).mkdir()
            write_synced(scratch / name / "content.bin", blob.read_bytes() + name.encode())
        part_id = store.known(KEY) or store.commit(scratch / "part", "collect/part", {"name": "mine"}, {})
        store.remember(KEY, part_id)
        stage_id = store.commit(scratch / "stage", "collect/stage", {}, {"part/mine": part_id})
        store.put_verdicts(stage_id, [])
        for ref in ("collect", "candidate", "live"):
            store.move_ref("mine", ref, store.ref_text("mine", ref), stage_id, "built")
    return store.refs("mine")


@pytest.mark.parametrize("prepared", ["empty", "damaged", "built"])
def test_killed_at_every_call_the_store_is_sound_and_the_next_work_ends_in_the_same_refs(
    memory: Path, prepared: str
) -> None:
    expected = work_of_a_build(memory / "whole")
    number, code = 0, -signal.SIGKILL
    while code == -signal.SIGKILL:
        number += 1
        root = prepare(memory / f"killed-{number}", prepared)

        def work(root: Path = root, number: int = number) -> None:
            with inject(number, die):
                work_of_a_build(root)

        code = in_child(work)
        assert_sound(root, expected, prepared, number)
    assert code == 0
    assert number > 15


@pytest.mark.parametrize(
    ("prepared", "errors"),
    [
        ("empty", (errno.ENOSPC, errno.EROFS)),
        ("damaged", (errno.ENOSPC, errno.EROFS)),
        ("built", (errno.EROFS, errno.ENOSPC)),
    ],
)
def test_refused_at_every_call_the_store_is_sound_and_the_next_work_ends_in_the_same_refs(
    memory: Path, errors: tuple[int, int], prepared: str
) -> None:
    """Refuse the calls in turns for want of room and because the disk is read-only."""
    expected = work_of_a_build(memory / "whole")
    root = prepare(memory / "counted", prepared)
    with inject(0, die) as count:
        work_of_a_build(root)
    assert count[0] > 15
    for number in range(1, count[0] + 1):
        root = prepare(memory / f"refused-{number}", prepared)
        with inject(number, fail(errors[number % 2])), suppress(OSError):
            assert work_of_a_build(root) == expected
        assert not (root / "tmp" / "mine").exists()
        assert_sound(root, expected, prepared, number)


def prepare(root: Path, state: str) -> Path:
    """A store in which nothing was built yet, or a copy of the whole one beside it, perhaps damaged."""
    if state != "empty":
        shutil.copytree(root.parent / "whole", root)
    if state == "damaged":
        for path in root.glob("objects/*/*/*/content.bin"):
            path.write_bytes(b"")
        (root / "refs" / "mine" / "live").write_bytes(b"")
    return root


def assert_sound(root: Path, expected: dict[str, str], prepared: str, number: int) -> None:
    """Assert that a sound store is still sound, and that repeating the work repairs a damaged one."""
    store = Store(root)
    if prepared != "damaged":
        assert fsck(store) == [], f"call {number}"
        assert set(store.refs("mine").values()) <= set(expected.values())
    assert work_of_a_build(root) == expected, f"call {number}"
    assert fsck(store) == [], f"call {number}"
    assert [path for path in root.glob("tmp/*") if path.name != ".blobs"] == [], f"call {number}"
    for ref, object_id in expected.items():
        assert [entry["new"] for entry in store.history("mine") if entry["ref"] == ref][-1] == object_id


@pytest.mark.slow  # two builds for each of ten calls
@pytest.mark.parametrize("number", range(1, 91, 9))
def test_killed_at_a_call_a_build_ends_in_the_same_id(
    tmp_path: Path, tree: Path, expected_id: str, number: int
) -> None:
    def work() -> None:
        with inject(number, die):
            build(tmp_path / "store", tree)

    assert in_child(work) == -signal.SIGKILL
    assert fsck(Store(tmp_path / "store")) == []
    assert build(tmp_path / "store", tree) == expected_id
    assert fsck(Store(tmp_path / "store")) == []


def test_killed_at_every_call_a_promotion_moves_live_or_leaves_it(
    memory: Path, tiny_store: Store, tiny_results: list[StageResult]
) -> None:
    snapshot_id = tiny_results[-1].snapshot_id
    root = memory / "store"
    shutil.copytree(tiny_store.root, root)
    number, code = 0, -signal.SIGKILL
    while code == -signal.SIGKILL:
        number += 1
        Store(root).remove_ref("tiny", "live", "a test")

        def work(number: int = number) -> None:
            with inject(number, die):
                promote(Store(root), "tiny")

        code = in_child(work)
        store = Store(root)
        moves = [entry["new"] for entry in store.history("tiny") if entry["ref"] == "live"]
        assert store.ref("tiny", "live") in (None, snapshot_id)
        assert store.ref("tiny", "live") is None or moves[-1] == snapshot_id
        assert promote(store, "tiny").new == snapshot_id
    assert number > 5
    assert fsck(Store(root)) == []


def test_killed_at_every_call_gc_leaves_a_sound_store_and_whoever_comes_next_finishes(memory: Path) -> None:
    whole = memory / "whole"
    work_of_a_build(whole)
    for ref in ("candidate", "live"):
        Store(whole).remove_ref("mine", ref, "a test")
    number, code = 0, -signal.SIGKILL
    while code == -signal.SIGKILL:
        number += 1
        root = memory / f"killed-{number}"
        shutil.copytree(whole, root)
        Store(root).remove_ref("mine", "collect", "a test")

        def work(root: Path = root, number: int = number) -> None:
            with inject(number, die, WRITES + REMOVALS):
                reclaim(Store(root), lambda name: False)

        code = in_child(work)
        assert fsck(Store(root)) == [], f"call {number}"
        assert not (root / "removing").exists(), f"call {number}"
        reclaim(Store(root), lambda name: False)
        left = [path for folder in ("keys", "verdicts", "objects/*/*", "removing") for path in root.glob(f"{folder}/*")]
        assert left == [], f"call {number}"
        assert fsck(Store(root)) == [], f"call {number}"
    assert code == 0
    assert number > 20
