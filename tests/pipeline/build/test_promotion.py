"""`live` moves on evidence alone, and only to a snapshot."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.build.promotion import _proof, _recipe_limits, evidence, promote
from pipeline.build.recipes import TINY
from pipeline.build.run_stage import StageResult
from pipeline.build.stage_objects import parts_of
from pipeline.cli.main import main
from pipeline.contracts.gates import GATES
from pipeline.core.digests import file_sha256
from pipeline.core.errors import (
    BlockedError,
    DamagedError,
    LockedError,
    MissingError,
    ParamsError,
    SnapshotError,
    StoreError,
)
from pipeline.stages.stages import STAGES
from pipeline.storage import storage
from pipeline.store import objects
from pipeline.store.fsck import fsck
from pipeline.store.garbage import reclaim
from pipeline.store.refs import AFTER_BUILD, WITH_BUILD
from pipeline.store.store import Store
from tests.faults.injected_faults import flip

RECIPE_LIMITS: list[tuple[list[dict[str, str]], dict[str, float]]] = [
    ([], {}),
    ([{"new": "id", "recipe_limits": '{"a": 1.0}'}], {"a": 1.0}),
    ([{"new": "id", "recipe_limits": '{"a": 1.0}'}, {"new": "id", "recipe_limits": '{"b": 2.0}'}], {"b": 2.0}),
    ([{"new": "id", "recipe_limits": '{"a": 1.0}'}, {"new": "other", "recipe_limits": '{"b": 2.0}'}], {"a": 1.0}),
    ([{"new": "id", "recipe_limits": '{"a": 1.0}'}, {"new": "id", "ref": "live", "recipe_limits": "{}"}], {"a": 1.0}),
]


UNREADABLE = {
    "missing": MissingError("object 1", "it is not in the store"),
    "key": KeyError("report"),
    "type": TypeError("a list"),
    "value": ValueError("no number"),
}
"""Errors that reading an older proof may raise, by the name of the proof."""


@pytest.fixture
def built(tiny_store: Store, tmp_path: Path) -> Store:
    """A copy of the built store, to be damaged."""
    shutil.copytree(tiny_store.root, tmp_path / "built")
    return Store(tmp_path / "built")


def snapshot_of(results: list[StageResult]) -> str:
    snapshot_id = results[-1].snapshot_id
    assert snapshot_id is not None
    return snapshot_id


def test_an_object_that_is_not_a_snapshot_is_refused_by_its_kind(built: Store, tiny_results: list[StageResult]) -> None:
    for result in tiny_results[:-1]:
        with pytest.raises(SnapshotError, match=f"it is a {result.stage}/stage"):
            promote(built, "tiny", result.object_id)
    part = next(iter(parts_of(built.read(tiny_results[0].object_id)).values()))
    with pytest.raises(SnapshotError, match="it is a collect/part"):
        promote(built, "tiny", part)
    assert promote(built, "tiny", tiny_results[-1].object_id).unchanged, "verify names the snapshot that it composed"
    assert built.ref("tiny", "live") == snapshot_of(tiny_results)


@pytest.mark.parametrize("content", [b"", b"\n", b"0" * 64, b"\xff"])
def test_a_snapshot_whose_proof_is_damaged_or_missing_is_not_promoted(
    built: Store, tiny_results: list[StageResult], content: bytes
) -> None:
    path = built.root / "verified" / snapshot_of(tiny_results)
    path.write_bytes(content)
    with pytest.raises(DamagedError, match="proof of snapshot"):
        promote(built, "tiny")
    path.unlink()
    with pytest.raises(MissingError, match="no verify stage"):
        promote(built, "tiny")


def _measured_otherwise(verdicts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [*verdicts[:-1], verdicts[-1] | {"measured": verdicts[-1]["measured"] + 1}]


def _failed(verdicts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [verdicts[0] | {"passed": False, "outcome": "failed"}, *verdicts[1:]]


def _with_other_limits(verdicts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Write other limits, by which every measure passes too: that of a parameter is stored beside it."""
    return [each | {"limit": each["limit"] + (1 if each["comparison"] == "at most" else -1)} for each in verdicts]


