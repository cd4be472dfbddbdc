"""The declaration of a stage says which kinds of parts are steps, and names what it does not have."""

from dataclasses import replace

import pytest

from pipeline.contracts.stage import PartKind, StageTable
from pipeline.core.errors import StageError
from pipeline.core.records import DroppedRecord, KeptDocument, SourceFile
from pipeline.stages.stages import STAGES


def test_a_kind_of_parts_whose_tables_say_what_became_of_files_is_a_step() -> None:
    kinds = (
        PartKind("own/part", {"make": "x:y"}, (StageTable("dropped", DroppedRecord),)),
        PartKind("own/whole", {"whole": "x:y"}, (StageTable("files", SourceFile, "num_bytes"),), only="whole"),
        PartKind("own/ids", {"ids": "x:y"}, (StageTable("kept", KeptDocument),)),
    )
    stage = replace(STAGES["collect"], name="own", parts=kinds)

    assert [*stage.steps] == ["own", "whole"]
    assert not stage.passes_rows_on
    assert replace(stage, parts=kinds[2:]).passes_rows_on


def test_a_part_function_that_is_not_declared_is_refused_with_those_that_are() -> None:
    with pytest.raises(StageError, match="it has no part function find; expected one of audit, list, read"):
        replace(STAGES["collect"], parts=STAGES["collect"].parts[1:2] + STAGES["collect"].parts[3:]).part_kind("find")


def test_a_reason_to_drop_is_declared_once_and_has_a_field_or_a_rule() -> None:
    for stage in STAGES:
        assert len({drop.name for drop in stage.drops}) == len(stage.drops)
        for drop in stage.drops:
            assert drop.fields or drop.of_pin or drop.rule, drop
