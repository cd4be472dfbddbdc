"""The format of a training row is declared once, and agrees with the columns of its record."""

from typing import get_args, get_type_hints

from pipeline.contracts.training_row import NO_DOCUMENT, NUM_SENTINELS, STRUCTURE
from pipeline.core.records import TrainingRow
from pipeline.stages.tokenize.rows import layout, pack
from pipeline.stages.tokenize.vocabulary import SPECIALS
from trainer.data import mapped_rows, row_layout


def test_structure_is_every_column_of_slots_that_a_row_may_lack() -> None:
    hints = get_type_hints(TrainingRow)
    assert tuple(name for name, hint in hints.items() if tuple[int, ...] in get_args(hint)) == STRUCTURE


def test_a_piece_keeps_a_slot_free_for_each_special_of_infilling() -> None:
    assert sum(special.startswith("<|fim_") for special in SPECIALS) == NUM_SENTINELS


def test_the_writer_and_the_reader_hold_the_same_declaration() -> None:
    assert layout.STRUCTURE is mapped_rows.STRUCTURE is STRUCTURE
    assert pack.NUM_SENTINELS == row_layout.NUM_SENTINELS == NUM_SENTINELS
    assert layout.NO_DOCUMENT == row_layout.NO_DOCUMENT == NO_DOCUMENT