@pytest.mark.parametrize("change", [_measured_otherwise, _failed, _with_other_limits, lambda verdicts: []])
def test_verdicts_that_the_report_does_not_give_are_refused_though_their_digest_fits(
    built: Store, tiny_results: list[StageResult], change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
) -> None:
    stage_id = tiny_results[2].object_id
    built.put_verdicts(stage_id, change(built.verdicts(stage_id)["verdicts"]))

    with pytest.raises(SnapshotError, match="verdict"):
        promote(built, "tiny")


def test_verdicts_of_gates_that_are_no_longer_and_of_fewer_gates_are_no_contradiction(
    built: Store, tiny_results: list[StageResult]
) -> None:
    """Rolling back must work with code that has other gates."""
    stage_id = tiny_results[2].object_id
    first, *_ = built.verdicts(stage_id)["verdicts"]
    built.put_verdicts(stage_id, [first, first | {"gate": "a_gate_of_before"}])

    assert promote(built, "tiny").unchanged


def test_a_limit_of_another_version_is_no_contradiction_and_one_that_lets_a_measure_pass_is_refused(
    built: Store, tiny_results: list[StageResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, stage_id = GATES["chunks_conserve_bytes"], tiny_results[2].object_id
    verdicts = built.verdicts(stage_id)["verdicts"]
    looser = [each | ({"limit": 3.0} if each["gate"] == gate.name else {}) for each in verdicts]
    built.put_verdicts(stage_id, looser)
    assert promote(built, "tiny").unchanged

    never = [each | ({"limit": -1.0} if each["gate"] == gate.name else {}) for each in verdicts]
    built.put_verdicts(stage_id, never)  # by this limit it would have failed
    with pytest.raises(SnapshotError, match="its verdict of chunks_conserve_bytes differs"):
        promote(built, "tiny")

    built.put_verdicts(stage_id, verdicts)  # they passed by the limit that they name, and would not by that of today
    monkeypatch.setitem(GATES._entries, gate.name, replace(gate, limit=replace(gate.limit, value=-1.0)))
    with pytest.raises(BlockedError, match="chunks_conserve_bytes BLOCKED"):
        promote(built, "tiny")


def test_the_proof_of_another_object_proves_nothing(built: Store, tiny_results: list[StageResult]) -> None:
    snapshot_id = snapshot_of(tiny_results)
    built.mark_verified(snapshot_id, tiny_results[0].object_id)

    with pytest.raises(DamagedError, match="did not verify it"):
        promote(built, "tiny", snapshot_id)
    (problem,) = fsck(built)
    assert "did not verify it" in problem


def test_what_a_build_of_this_corpus_made_is_promoted_by_its_proof_and_not_by_that_of_another(
    built: Store, tiny_results: list[StageResult]
) -> None:
    built.mark_verified(snapshot_of(tiny_results), tiny_results[0].object_id)  # as a build of another corpus does

    assert promote(built, "tiny").unchanged
    with pytest.raises(DamagedError, match="did not verify it"):
        promote(built, "tiny", snapshot_of(tiny_results))


@pytest.mark.parametrize("left_out", STAGES.names[:-1])
def test_a_proof_whose_chain_lacks_a_stage_is_refused_by_the_stages_that_made_it(
    built: Store, tiny_results: list[StageResult], tmp_path: Path, left_out: str
) -> None:
    """Each stage after the one that is left out is stored again, as made from the one before that."""
    before: str | None = None
    for result in tiny_results:
        if result.stage == left_out:
            continue
        stored = built.read(result.object_id)
        inputs = {label: each for label, each in stored.manifest.inputs.items() if label != "previous"}
        inputs |= {"previous": before} if before else {}
        shutil.copytree(stored.path, tmp_path / result.stage, ignore=shutil.ignore_patterns(objects.MANIFEST))
        before = built.commit(tmp_path / result.stage, stored.manifest.kind, stored.manifest.identity, inputs)

    with pytest.raises(MissingError, match=f"expected {', '.join(STAGES.names)}"):
        evidence(built, snapshot_of(tiny_results), before)


@pytest.mark.parametrize(("entries", "expected"), RECIPE_LIMITS)
def test_limits_of_a_recipe_are_those_of_the_last_build_that_made_the_proof(
    entries: list[dict[str, str]], expected: dict[str, float]
) -> None:
    """The ids are equal and not identical, as they are where one was read from a file."""
    corpora = {"tiny": [{"ref": "verify", "recipe_limits": "{}"} | entry for entry in entries]}
    store: Any = SimpleNamespace(history=lambda corpus: corpora[corpus])

    assert _recipe_limits(store, "tiny", "".join(("i", "d"))) == expected


@pytest.mark.parametrize(
    ("moves", "expected"),
    [
        ([("verify", "sound"), ("verify", "other")], "sound"),
        ([("live", "sound"), ("verify", "other")], "sound"),
        ([("tokenize", "sound"), ("verify", "other")], "newest"),
        *(([("verify", name), ("verify", "sound")], "sound") for name in UNREADABLE),
        *(([("verify", "sound"), ("verify", name)], "sound") for name in UNREADABLE),
    ],
)
def test_a_proof_by_the_limits_of_the_recipe_is_found_among_those_of_the_history(
    monkeypatch: pytest.MonkeyPatch, moves: list[tuple[str, str]], expected: str
) -> None:
    def read(store: Store, snapshot_id: str, proof: str) -> str:
        if proof in UNREADABLE:
            raise UNREADABLE[proof]
        return proof

    for name, stand_in in {
        "_verify_id": lambda *_: "newest",
        "evidence": read,
        "all_limits": lambda _: {},
        "other_limits": lambda proof, _: () if proof == "sound" else ("a limit",),
    }.items():
        monkeypatch.setattr(f"pipeline.build.promotion.{name}", stand_in)
    history = [{"ref": ref, "new": f"by {new}", "proof": new} for ref, new in moves]
    store: Any = SimpleNamespace(history=lambda corpus: history)

    assert _proof(store, "tiny", "snapshot", TINY.params) == expected
    assert _proof(store, "tiny", "snapshot", None) == "newest"


@pytest.mark.parametrize(
    ("reason", "kept"), [("it was asked for", "it was asked for"), (None, "promoted"), (" ", "promoted")]
)
def test_a_damaged_live_ref_is_mended_by_a_promotion(
    built: Store, tiny_results: list[StageResult], reason: str | None, kept: str
) -> None:
    (built.root / "refs" / "tiny" / "live").write_text("")

    done = promote(built, "tiny", reason=reason)
    assert (done.new, done.reason) == (snapshot_of(tiny_results), kept)
    assert built.ref("tiny", "live") == snapshot_of(tiny_results)
    assert built.history("tiny")[-1]["reason"] == kept


def test_what_a_person_rolled_back_from_is_promoted_with_a_reason_alone(
    built: Store, tiny_results: list[StageResult], capsys: pytest.CaptureFixture[str]
) -> None:
    new, older = snapshot_of(tiny_results), tiny_results[0].object_id
    built.move_ref("mine", "candidate", None, new, "built")
    for old, to in zip((None, older, new), (older, new, older), strict=True):
        built.move_ref("mine", "live", old, to, "it is bad" if old == new else "promoted")

    for to in ("candidate", new[:12]):
        with pytest.raises(
            ParamsError, match=rf"rolled back from at .* UTC, to {older[:12]}: it is bad; expected .*reason"
        ):
            promote(built, "mine", to, how=AFTER_BUILD)
    assert main(["promote", "--corpus", "mine", "--store", str(built.root)]) == 1
    assert f"--to {new[:12]} --reason REASON --corpus mine" in capsys.readouterr().err
    assert built.ref("mine", "live") == older
    assert promote(built, "mine", reason=f"it was not it,\nsays ada{'@'}analytical.engine.org").new == new
    assert built.history("mine")[-1]["reason"] == "it was not it, says <redacted-email-1>", "as it may be stored"
    assert promote(built, "mine").unchanged, "it is live"
    assert built.rolled_back("mine") == {}


@pytest.mark.parametrize(
    ("to", "how", "is_of_last_build", "left"),
    [
        ("snapshot", WITH_BUILD, True, False),
        ("snapshot", WITH_BUILD, False, True),
        ("candidate", AFTER_BUILD, False, False),
        ("candidate", "by hand", False, False),
        ("snapshot", "by hand", False, True),
    ],
)
@pytest.mark.parametrize("reason", [None, "weekly"])
def test_going_back_is_a_rollback_where_a_person_named_the_snapshot_and_not_where_a_build_made_it_again(
    built: Store,
    tiny_results: list[StageResult],
    to: str,
    how: str,
    is_of_last_build: bool,
    left: bool,
    reason: str | None,
) -> None:
    snapshot_id, other = snapshot_of(tiny_results), tiny_results[0].object_id
    built.move_ref("tiny", "live", snapshot_id, other, "another build")

    name = snapshot_id if to == "snapshot" else to
    assert promote(built, "tiny", name, reason, how=how, is_of_last_build=is_of_last_build).new == snapshot_id
    assert list(built.rolled_back("tiny")) == ([other] if left else [])


@pytest.mark.parametrize("name", ["live", "candidate"])
def test_an_older_ref_is_refused_or_mended_by_a_promotion(
    built: Store, tiny_results: list[StageResult], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot_id, path = snapshot_of(tiny_results), built.root / "refs" / "tiny" / name
    older = path.read_bytes()
    built.move_ref("tiny", name, snapshot_id, tiny_results[0].object_id, "a test")
    path.write_bytes(older)

    code = main(["promote", "--corpus", "tiny", "--store", str(built.root)])
    said = capsys.readouterr().err
    assert f"ref tiny/{name}" in said
    assert code == (0 if name == "live" else 1)
    if name == "live":
        assert built.ref("tiny", "live") == snapshot_id


def reached(store: Store, results: list[StageResult]) -> set[str]:
    """The ids of all objects that made a snapshot."""
    waiting, found = [results[-1].object_id, snapshot_of(results)], set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += store.read(name).manifest.inputs.values()
    return found


def test_a_promotion_reads_every_file_back_to_the_sources(
    built: Store, tiny_results: list[StageResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    monkeypatch.setattr(storage, "known_sha256", lambda path: read.append(path) or file_sha256(path))
    done = promote(built, "tiny")

    wanted = {path for name in reached(built, tiny_results) for path in built.read(name).path.iterdir()}
    assert {path for path in wanted if path.name != objects.MANIFEST} <= set(read)
    assert done.verified.num_objects == len(reached(built, tiny_results))
    assert done.verified.num_bytes == sum(path.stat().st_size for path in wanted if path.name != objects.MANIFEST)


@pytest.mark.parametrize("to", ["candidate", "rollback"])
@pytest.mark.parametrize("place", ["tokenize/part/*/rows_train.arrow", "snapshot/snapshot/*/tokenizer.json"])
def test_a_snapshot_with_a_flipped_file_is_not_promoted_nor_rolled_back_to(
    built: Store, tiny_results: list[StageResult], place: str, to: str
) -> None:
    path = sorted(built.root.glob(f"objects/{place}"))[-1]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)

    with pytest.raises(DamagedError, match=path.name):
        promote(built, "tiny", "candidate" if to == "candidate" else snapshot_of(tiny_results))


def test_a_snapshot_of_which_any_object_is_gone_is_not_promoted(
    built: Store, tiny_results: list[StageResult], tmp_path: Path
) -> None:
    for name in sorted(reached(built, tiny_results)):
        folder = built.read(name).path
        folder.rename(tmp_path / "aside")
        with pytest.raises(MissingError):
            promote(built, "tiny")
        (tmp_path / "aside").rename(folder)
    assert promote(built, "tiny").unchanged


def test_an_unchanged_promotion_adds_no_line_and_another_proof_adds_one(
    built: Store, tiny_results: list[StageResult]
) -> None:
    before = built.history("tiny")
    promote(built, "tiny")
    assert built.history("tiny") == before
    assert before[-1]["proof"] == tiny_results[-1].object_id


def test_nothing_is_collected_while_a_promotion_proves(built: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def collect(store: Store, *_: object) -> None:
        with pytest.raises(LockedError):
            reclaim(store, lambda name: False)

    monkeypatch.setattr("pipeline.store.garbage.REMOVAL_WAIT_SECONDS", 0.1)
    monkeypatch.setattr("pipeline.build.promotion.refuse_withdrawn", collect)
    assert promote(built, "tiny").unchanged


def stage_ids(results: list[StageResult]) -> dict[str, str]:
    return {result.stage: result.object_id for result in results}


@pytest.mark.parametrize("damage", [flip, Path.unlink], ids=["flipped", "removed"])
@pytest.mark.parametrize(
    "record",
    [
        *(f"verdicts/{stage}.json" for stage in STAGES.names),
        *(f"keys/{stage}" for stage in STAGES.names),
        *(f"refs/tiny/{name}" for name in (*STAGES.names, "candidate")),
        *(f"log/{name}.head" for name in ("promotions", "withdrawals", "blobs")),
    ],
)
def test_a_damaged_record_of_what_is_live_is_refused_in_the_words_of_fsck(
    built: Store, tiny_results: list[StageResult], record: str, damage: Callable[[Path], None]
) -> None:
    folder, _, name = record.partition("/")
    stage = name.removesuffix(".json")
    name = f"{stage_ids(tiny_results)[stage]}.json" if folder == "verdicts" else name
    if folder == "keys":
        name = built.read(max(parts_of(built.read(stage_ids(tiny_results)[stage])).values())).manifest.key
    damage(built.root / folder / name)

    problems = fsck(built)
    with pytest.raises(StoreError) as refused:
        promote(built, "tiny", snapshot_of(tiny_results))
    assert str(refused.value) in problems


@pytest.mark.parametrize("damage", [flip, Path.unlink], ids=["flipped", "removed"])
@pytest.mark.parametrize("place", ["blobs", "names/git"])
def test_a_damaged_archive_or_name_of_one_is_refused_in_the_words_of_fsck(
    built: Store, place: str, damage: Callable[[Path], None]
) -> None:
    for path in sorted((built.root / place).iterdir()):
        damage(path)

    problems = fsck(built)
    with pytest.raises(StoreError) as refused:
        promote(built, "tiny")
    assert str(refused.value) in problems


def test_an_archive_that_was_removed_by_its_rules_is_named_and_refuses_nothing(built: Store) -> None:
    assert promote(built, "tiny").without_archive == ()
    for path in sorted((built.root / "blobs").iterdir()):
        built.log_blob(path.name, is_removed=True)
        path.unlink()

    assert promote(built, "tiny").without_archive == ("loom",)


def test_damaged_records_of_what_is_not_promoted_do_not_stop_a_rollback(
    built: Store, tiny_results: list[StageResult]
) -> None:
    first = tiny_results[0]
    built.move_ref("tiny", "collect", first.object_id, min(first.parts.values()), "a later build")
    flip(built.root / "refs" / "tiny" / "collect")

    assert promote(built, "tiny", snapshot_of(tiny_results)).unchanged


def test_what_cannot_be_judged_names_the_place_in_the_code_too(built: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.build.promotion._judge", lambda *given: {}["document_id"])
    with pytest.raises(
        SnapshotError, match=r"KeyError: 'document_id' \(test_promotion\.py:\d+\).* Build it again; if "
    ):
        promote(built, "tiny")
