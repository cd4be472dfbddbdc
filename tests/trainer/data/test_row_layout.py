"""Layout of rows: a row that contradicts itself is refused, and a batch holds the shift of its rows."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from pipeline.core.errors import SnapshotError
from tests.support.made.made_rows import CONFIG, LAYOUT, PLAIN, T, rows_of, sources_of
from trainer.data.loader import Loader, Source
from trainer.data.mapped_rows import TrainingRows


def edited(column: str, row: list[int]) -> TrainingRows:
    table = rows_of(2, 100)
    values = table[column].to_pylist()
    values[0] = row
    place = table.column_names.index(column)
    return TrainingRows(
        table.set_column(place, table.schema.field(column), pa.array(values, table.schema.field(column).type))
    )


@pytest.mark.parametrize(
    ("column", "row", "reason"),
    [
        ("lengths", [10, 40], "reach beyond its end"),
        ("lengths", [23, 0], "reach beyond its end"),
        ("lengths", [23], "piece_ids is not as long"),
        ("piece_ids", [1], "piece_ids is not as long"),
        ("chunk_counts", [2, 4], "do not add up"),
        ("chunk_starts", [1], "do not add up"),
        ("lengths", [10, T - 10], "no room"),
        ("input_ids", [1] * 22 + [999] + [0] * 9, "id 999"),
    ],
)
def test_a_row_that_contradicts_itself_is_refused(column: str, row: list[int], reason: str) -> None:
    layout = replace(LAYOUT, vocabulary_size=999)
    with pytest.raises(SnapshotError, match=reason):
        Loader([Source("bad", edited(column, row))], layout, CONFIG).batch_at(0, 2)


def test_a_batch_holds_the_shift_and_no_loss_across_documents() -> None:
    batch = Loader(sources_of(heron=4), LAYOUT, PLAIN).batch_at(0, 3)
    assert batch.input_ids_BT.dtype == batch.target_ids_BT.dtype == np.int64
    assert np.array_equal(batch.target_ids_BT[:, :-1], batch.input_ids_BT[:, 1:])
    assert batch.doc_ids_BT[0].tolist() == [1] * 10 + [2] * 13 + [-1] * 9
    assert batch.loss_mask_BT[0].tolist() == [True] * 9 + [False] + [True] * 12 + [False] * 10
