"""`diff A B` names every document that changed, and the rule, parameter or version that is the cause."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import TINY, CorpusParams, pins_of
from pipeline.build.run_stage import run_stages
from pipeline.cli.main import main
from pipeline.core.errors import MissingError, SnapshotError
from pipeline.core.table_names import DOCUMENTS
from pipeline.lineage.diff import Difference, difference
from pipeline.lineage.stored_build import stored_build
from pipeline.stages.stages import STAGES
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store


def documents(store: Store, snapshot_id: str) -> dict[tuple[str, str], int]:
    snapshot = open_snapshot(store, snapshot_id)
    tables = [
        store.read(source.rows).table("tokens.parquet", ["source", "path", "input_ids"]) for source in snapshot.sources
    ]
    return {(row["source"], row["path"]): len(row["input_ids"]) for row in pa.concat_tables(tables).to_pylist()}


def compared(store: Store, a: str, b: str, num_documents: int = 20) -> Difference:
    return difference(stored_build(store, "tiny", a), stored_build(store, "tiny", b), num_documents)


def test_added_and_removed_documents_carry_the_rule_that_decided(rebuilt_store: Store) -> None:
    ids = [rebuilt_store.ref("tiny", name) or "" for name in ("live", "candidate")]
    found = compared(rebuilt_store, *ids, num_documents=10_000)
    before, after = (documents(rebuilt_store, snapshot_id) for snapshot_id in ids)

    changed = {(row["source"], row["path"]): row["change"] for row in found.documents}
    assert changed == dict.fromkeys(before.keys() - after.keys(), "removed") | dict.fromkeys(
        after.keys() - before.keys(), "added"
    )
    assert sum(row["num_tokens"] for row in found.documents) == sum(after.values()) - sum(before.values())
    assert {(row["change"], row["cause"]) for row in found.causes} == {
        ("added", "no longer exact_duplicate"),
        ("added", "no longer near_duplicate"),
        ("removed", "withdrawn"),
    }
    assert found.settings == []


def test_the_other_way_round_a_copy_is_removed_for_its_keeper(rebuilt_store: Store) -> None:
    causes = {row["cause"]: row for row in compared(rebuilt_store, "candidate", "live").causes}
    assert causes["exact_duplicate"]["change"] == "removed"
    assert causes["no longer withdrawn"]["num_documents"] == 12


def test_a_change_names_the_settings_and_versions_of_the_stage_that_made_it(
    tiny_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(shutil.copytree(tiny_store.root, tmp_path / "store"))
    values = TINY.params.model_dump()
    values["normalize"]["scrub"]["redact_emails"] = False
    values["tokenize"]["vocabulary"] = "cpp-32768"
    values["verify"]["min_trained_fraction"] = 1.0
    monkeypatch.setitem(STAGES._entries, "normalize", replace(STAGES["normalize"], version=99))
    with open_build(BuildRequest("tiny", CorpusParams.model_validate(values), pins_of(TINY), "a test"), store) as build:
        verified = list(run_stages(build))[-1]
    found = compared(store, "live", "last")
    assert (verified.blocked, found.b) == (True, verified.snapshot_id), "a blocked snapshot is compared too"

    assert [row["cause"] for row in found.causes if row["change"] == "changed"] == [
        "tokenize.vocabulary",
        "normalize.scrub.redact_emails, normalize.version",
    ]


def test_a_snapshot_differs_in_nothing_from_itself(tiny_store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "live", "candidate", "--corpus", "tiny", "--store", str(tiny_store.root), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["causes"], answer["settings"], answer["documents"]) == ([], [], [])
    assert answer["totals"]["a"] == answer["totals"]["b"]


def test_what_is_not_a_snapshot_is_refused(tiny_store: Store) -> None:
    with pytest.raises(SnapshotError, match="it is a normalize/rules; expected a snapshot, or the output of a stage"):
        compared(
            tiny_store, "live", next(iter(stored_build(tiny_store, "tiny").parts_with(DOCUMENTS).values())).object_id
        )
    with pytest.raises(MissingError, match="stage normalize has no output"):
        compared(tiny_store, "live", "collect")
