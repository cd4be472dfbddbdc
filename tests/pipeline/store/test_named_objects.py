"""Objects are found by refs, ids, the first digits of ids, and by run and step; what is not found names what is there."""

import re

import pytest

from pipeline.core.errors import MissingError
from pipeline.store.named_objects import resolve
from pipeline.store.snapshot import resolve_snapshot
from pipeline.store.store import Store


@pytest.fixture
def trained(store: Store) -> Store:
    """A store with the checkpoints of a run after steps 2 and 4."""
    with store.writer("runs/mine", "a test") as scratch:
        for step in (2, 4):
            (scratch / str(step)).mkdir()
            saved = store.commit(scratch / str(step), "training/checkpoint", {"step": step}, {})
            store.move_ref("runs/mine", "latest", store.ref("runs/mine", "latest"), saved, "saved")
    return store


def test_a_ref_an_id_and_its_first_digits_are_one_object(tiny_store: Store) -> None:
    verify_id, live = (tiny_store.ref("tiny", name) or "" for name in ("verify", "live"))

    names = ("last", "verify", "tiny/last", verify_id, verify_id[:12], verify_id[:6])
    assert {resolve(tiny_store, "tiny", name) for name in names} == {verify_id}
    assert {resolve_snapshot(tiny_store, "tiny", name) for name in ("live", "candidate", "last", live[:8])} == {live}


@pytest.mark.parametrize("name", ["live", "candidate"])
def test_what_a_blocked_build_has_not_made_is_told_with_that_build(store: Store, name: str) -> None:
    with store.writer("mine", "a test") as scratch:
        (scratch / "one").mkdir()
        made = store.commit(scratch / "one", "collect/stage", {}, {})
        store.move_ref("mine", "last", None, made, "built")
    said = "The last build has not come to a candidate: `python -m pipeline show --corpus mine --of last` says what"
    for resolve_name in (resolve, resolve_snapshot):
        with pytest.raises(MissingError, match=re.escape(said)):
            resolve_name(store, "mine", name)


def test_a_checkpoint_is_found_by_run_and_step(trained: Store) -> None:
    latest = trained.ref("runs/mine", "latest")

    assert resolve(trained, "tiny", "mine@4") == latest
    assert trained.read(resolve(trained, "tiny", "mine@2")).identity == {"step": 2}
    with trained.writer("runs/mine", "a test") as scratch:
        (scratch / "other").mkdir()
        other = trained.commit(scratch / "other", "training/checkpoint", {"step": 3}, {})
    trained.move_ref("runs/mine", "initialized-from", None, other, "weights of another")
    with pytest.raises(MissingError, match="checkpoint mine@3: there is none; expected one of mine@2, mine@4"):
        resolve(trained, "tiny", "mine@3")
    with pytest.raises(MissingError, match="expected one of mine@STEP"):
        resolve(trained, "tiny", "other@4")
    with pytest.raises(
        MissingError, match="checkpoint mine: it is a run, and no checkpoint; expected one of mine@2, mine@4"
    ):
        resolve(trained, "", "mine", "training/checkpoint")


def test_digits_of_several_objects_list_five_of_them(store: Store) -> None:
    names = [f"abcdef{number}".ljust(64, "0") for number in range(7)]
    for name in names:
        (store.root / "objects" / "collect" / "part" / name).mkdir(parents=True)
        (store.root / "objects" / "collect" / "part" / name / "manifest.json").touch()

    with pytest.raises(MissingError, match="7 objects are named so: ") as raised:
        resolve(store, "tiny", "abcdef")
    assert [name[:12] for name in names if name[:12] in str(raised.value)] == [name[:12] for name in names[:5]]


def test_digits_of_another_kind_are_said_to_be_of_that(tiny_store: Store) -> None:
    snapshot_id = tiny_store.ref("tiny", "live") or ""
    said = rf"it is no training/checkpoint: {snapshot_id[:12]} \(snapshot/snapshot\); expected a training/checkpoint or"

    with pytest.raises(MissingError, match=said):
        resolve(tiny_store, "tiny", snapshot_id[:8], "training/checkpoint")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("lasst", "it is not an id, nor a ref of corpus tiny; expected one of last"),
        ("0123456", "no object's id begins so"),
        ("abcd", "The first 6 digits of an id are enough"),
        ("../tiny/live", "it is not an id, nor a ref of corpus tiny"),
        ("0" * 64, "it is not in the store"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(tiny_store: Store, name: str, said: str) -> None:
    with pytest.raises(MissingError, match=said):
        resolve(tiny_store, "tiny", name)
