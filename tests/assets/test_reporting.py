"""Reports in the UI: totals that add up, no empty tables, pictures that need no click."""

import base64
import re
from collections import Counter

from assets.reporting import (
    bars,
    column_schema,
    dropped_rows,
    license_rows,
    snapshot_metadata,
    sparkline,
    stage_metadata,
    token_lengths,
    verdict_rows,
    waterfall_rows,
)
from pipeline.build.run_stage import StageResult
from pipeline.contracts.gates import GateVerdict
from pipeline.stages.stages import STAGES
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store


def test_a_picture_of_a_long_training_is_shown_without_a_click() -> None:
    losses = [7.0 - step / 5_000 for step in range(10_000)]
    text = sparkline(losses).value

    assert len(text) < 1_000
    assert "7.0000 to 5.0002 in 10,000 steps" in text
    encoded = re.search(r"base64,([^)]*)", text)
    assert encoded is not None
    points = re.search(r'points="([^"]*)"', base64.b64decode(encoded[1]).decode())
    assert points is not None
    assert len(points[1].split()) <= 41
    assert points[1].split()[-1] == "240,46"


def test_bars_are_as_long_as_their_numbers_and_named_and_need_no_click() -> None:
    text = bars([("collect", 100), ("a<b", 50), ("verify", 0)], "rows").value
    encoded = re.search(r"base64,([^)]*)", text)
    assert encoded is not None
    picture = base64.b64decode(encoded[1]).decode()

    assert len(text) < 1_000
    assert [int(length) for length in re.findall(r"h(\d+)v", picture)] == [240, 120, 1]
    assert "a&lt;b 50" in picture


def test_lengths_of_documents_add_up_to_the_snapshot(tiny_store: Store, tiny_results: list[StageResult]) -> None:
    snapshot = open_snapshot(tiny_store, tiny_results[-1].snapshot_id or "")

    assert sum(number for _, number in token_lengths(snapshot)) == sum(each.num_documents for each in snapshot.sources)


def test_every_stage_shows_the_columns_that_it_keeps() -> None:
    kept = {
        stage.name: [table for kind in stage.parts for table in kind.tables if table.lists_kept] for stage in STAGES
    }
    columns = {
        name: [column.name for column in column_schema(tables[0].record).columns]
        for name, tables in kept.items()
        if tables
    }

    assert {"collect", "normalize", "tokenize"} <= columns.keys()
    assert "input_ids" in columns["tokenize"]
    assert all(
        column.description for tables in kept.values() if tables for column in column_schema(tables[0].record).columns
    )


def test_one_loss_can_be_drawn() -> None:
    assert "2.5000 to 2.5000 in 1 steps" in sparkline([2.5]).value


def test_a_table_without_rows_is_left_out_and_a_rate_of_nothing_too(tiny_results: list[StageResult]) -> None:
    by_stage = {result.stage: stage_metadata(result, 2.0, "tiny") for result in tiny_results}

    assert "drops by reason" in by_stage["normalize"]
    assert "drops by reason" not in by_stage["verify"]
    assert all(("MB/s" in by_stage[result.stage]) is not result.unchanged for result in tiny_results)


def test_drops_are_listed_most_frequent_first_and_account_for_every_row(tiny_results: list[StageResult]) -> None:
    normalize = next(result for result in tiny_results if result.stage == "normalize")
    metadata = stage_metadata(normalize, 2.0, "tiny")
    rows = [record.data for record in metadata["drops by reason"].records]

    assert [row["rows"] for row in rows] == sorted((row["rows"] for row in rows), reverse=True)
    assert metadata["rows in"] - metadata["dagster/row_count"] == sum(row["rows"] for row in rows)


def test_the_waterfall_and_the_licenses_add_up_to_the_snapshot(
    tiny_store: Store, tiny_results: list[StageResult]
) -> None:
    snapshot = open_snapshot(tiny_store, tiny_results[-1].snapshot_id or "")
    waterfall = waterfall_rows(tiny_store, snapshot.snapshot_id)
    documents = snapshot_metadata(tiny_store, snapshot)["documents"]

    assert tuple(row["stage"] for row in waterfall) == STAGES.names
    assert all(row["in"] == row["out"] + row["dropped"] for row in waterfall)
    assert waterfall[0]["out"] - waterfall[0]["for their license alone"] == waterfall[1]["in"]
    dropped = Counter(
        row["stage"] for row in dropped_rows(tiny_store, snapshot.snapshot_id) for _ in range(row["rows"])
    )
    assert dropped == Counter({row["stage"]: row["dropped"] for row in waterfall if row["dropped"]})
    assert documents == waterfall[-1]["out"] == sum(row["documents"] for row in license_rows(snapshot))


def test_a_warning_is_distinguished_from_a_failure() -> None:
    def verdict(blocking: bool) -> GateVerdict:
        return GateVerdict("gate", "verify", blocking, "share", 0.9, "at most", 0.7, False, "Because.")

    (failed, warning) = verdict_rows([verdict(True), verdict(False)])

    assert failed["verdict"] == "failed"
    assert failed["limit"] == "≤ 0.7"
    assert warning["verdict"] == "warning"
