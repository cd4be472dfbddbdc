"""Proofs that read only some documents, tokens or columns miss offenses about tokens."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.build.canaries.canaries import send_offense, sound_build
from pipeline.build.canaries.offenses import all_offenses
from pipeline.build.recipes import TINY
from pipeline.stages.verify import stage, tokens


def missed(gate: str, folder: Path) -> set[str]:
    build = sound_build(folder / "sources", TINY.params)
    verdicts = build.run()
    sent = [offense for offense in all_offenses().values() if gate in offense.gates]
    return {offense.name for offense in sent if not send_offense(offense, build, verdicts)[gate]}


def test_a_round_trip_of_the_first_batch_alone_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count, size = tokens.count_round_trip_failures, tokens._DOCUMENTS_IN_BATCH

    def of_a_batch(table: pa.Table, texts: pa.Table, tokenizer: Any) -> int:
        return count(table.slice(0, size), texts.slice(0, size), tokenizer)

    monkeypatch.setattr(stage, "count_round_trip_failures", of_a_batch)

    assert missed("round_trip_is_exact", tmp_path) == {"wrong_id_among_many_documents"}


@pytest.mark.parametrize(
    ("gate", "count"),
    [
        ("columns_are_as_long_as_the_ids", "count_misaligned_columns"),
        ("columns_are_the_documents_own", "count_documents_with_other_columns"),
        ("specials_only_where_written", "count_special_ids"),
    ],
)
@pytest.mark.parametrize(
    "judged", [slice(None, 1), slice(-1, None), slice(None, -1)], ids=["first", "last", "but last"]
)
def test_a_proof_of_some_documents_alone_is_found(
    gate: str, count: str, judged: slice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole: Callable[..., int] = getattr(stage, count)
    monkeypatch.setattr(
        stage, count, lambda table, *given: whole(table.take(list(range(table.num_rows))[judged]), *given)
    )

    assert missed(gate, tmp_path) == {offense.name for offense in all_offenses().values() if gate in offense.gates}


def test_a_proof_of_the_first_column_of_structure_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = stage.count_misaligned_columns
    without = ("structure_kinds", "structure_levels", "sibling_indices", "node_types", "provenances")
    monkeypatch.setattr(stage, "count_misaligned_columns", lambda table: count(table.drop_columns(list(without))))

    assert missed("columns_are_as_long_as_the_ids", tmp_path) == {"level_one_token_short"}
