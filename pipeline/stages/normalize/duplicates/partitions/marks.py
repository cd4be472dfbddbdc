"""Marks: 40-bit values that two documents share if one may be a copy of the other: one of the text, and one of each band.

A mark that two documents share by accident brings them into one group, and costs the time to compare them; nothing else follows.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.contracts.part import PartJob, PartOutput
from pipeline.contracts.stage_report import StageReport
from pipeline.core.errors import StageError
from pipeline.core.records import UInt64
from pipeline.core.schema import stored, table_of
from pipeline.stages.normalize.duplicates.copyleft import COPYLEFT
from pipeline.stages.normalize.duplicates.duplicates import SIGNATURES
from pipeline.stages.normalize.duplicates.minhash_bands import all_band_keys
from pipeline.stages.normalize.duplicates.shingles import NUM_PERMUTATIONS

MARKS = "marks.arrow"
NUM_ROW_BITS = 24
"""The low bits of a mark: the row of its document in the part, documents first, then copyleft texts."""


@stored("MarkRecord")
@dataclass(frozen=True, slots=True)
class MarkRecord:
    """A mark and the row that has it. Marks of a part ascend, so that those in a range are a slice."""

    mark: UInt64


def mark_documents(job: PartJob) -> PartOutput:
    """Run the part function of `normalize/marks`: sign the documents and copyleft texts of one shard."""
    (rules,) = job.inputs.values()
    num_rows, found = 0, [np.empty(0, np.uint64)]
    for name in (SIGNATURES, COPYLEFT):
        table = rules.table(name, ["text_sha256", "signature"])
        digests = np.array([int(digest[:16], 16) for digest in table["text_sha256"].to_pylist()], np.uint64)
        lists = table["signature"].combine_chunks()
        lengths = lists.value_lengths().to_numpy() if len(lists) else np.empty(0, np.int64)
        signatures = lists.flatten().to_numpy().reshape(-1, NUM_PERMUTATIONS)
        rows = num_rows + np.arange(table.num_rows, dtype=np.uint64)
        found.append(_packed(digests, rows))
        found.append(_packed(all_band_keys(signatures), rows[lengths > 0][:, None]))
        num_rows += table.num_rows
    if num_rows >= 1 << NUM_ROW_BITS:
        raise StageError(job.name, f"it has {num_rows} texts", f"fewer than {1 << NUM_ROW_BITS} in one part")
    marks = np.concatenate(found)
    marks.sort()
    return PartOutput({MARKS: table_of(MarkRecord, {"mark": marks})}, StageReport(num_rows, num_rows))


def _packed(values: NDArray[np.uint64], rows: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the upper 40 bits of values, each before its row."""
    bits = np.uint64(NUM_ROW_BITS)
    packed: NDArray[np.uint64] = ((values >> bits << bits) | rows).ravel()
    return packed
