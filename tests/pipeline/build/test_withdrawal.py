"""Withdrawn files are in no snapshot built afterwards, also after a rollback, and other sources keep their ids."""

import json
import re
from pathlib import Path

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.promotion import promote
from pipeline.build.recipes import TINY, pins_of
from pipeline.build.run_stage import run_stages
from pipeline.build.stage_objects import parts_of
from pipeline.build.withdrawal import active_withdrawals, holders, log_held, restore, withdraw
from pipeline.cli.main import main
from pipeline.core.errors import MissingError, ParamsError, SnapshotError
from pipeline.lineage.vocabulary_report import training_texts
from pipeline.lineage.why import why
from pipeline.pins.selection import Selector
from pipeline.store.log import NOBODY
from pipeline.store.snapshot import open_snapshot, open_usable
from pipeline.store.store import Store
from pipeline.store.store_layout import MANIFEST
from tests.conftest import WITHDRAWN
from trainer.checkpoint.stored_state import CHECKPOINT_KIND, TrainingPlace
from trainer.data.small_snapshot import copy_snapshot, shorten


def paths_in(store: Store, name: str, source: str) -> set[str]:
    snapshot = open_snapshot(store, store.ref("tiny", name) or "")
    rows = next(entry.rows for entry in snapshot.sources if entry.name == source)
    return set(store.read(rows).table("tokens.parquet", ["path"])["path"].to_pylist())


def collected(store: Store) -> dict[str, str]:
    return parts_of(store.read(store.ref("tiny", "collect") or ""))


def collect_again(store: Store) -> dict[str, str]:
    order = BuildRequest("tiny", TINY.params, pins_of(TINY), "a test")
    with open_build(order, store) as build:
        return dict(next(run_stages(build, "collect")).parts)


def test_a_withdrawn_folder_is_in_no_later_snapshot_and_why_says_so(rebuilt_store: Store) -> None:
    assert {path for path in paths_in(rebuilt_store, "live", "lantern") if path.startswith("src/")}
    assert not {path for path in paths_in(rebuilt_store, "candidate", "lantern") if path.startswith("src/")}
    gone = sorted(paths_in(rebuilt_store, "live", "lantern") - paths_in(rebuilt_store, "candidate", "lantern"))[0]
    step = why(rebuilt_store, "tiny", "lantern", gone).steps[-1]
    assert (step.stage, step.reason, step.evidence["detail"]) == ("collect", "withdrawn", f"by {WITHDRAWN}")
    before = why(rebuilt_store, "tiny", "lantern", gone, "live")
    assert before.kept, "it is in the snapshot, and is said to be withdrawn all the same"
    assert re.fullmatch(rf"by {re.escape(WITHDRAWN)} on \d{{4}}-\d\d-\d\d: its owner asked", *before.withdrawn)


def test_a_withdrawal_moves_the_ids_of_what_it_names_alone(tiny_store: Store, rebuilt_store: Store) -> None:
    before, after = collected(tiny_store), collected(rebuilt_store)
    assert {name for name in before if before[name] != after[name]} == {"lantern"}


def test_rolling_back_does_not_bring_it_back(rebuilt_store: Store) -> None:
    with pytest.raises(SnapshotError, match=r"documents are withdrawn by lantern/src/\*\*"):
        promote(rebuilt_store, "tiny", rebuilt_store.ref("tiny", "live") or "")


def test_who_holds_it_is_named_with_its_refs_and_with_the_copies_that_lost_to_it(tiny_store: Store) -> None:
    (holder,) = holders(tiny_store, [Selector(WITHDRAWN)])
    assert holder.object_id == tiny_store.ref("tiny", "live")
    assert holder.refs == ("tiny/candidate", "tiny/live")
    assert holder.num_documents == 12
    assert {copy.partition("/")[0] for copy in holder.copies} == {"odds"}


