"""Offenses for the gates of tokenize."""

from pipeline.build.canaries.offense import Offense, after, altered, row_from_nowhere, row_lost, table_changed
from pipeline.build.canaries.sound_sources import SOUND, SOUND_HELD_OUT
from pipeline.core.records import Split
from pipeline.core.table_names import PACKED, TOKENS

_EMPTY = table_changed(PACKED[Split.TRAIN], lambda table: table.slice(0, 0))

TOKENIZE_OFFENSES = (
    Offense(
        "no_row_to_train_on",
        ("training_rows_exist",),
        after(*(altered(("tokenize", name), _EMPTY) for name in (SOUND, SOUND_HELD_OUT))),
    ),
    row_lost("tokenize", TOKENS),
    row_from_nowhere("tokenize", TOKENS),
)
