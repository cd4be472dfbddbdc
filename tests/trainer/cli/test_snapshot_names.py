"""Names of snapshots: refs, ids, mixtures with weights and refs to follow, and the combinations that are refused."""

from functools import partial

import pytest

from pipeline.core.errors import MissingError, ParamsError
from pipeline.storage.checked_text import write_value
from pipeline.store.log import PROMOTIONS
from pipeline.store.store import Store
from trainer.cli.snapshot_names import ResolvedSnapshots, resolve_snapshots

ONE, OTHER = "1" * 64, "2" * 64


@pytest.fixture
def named(store: Store) -> Store:
    """A store of two corpora, one of which has a candidate too."""
    store.prepare()
    for corpus, name, snapshot_id in (("a", "live", OTHER), ("a", "candidate", ONE), ("b", "live", ONE)):
        move = {"corpus": corpus, "ref": name, "old": None, "new": snapshot_id, "reason": "a test"}
        store.append(PROMOTIONS, move, partial(write_value, store.root, f"refs/{corpus}/{name}", snapshot_id))
    return store


def test_one_snapshot_is_the_live_one_unless_another_is_named(named: Store) -> None:
    assert resolve_snapshots(named, "a", None, None, ()) == ResolvedSnapshots(OTHER)
    assert resolve_snapshots(named, "a", "candidate", None, ()) == ResolvedSnapshots(ONE)
    with pytest.raises(MissingError, match="snapshot live of corpus c"):
        resolve_snapshots(named, "c", None, None, ())


def test_a_followed_ref_names_the_first_snapshot_too(named: Store) -> None:
    assert resolve_snapshots(named, "a", None, "candidate", ()) == ResolvedSnapshots(ONE, follow="a/candidate")
    assert resolve_snapshots(named, "a", "live", "candidate", ()) == ResolvedSnapshots(OTHER, follow="a/candidate")


def test_a_mixture_is_in_the_order_of_its_ids_however_it_was_named(named: Store) -> None:
    expected = ResolvedSnapshots(ONE, ((ONE, 1.5), (OTHER, 2.0)))

    assert resolve_snapshots(named, None, None, None, ["a=2", "b=1.5"]) == expected
    assert resolve_snapshots(named, None, None, None, ["a/candidate=1.5", "a/live=2"]) == expected


@pytest.mark.parametrize(
    ("corpus", "snapshot", "follow", "mix", "message"),
    [
        ("a", None, None, ["a=1"], "--corpus is given too"),
        ("a", None, None, ["MITT=1"], "there is no snapshot MITT; .* begins with `source:`"),
        ("a", None, None, ["syntax_only=1"], "such as `--mix lane:syntax_only=1`"),
        (None, "live", None, ["a=1"], "--snapshot is given too"),
        ("a", "live", "live", ["a=1"], "--corpus and --snapshot and --follow are given too"),
        ("a", "live", ONE, [], "whose snapshots are repeated"),
        (None, None, None, ["a=1", "a/live=2"], "is named twice"),
        (None, None, None, ["a=0"], "its weight is 0"),
        (None, None, None, ["a=inf"], "its weight is inf"),
        (None, None, None, ["a=much"], "its weight is much"),
        (None, None, None, ["a"], "its weight is a"),
        (None, None, None, ["a/dead=1"], "there is no ref dead"),
    ],
)
def test_names_that_contradict_each_other_are_refused(
    named: Store, corpus: str | None, snapshot: str | None, follow: str | None, mix: list[str], message: str
) -> None:
    with pytest.raises(ParamsError, match=message):
        resolve_snapshots(named, corpus, snapshot, follow, mix)