def test_checkpoints_that_it_has_shaped_are_found_by_any_role(copied: Store) -> None:
    live = copied.ref("tiny", "live") or ""
    other = {"config": {}, "seed": 1, "snapshot_id": "a" * 64}
    place = {"loader": {}, "environment": {}, "packing": {}}
    shaped = [
        TrainingPlace(1, {**other, "snapshot_id": live}, **place),
        TrainingPlace(2, {**other, "mixture": {"a" * 64: 1.0, live: 1.0}}, **place),
        TrainingPlace(3, {**other, "initial": {"snapshots": ["b" * 64, live]}}, **place),
        TrainingPlace(4, other, **place, adoptions=[{"position": 8, "old": "a" * 64, "new": live}]),
        TrainingPlace(5, other, **place, forks=[{"step": 2, "fields": {}, "snapshots": [live]}]),
        TrainingPlace(6, other, **place, forks=[{"step": 2, "fields": {}}]),
    ]
    with copied.writer("runs/made", "a test") as scratch:
        ids = []
        for each in shaped:
            (scratch / str(each.step)).mkdir()
            folder, step = scratch / str(each.step), {"step": each.step}
            ids.append(copied.commit(folder, CHECKPOINT_KIND, step, each.snapshots))

    found = withdraw(copied, WITHDRAWN, "its owner asked")
    numbers = {holder.object_id: holder.num_documents for holder in found if holder.kind == "checkpoint"}
    assert numbers == {**dict.fromkeys(ids[:5], 12), ids[5]: None}, "of a snapshot that is not here, nobody can tell"
    assert copied.withdrawn_snapshots() == {WITHDRAWN: ({live}, frozenset())}
    restore(copied, WITHDRAWN, "a mistake")
    assert copied.withdrawn_snapshots() == {WITHDRAWN: NOBODY}

    for selector in ("elsewhere/src/**", f"sha256:{'c' * 64}"):
        elsewhere = {each.object_id: each.num_documents for each in withdraw(copied, selector, "its owner asked")}
        assert elsewhere == dict.fromkeys(ids[1:], None), "what has shaped them besides may have held it"
        assert selector in copied.active_withdrawals(), "a build or an import of later leaves it out"


def test_a_snapshot_without_its_documents_is_named_where_it_has_the_source(tiny_store: Store, tmp_path: Path) -> None:
    live = tiny_store.ref("tiny", "live") or ""
    bare = copy_snapshot(tiny_store, live, tmp_path / "bare")
    short = shorten(bare, live, 1)

    found = {holder.object_id: holder.num_documents for holder in withdraw(bare, WITHDRAWN, "a test")}
    assert found == {live: 12, short: None}
    assert bare.withdrawn_snapshots() == {WITHDRAWN: ({live}, {short})}
    with pytest.raises(SnapshotError, match=r"nothing in the store tells whether it holds what lantern"):
        open_usable(bare, short)
    log_held(bare, short, judged=[Selector(WITHDRAWN)])
    assert bare.withdrawn_snapshots() == {WITHDRAWN: ({live}, frozenset())}, "its import has told"
    assert {holder.object_id for holder in holders(bare, [Selector(f"sha256:{'a' * 64}")])} == {live, short}
    assert holders(bare, [Selector("nowhere")]) == []


def test_a_snapshot_that_came_after_the_withdrawal_is_logged_too(tiny_store: Store, tmp_path: Path) -> None:
    live = tiny_store.ref("tiny", "live") or ""
    bare = copy_snapshot(tiny_store, live, tmp_path / "bare")
    withdraw(bare, WITHDRAWN, "a test")
    short = shorten(bare, live, 1)
    for _ in range(2):
        withdraw(bare, WITHDRAWN, "a test")
    assert bare.withdrawn_snapshots() == {WITHDRAWN: ({live}, {short})}
    assert len(bare.withdrawals()) == 2


def test_the_candidate_of_a_build_that_had_begun_before_is_logged_and_not_trained_on(copied: Store) -> None:
    with open_build(BuildRequest("tiny", TINY.params, pins_of(TINY), "a test"), copied) as build:
        stages = run_stages(build)
        next(stages)
        copied.log_withdrawal(WITHDRAWN, "a test")  # what a snapshot of before holds is not asked for here
        candidate = [*stages][-1].snapshot_id

    with pytest.raises(SnapshotError, match="holds what lantern"):
        open_usable(copied, candidate or "")
    with pytest.raises(SnapshotError, match=r"document lantern/src/.*: it is withdrawn by lantern"):
        training_texts(copied, "tiny")


@pytest.mark.parametrize("damaged", ["snapshot.json", MANIFEST])
def test_of_a_damaged_snapshot_nobody_knows_and_the_withdrawal_is_logged(
    tiny_store: Store, tmp_path: Path, damaged: str
) -> None:
    live = tiny_store.ref("tiny", "live") or ""
    bare = copy_snapshot(tiny_store, live, tmp_path / "bare")
    place = bare.read(live).path / damaged
    place.write_bytes(place.read_bytes() + b"x")

    (holder,) = withdraw(bare, WITHDRAWN, "a test")
    assert (holder.object_id, holder.num_documents) == (live, None)
    assert bare.withdrawn_snapshots() == {WITHDRAWN: (frozenset(), {live})}
    if damaged != MANIFEST:  # which names the sources
        with pytest.raises(MissingError, match="no snapshot and no collected source"):
            withdraw(bare, "nowhere", "a test")


