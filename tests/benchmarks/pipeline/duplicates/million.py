"""Made documents with planted copies, and how long finding them takes.

`python -m tests.benchmarks.pipeline.duplicates.million [NUMBER]` prints both: of a million,
700,000 documents of 40 random shingles, and 300,000 copies of them in other sources, of whose shingles 0 to 16 are others.
Making them and their signatures is not measured.
"""

import json
import resource
import sys
import time

import numpy as np
from numpy.typing import NDArray

from pipeline.stages.normalize.duplicates.duplicates import ComparedDocument, find_duplicates
from pipeline.stages.normalize.duplicates.shingles import NUM_PERMUTATIONS, hashes_for_minhash, signature
from pipeline.stages.normalize.params import VENDORED_ROOTS, DuplicateParams

NUM_SHINGLES = 40
COPIED = 0.3


def main() -> int:
    """Make the documents, find the copies, print seconds, peak memory, and how many planted copies were found."""
    num_documents = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    shingles, origin = _documents(num_documents)
    signatures = _signatures(shingles)
    entries = [
        ComparedDocument(
            str(row), f"s{row % 50:02}", f"{row:07}.cpp", "train", 1_000, str(row), True, NUM_SHINGLES, row
        )
        for row in range(num_documents)
    ]
    started = time.perf_counter()
    lost = find_duplicates(entries, signatures, lambda name: shingles[int(name)], DuplicateParams(), VENDORED_ROOTS)
    seconds = time.perf_counter() - started
    gibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    pairs = [(int(each.document_id), int(each.keeper_id)) for each in lost]
    wrong = sum(origin[loser] != origin[keeper] for loser, keeper in pairs)
    planted = _num_planted(shingles, origin)
    print(json.dumps({"seconds": seconds, "gibibytes": gibibytes, "found": len(lost) / planted, "wrong": int(wrong)}))
    return 0


def _documents(number: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    generator = np.random.default_rng(1)
    num_first = number - int(number * COPIED)
    origin = np.concatenate([np.arange(num_first), generator.permutation(num_first)[: number - num_first]])
    first = generator.integers(0, 2**64, (num_first, NUM_SHINGLES), dtype=np.uint64)
    made = first[origin]
    num_changed = generator.integers(0, 17, number)
    num_changed[:num_first] = 0
    changed = np.arange(NUM_SHINGLES) < num_changed[:, None]
    made[changed] = generator.integers(0, 2**64, int(changed.sum()), dtype=np.uint64)
    made.sort(axis=1)
    return made, origin


def _signatures(shingles: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """The signature of each document."""
    made = np.empty((len(shingles), NUM_PERMUTATIONS), np.uint32)
    for row, each in enumerate(shingles):
        made[row] = signature(hashes_for_minhash(each), 1)
    return made


def _num_planted(shingles: NDArray[np.uint64], origin: NDArray[np.int64]) -> int:
    """Copies as similar to their original as their sources ask: of the same source 0.9, of different ones 0.7."""
    copies = np.flatnonzero(origin != np.arange(len(origin)))
    shared = np.array([len(np.intersect1d(shingles[row], shingles[origin[row]], True)) for row in copies.tolist()])
    similarity = shared / (2 * NUM_SHINGLES - shared)
    limits = np.where(copies % 50 == origin[copies] % 50, 0.9, 0.7)
    return int((similarity >= limits).sum())


if __name__ == "__main__":
    sys.exit(main())
