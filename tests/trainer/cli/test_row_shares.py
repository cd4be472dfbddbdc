"""Arguments that select rows: which are of rows, and each mistake as a sentence."""

import re

import pytest

from pipeline.core.errors import ParamsError
from pipeline.store.snapshot import Snapshot, open_snapshot
from pipeline.store.store import Store
from trainer.cli.row_shares import row_selection
from trainer.config.mix import divide_mix
from trainer.data.row_selection import Dimension, RowSelection


@pytest.fixture(scope="module")
def snapshot(tiny_store: Store) -> Snapshot:
    return open_snapshot(tiny_store, tiny_store.ref("tiny", "candidate") or "")


@pytest.mark.parametrize(
    ("argument", "by", "shares"),
    [
        ("syntax_only=1", Dimension.LANE, (("syntax_only", 1.0),)),
        ("odds=1,lantern=2", Dimension.SOURCE, (("lantern", 2.0), ("odds", 1.0))),
        ("MIT=1,Apache-2.0=1", Dimension.LICENSE, (("Apache-2.0", 1.0), ("MIT", 1.0))),
        ("license:permissive=1,MPL-2.0=2", Dimension.LICENSE, (("MPL-2.0", 2.0), ("permissive", 1.0))),
    ],
)
def test_shares_are_by_lane_by_source_or_by_license(
    snapshot: Snapshot, argument: str, by: Dimension, shares: tuple[tuple[str, float], ...]
) -> None:
    divided = divide_mix([argument])
    assert divided == ((), argument)
    assert row_selection([snapshot], [], divided.shares) == RowSelection((), by, shares)


def test_filters_are_joined_by_dimension(snapshot: Snapshot) -> None:
    found = row_selection([snapshot], ["source=odds, lantern", "license=permissive"], None)
    assert found.only == ((Dimension.LICENSE, ("permissive",)), (Dimension.SOURCE, ("lantern", "odds")))


@pytest.mark.parametrize(
    ("only", "mix", "words"),
    [
        (
            ["licence=MIT"],
            [],
            "it names no rows; expected source, lane, license, and values after `=`. Did you mean license?",
        ),
        (["lane="], [], "it names no rows"),
        (["source=odds", "source=lantern"], [], "source is named twice"),
        ([], ["origin:a=1"], "origin is no property of a row"),
        ([], ["lane:syntax_only=0.7,source:odds=0.3"], "it names lane and source; expected shares by one of them"),
        ([], ["syntax_only=0.7,degraded=none"], "degraded=none is no name with its share"),
        ([], ["syntax_only=0.7,syntax_only=0.3"], "syntax_only has two shares; expected each name once"),
        ([], ["syntax_only=0.7,"], "an empty entry is no name with its share"),
        (
            [],
            ["build_aware"],
            "--mix build_aware: build_aware is no name with its share; expected NAME=SHARE, a number above",
        ),
        (
            [],
            ["licence:MIT=1"],
            "licence is no property of a row; expected source, lane, license. Did you mean license?",
        ),
        ([], ["odds=1,lantern=1", "quick=1"], "2 of them are given, and odds=1,lantern=1 gives shares of rows"),
    ],
)
def test_a_mistake_is_a_sentence(snapshot: Snapshot, only: list[str], mix: list[str], words: str) -> None:
    with pytest.raises(ParamsError, match=re.escape(words)):
        row_selection([snapshot], only, divide_mix(mix).shares)
