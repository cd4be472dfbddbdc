"""A build is found by any of its names; one that a gate blocked is looked at like any other, and never passed over in silence."""

import shutil
from pathlib import Path

import pytest

from pipeline.build.stage_objects import parts_of
from pipeline.cli.main import main
from pipeline.core.errors import MissingError
from pipeline.lineage.stored_build import stored_build
from pipeline.lineage.why import why
from pipeline.stages.stages import STAGES
from pipeline.store.store import Store


def test_each_name_of_a_build_finds_the_same_stages(tiny_store: Store) -> None:
    refs = tiny_store.refs("tiny")
    names = [None, "last", "live", "candidate", refs["verify"], refs["live"], refs["verify"][:12]]
    found = [stored_build(tiny_store, "tiny", name) for name in names]
    found += [stored_build(tiny_store, "another", f"tiny/{name}") for name in ("last", "live", "candidate")]

    assert {tuple((name, stored.object_id) for name, stored in build.stages.items()) for build in found} == {
        tuple((name, refs[name]) for name in STAGES.names)
    }
    assert {build.snapshot_id for build in found} == {refs["live"]}
    assert [build.sentence() for build in found] == [None] * len(found)


def test_builds_and_cards_of_a_corpus_are_by_its_own_proof_where_another_corpus_has_a_newer_one(
    tiny_store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(shutil.copytree(tiny_store.root, tmp_path / "store"))
    refs = store.refs("tiny")
    store.mark_verified(refs["live"] or "", refs["collect"] or "")  # as a build of another corpus does

    for name in ("candidate", "live", "last"):
        assert list(stored_build(store, "tiny", name).stages) == list(STAGES.names)
        assert main(["card", "--corpus", "tiny", "--snapshot", name, "--store", str(store.root)]) == 0
        assert "gates passed" in capsys.readouterr().out


def test_of_a_blocked_build_the_last_tells_where_a_file_went(blocked_store: Store) -> None:
    last = stored_build(blocked_store, "mine", "last")
    (name,) = parts_of(last.stage("collect"))
    (step,) = [
        step for step in why(blocked_store, "mine", name, "long.c", of="last").steps if step.verdict == "dropped"
    ]

    assert step.reason == "long_line"
    assert last.facts()["stage"] == "normalize"
    assert "documents_are_kept" in last.facts()["blocked_by"]
    assert "documents_are_kept (rows_out is 0, must be at least 1)" in (last.sentence() or "")
    assert set(blocked_store.refs("mine")) == {"collect", "last"}, "neither candidate nor live moved"


def test_without_a_name_a_blocked_build_is_said_in_words(blocked_store: Store) -> None:
    build = stored_build(blocked_store, "mine")

    assert list(build.stages) == ["collect"]
    sentence = build.sentence() or ""
    assert "the last build of corpus mine was blocked: normalize, " in sentence
    assert "No build of it has come to a candidate; look at it by `--of last`" in sentence
    with pytest.raises(
        MissingError, match=r"stage normalize has no output, as the last build was blocked: .*`--of last`"
    ):
        build.stage("normalize")
