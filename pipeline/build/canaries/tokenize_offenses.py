"""Offenses for the gates of tokenize."""

from dataclasses import replace

from pipeline.build.canaries.offense import (
    NUM_PLACES,
    Offense,
    after,
    altered,
    both_altered,
    copied_of_another,
    table_changed,
)
from pipeline.build.canaries.sound_sources import SOUND_HELD_OUT
from pipeline.contracts.part import PartOutput
from pipeline.core.records import Split
from pipeline.core.table_names import PACKED, TOKENS

_EMPTY = both_altered("tokenize", table_changed(PACKED[Split.TRAIN], lambda table: table.slice(0, 0)))


def _held_out_as_train(output: PartOutput) -> PartOutput:
    return replace(output, tables={**output.tables, PACKED[Split.TRAIN]: output.tables[PACKED[Split.HELD_OUT]]})


TOKENIZE_OFFENSES = (
    Offense(
        "no_row_to_train_on",
        ("training_rows_exist",),
        _EMPTY,
        control=after(_EMPTY, altered(("tokenize", SOUND_HELD_OUT), _held_out_as_train)),  # rows of the last source
        least=NUM_PLACES,
    ),
    copied_of_another("tokenize", TOKENS, {"provenance": "degraded"}),
)
