"""Links: pairs of rows that share a mark, one part a range of marks; and the components that all links make.

Rows are counted through all parts of marks in the order of their labels. Of rows that share a mark each is linked with the first,
never all with all.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.contracts.part import PartJob, PartOutput, Tables
from pipeline.contracts.stage_report import StageReport
from pipeline.core.records import UInt64
from pipeline.core.schema import stored, table_of
from pipeline.stages.normalize.duplicates.minhash_bands import join_components
from pipeline.stages.normalize.duplicates.partitions.marks import MARKS, NUM_ROW_BITS

LINKS = "links.arrow"
_HALF = np.uint64(32)


@stored("LinkRecord")
@dataclass(frozen=True, slots=True)
class LinkRecord:
    """Two rows, the smaller one in the upper 32 bits. Links of a part ascend."""

    link: UInt64


def link_documents(job: PartJob) -> PartOutput:
    """Run the part function of `normalize/links`: link the rows that share a mark of one range."""
    index, num_ranges = job.identity["range"], job.identity["num_ranges"]
    width = (1 << 64) // num_ranges
    inputs = [stored for _, stored in sorted(job.inputs.items())]
    numbers = [int(stored.json("report.json")["rows_out"]) for stored in inputs]
    num_rows = sum(numbers)
    row_bits = np.uint64(max(1, num_rows.bit_length()))
    packed = [np.empty(0, np.uint64)]
    start = 0
    for stored_marks, number in zip(inputs, numbers, strict=True):
        for marks in _slices(stored_marks, index * width, (index + 1) * width):
            rows = np.uint64(start) + (marks & np.uint64((1 << NUM_ROW_BITS) - 1))
            # What does not fit are the leading bits, which a range has in common.
            packed.append((marks >> np.uint64(NUM_ROW_BITS) << row_bits) | rows)
        start += number
    links = _links(np.concatenate(packed), row_bits)
    return PartOutput({LINKS: table_of(LinkRecord, {"link": links})}, StageReport(num_rows, len(links)))


def _slices(stored_marks: Tables, low: int, high: int) -> Iterator[NDArray[np.uint64]]:
    for chunk in stored_marks.table(MARKS)["mark"].chunks:
        marks = chunk.to_numpy()
        first, last = np.searchsorted(marks, np.array([low, high - 1], np.uint64))
        yield marks[first : last + int(last < len(marks) and marks[last] == high - 1)]


def _links(packed: NDArray[np.uint64], row_bits: np.uint64) -> NDArray[np.uint64]:
    """Return the distinct links of rows whose marks are equal: packed values, the mark in the upper bits."""
    packed.sort()
    # Of a run of equal marks all but the first row.
    others = 1 + np.flatnonzero(packed[1:] >> row_bits == packed[:-1] >> row_bits)
    is_second = np.diff(others, prepend=-1) > 1
    heads = np.maximum.accumulate(np.where(is_second, others - 1, 0))
    row_mask = (np.uint64(1) << row_bits) - np.uint64(1)
    links = np.unique((packed[heads] & row_mask) << _HALF | packed[others] & row_mask)
    of_two: NDArray[np.uint64] = links[links >> _HALF != links & np.uint64(0xFFFFFFFF)]
    return of_two


def components(num_rows: int, stored_links: Iterable[Tables]) -> NDArray[np.int64]:
    """Return of each row the smallest one that links join it with."""
    names = np.arange(num_rows)
    for stored_part in stored_links:
        for chunk in stored_part.table(LINKS)["link"].chunks:
            links = chunk.to_numpy()
            join_components(names, (links >> _HALF).astype(np.int64), (links & np.uint64(0xFFFFFFFF)).astype(np.int64))
    return roots(names)


def roots(names: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the names of rows followed to their ends: each is the smallest row of its component."""
    while True:
        further = names[names]
        if (further == names).all():
            return names
        names = further
