"""Promotion shows for each gate in which build and with which code it was last seen red, and sends nothing."""

import hashlib
from datetime import UTC, datetime

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.canaries import canaries
from pipeline.build.promotion import promote
from pipeline.build.recipes import TINY, pins_of
from pipeline.build.run_stage import StageResult, run_stages
from pipeline.build.seen_red import seen_red
from pipeline.contracts.gates import GATES
from pipeline.core.digests import code_digest
from pipeline.store.store import Store
from tests.support.paths import ROOT


def build(store: Store) -> StageResult:
    with open_build(BuildRequest("tiny", TINY.params, pins_of(TINY), "a test"), store) as opened:
        return list(run_stages(opened))[-1]


def test_every_gate_was_seen_red_by_an_offense_in_the_build_that_made_it(
    copied: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    verify_id = copied.ref("tiny", "verify")
    monkeypatch.setattr(canaries, "send", lambda params: pytest.fail("promotion sends none"))
    done = promote(copied, "tiny")

    assert [each.gate for each in done.seen_red] == list(GATES.names)
    assert all(each.offenses for each in done.seen_red)
    assert {(each.build, each.code) for each in done.seen_red} == {(verify_id, code_digest())}
    assert len({each.when for each in done.seen_red}) == 1


def test_a_rollback_shows_an_old_time_and_does_not_fail_over_it(copied: Store) -> None:
    copied.clock = lambda: datetime(2001, 2, 3, tzinfo=UTC)
    old = build(copied).snapshot_id
    copied.clock = lambda: datetime(2040, 5, 6, tzinfo=UTC)

    assert old is not None
    assert {each.when[:10] for each in promote(copied, "tiny", old).seen_red} == {"2001-02-03"}


def test_a_build_that_changes_nothing_sees_each_gate_again(copied: Store) -> None:
    copied.clock = lambda: datetime(2040, 5, 6, tzinfo=UTC)
    result = build(copied)

    assert result.unchanged
    assert {each.when[:10] for each in seen_red(copied, result.object_id)} == {"2040-05-06"}


def test_other_code_is_another_digest_and_the_same_snapshot(copied: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = copied.ref("tiny", "candidate")
    monkeypatch.setattr(canaries, "code_digest", lambda: "f" * 64)
    result = build(copied)

    assert result.snapshot_id == before
    assert {each.code for each in promote(copied, "tiny").seen_red} == {"f" * 64}


def test_the_code_is_every_module_of_the_pipeline() -> None:
    root, found = ROOT / "pipeline", hashlib.sha256()
    for name in sorted(path.relative_to(root) for path in root.rglob("*.py")):
        found.update(name.as_posix().encode() + b"\0" + (root / name).read_bytes() + b"\0")

    assert code_digest() == found.hexdigest()


def test_without_a_build_nothing_was_seen(copied: Store) -> None:
    assert seen_red(copied, None) == ()
    assert seen_red(copied, copied.ref("tiny", "enrich")) == ()
