"""Sample stretches: the sampled shingles of all documents on disk, by intervals of their values, and what meets there."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.stages.normalize.duplicates.contained_pairs import SampleStretch, candidate_pairs
from pipeline.stages.normalize.duplicates.duplicates import SIGNATURES
from pipeline.stages.normalize.duplicates.partitions.corpus_rows import CorpusRows
from pipeline.stages.normalize.duplicates.spill import NumberSpill, Regroup, regrouped
from pipeline.stages.normalize.params import DuplicateParams

_SAMPLES_IN_STRETCH = 4_000_000
_VALUE_BITS = 32


class SpilledSamples:
    """The samples of all documents, written once."""

    def __init__(self, rows: CorpusRows, folder: Path) -> None:
        self._rows, self._folder = rows, folder
        sampled = int(rows.body_sizes.sum(dtype=np.int64)) // 4
        self._num_stretches = 1 + sampled // _SAMPLES_IN_STRETCH
        self._spill = NumberSpill(folder / "samples")
        for shard in rows.shards:
            lists = shard.stored.table(SIGNATURES, ["sample"])["sample"].combine_chunks()
            if len(lists):
                values = lists.flatten().to_numpy().astype(np.int64)
                owners = np.repeat(np.arange(shard.start, shard.middle), lists.value_lengths().to_numpy())
                self._spill.add(self._stretch_of(values), owners << _VALUE_BITS | values)

    def pairs(self, chosen: NDArray[np.int64], params: DuplicateParams, folder: Path) -> NDArray[np.int64]:
        """Return the pairs of some rows that may be a part and its container, shape (pairs, 2)."""
        ordered = self._rows.by_size(chosen)
        places = np.full(self._rows.num_rows, -1, np.int32)
        places[ordered] = np.arange(len(ordered), dtype=np.int32)
        found = candidate_pairs(
            lambda: (self._stretch(number, places, params) for number in range(self._num_stretches)),
            self._rows.body_sizes[ordered],
            params,
            self._regroup(len(ordered), folder),
        )
        pairs = np.fromiter((place for pair in found for place in pair), np.int64)
        return ordered[pairs].reshape(-1, 2)

    def _stretch_of(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        numbers: NDArray[np.int64] = values * self._num_stretches >> _VALUE_BITS
        return numbers

    def _stretch(self, number: int, places: NDArray[np.int32], params: DuplicateParams) -> SampleStretch:
        packed = self._spill.read(number)
        owners = places[packed >> _VALUE_BITS].astype(np.int64)
        packed = (owners << _VALUE_BITS | packed & ((1 << _VALUE_BITS) - 1))[owners >= 0]
        packed.sort()
        values = (packed & ((1 << _VALUE_BITS) - 1)).astype(np.uint32)
        return SampleStretch(values, (packed >> _VALUE_BITS).astype(np.int32), params.max_num_sharing)

    def _regroup(self, num_rows: int, folder: Path) -> Regroup:
        if self._num_stretches == 1:
            return lambda meetings: meetings
        return regrouped(folder, self._num_stretches, lambda met: met // num_rows * self._num_stretches // num_rows)
