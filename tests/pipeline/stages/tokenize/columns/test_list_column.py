"""List columns: read from Arrow and written to it without change."""

import numpy as np
import pyarrow as pa

from pipeline.core.records import TrainingRow
from pipeline.core.schema import arrow_schema
from pipeline.stages.tokenize.columns.list_column import ListColumn

TYPE = arrow_schema(TrainingRow).field("input_ids").type


def test_a_column_survives_arrow() -> None:
    column = ListColumn.of([[1, 2], [], [3]], np.dtype(np.uint16))
    array = column.to_arrow(TYPE)
    assert array.to_pylist() == [[1, 2], [], [3]]
    back = ListColumn.from_arrow(array)
    assert [back[index].tolist() for index in range(len(back))] == [[1, 2], [], [3]]


def test_a_slice_of_several_chunks_reads_as_one_column() -> None:
    first, second = (ListColumn.of(lists, np.dtype(np.uint16)).to_arrow(TYPE) for lists in ([[9], [1, 2]], [[], [5]]))
    column = ListColumn.from_arrow(pa.chunked_array([first, second]).slice(1))
    assert column.lengths.tolist() == [2, 0, 1]
    assert column.values.tolist() == [1, 2, 5]


def test_no_lists_make_an_empty_column() -> None:
    column = ListColumn.of([], np.dtype(np.uint16))
    assert len(column) == 0
    assert column.to_arrow(TYPE).to_pylist() == []
