"""Marks: shared by equal texts and by texts that agree in a band, of documents and of copyleft texts."""

import numpy as np

from pipeline.contracts.part import PartJob
from pipeline.core.params import Params
from pipeline.stages.normalize.duplicates.partitions.marks import MARKS, NUM_ROW_BITS, mark_documents
from tests.pipeline.stages.normalize.duplicates.partitions.made_cleaned import MadeFile, cleaned
from tests.pipeline.stages.normalize.duplicates.test_duplicates import statements


def marks_of(*texts: str, copyleft: str = "") -> list[set[int]]:
    """The marks of each row of one shard."""
    files = [MadeFile(f"{number}.cpp", text) for number, text in enumerate(texts)]
    files += [MadeFile("z.cpp", copyleft, is_copyleft=True)] if copyleft else []
    (shard,) = cleaned("a", files).shards
    output = mark_documents(PartJob("a.marks", Params(), {"rules": shard}, {}, {}))  # type: ignore[dict-item]  # what is read of it
    marks = output.tables[MARKS]["mark"].to_numpy()
    assert (np.diff(marks.astype(np.float64)) >= 0).all()
    assert output.report.rows_out == len(files)
    rows = marks & np.uint64((1 << NUM_ROW_BITS) - 1)
    return [set((marks[rows == row] >> np.uint64(NUM_ROW_BITS)).tolist()) for row in range(len(files))]


def test_a_document_has_a_mark_of_its_text_and_of_each_band_and_a_short_one_of_its_text() -> None:
    assert [len(each) for each in marks_of(statements("x"), "int a;\n")] == [43, 1]


def test_equal_texts_share_all_marks_similar_ones_some_and_others_none() -> None:
    first, equal, near, other = marks_of(
        statements("x"), statements("x"), statements("x", changed=20), statements("y"), copyleft=""
    )
    assert first == equal
    assert 5 < len(first & near) < 43
    assert not first & other


def test_a_copyleft_text_shares_the_marks_of_its_copies() -> None:
    copy, theirs = marks_of(statements("x"), copyleft=statements("x"))
    assert copy == theirs