def test_a_file_that_lost_to_a_copy_names_what_was_kept_in_its_place(tiny_store: Store) -> None:
    live = open_snapshot(tiny_store, tiny_store.ref("tiny", "live") or "")
    compared = tiny_store.read(live.stored.manifest.inputs["duplicates"]).table("duplicates.parquet").to_pylist()
    loser = next(row for row in compared if (row["source"], row["reason"]) == ("odds", "near_duplicate"))

    (holder,) = holders(tiny_store, [Selector(f"odds/{loser['path']}")])
    assert (holder.kind, holder.num_documents) == ("snapshot", 0)
    assert holder.kept_as == (f"{loser['keeper_source']}/{loser['keeper_path']} ({loser['jaccard']:.3f})",)
    rules = tiny_store.read(live.stored.manifest.inputs["rules/odds"]).table("documents.parquet").to_pylist()
    sha256 = next(row["blob_sha256"] for row in rules if row["document_id"] == loser["document_id"])
    assert holders(tiny_store, [Selector(f"sha256:{sha256}")])[0].kept_as == holder.kept_as
    copyleft = next(row for row in compared if row["reason"] == "copyleft_copy")
    assert holders(tiny_store, [Selector(f"odds/{copyleft['path']}")]) == [], "what it is a copy of was not kept either"


def test_a_withdrawn_digest_removes_its_bytes_at_every_path_and_a_restored_one_is_back(copied: Store) -> None:
    before = collected(copied)
    files = copied.read(before["lantern"]).table("files.parquet", ["path", "blob_sha256"]).to_pylist()
    file = next(file for file in files if file["path"].startswith("src/"))
    withdraw(copied, f"sha256:{file['blob_sha256']}", "a test")

    for part in collect_again(copied).values():
        assert file["blob_sha256"] not in copied.read(part).table("files.parquet")["blob_sha256"].to_pylist()
    restore(copied, f"sha256:{file['blob_sha256']}", "a mistake")
    assert active_withdrawals(copied) == ()
    assert collect_again(copied) == before


def test_a_whole_source_is_not_collected_at_all(copied: Store) -> None:
    withdraw(copied, "odds", "a test")
    assert sorted(collect_again(copied)) == ["heron", "lantern", "loom", "quarry"]
    trail = why(copied, "tiny", "odds", "data/scanner.c")
    assert [(step.stage, step.verdict, step.reason) for step in trail.steps] == [("collect", "dropped", "withdrawn")]
    assert [re.sub(" on [-0-9]+", "", line) for line in trail.withdrawn] == ["by odds: a test"]
    with pytest.raises(MissingError, match="has no such source"):
        why(copied, "tiny", "oddities", "data/scanner.c")


@pytest.mark.parametrize("text", ["", "Zlib", "sha256:12", "zlib//x", "/zlib", "zlib/", "../x", "zlib/\0"])
def test_a_selector_that_names_nothing_is_refused(store: Store, text: str) -> None:
    with pytest.raises(ParamsError, match="cannot be parsed"):
        withdraw(store, text, "a test")


def test_what_nobody_holds_cannot_be_withdrawn_or_restored(copied: Store) -> None:
    with pytest.raises(MissingError, match="no snapshot and no collected source"):
        withdraw(copied, "lantern/nowhere/**", "a test")
    with pytest.raises(MissingError, match="is not active"):
        restore(copied, "lantern", "a test")
    assert copied.withdrawals() == []


def test_the_command_records_once_and_lists_what_is_withdrawn(
    copied: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert main(["withdraw", WITHDRAWN, "--store", str(copied.root), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["holders"][0]["kind"] == "snapshot"
    assert main(["withdraw", "--store", str(copied.root), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["active"] == [WITHDRAWN]
    assert len(answer["history"]) == 1


def test_no_secret_in_a_reason_is_stored(rebuilt_store: Store) -> None:
    [selector, *_] = [each.text for each in active_withdrawals(rebuilt_store)]
    reason = f"asked for by ada{'@'}analytical.engine.org"
    restore(rebuilt_store, selector, reason)
    withdraw(rebuilt_store, selector, reason)
    log = (rebuilt_store.root / "log").rglob("*")
    assert not [each for each in log if each.is_file() and reason in each.read_text()]
