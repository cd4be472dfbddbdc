"""Stored slots: whether the arrays of a row say what its file holds, by an own reading of boundaries and sentinels.

Shapes: T slots of a row.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from pipeline.contracts.training_row import NO_DOCUMENT, NUM_SENTINELS
from pipeline.store.snapshot import Snapshot
from trainer.proof.stored_rows import AS_STORED, StoredColumns

ROWS_OF_SOURCE = 16
"""Rows of each source whose slots are judged: the first that are read, in all epochs."""
NOT_JUDGED = "not judged"


def are_judged(sources: Iterable[str]) -> Iterator[bool]:
    """Iterate over whether the slots of each row are judged, by the sources of the rows in the order in which they are read."""
    counts: Counter[str] = Counter()
    for source in sources:
        counts[source] += 1
        yield counts[source] <= ROWS_OF_SOURCE


class StoredSlots:
    """Judge of the slots of a snapshot's rows, which counts the rows of each source."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._columns: dict[str, StoredColumns] = {}
        self._counts: Counter[str] = Counter()

    def judge(self, source: str, row: int, arrays_T: Iterable[Any]) -> str:
        """Return what is wrong with inputs, targets, mask and document ids of a row, or `AS_STORED`."""
        self._counts[source] += 1
        if self._counts[source] > ROWS_OF_SOURCE:
            return NOT_JUDGED
        if source not in self._columns:
            self._columns[source] = StoredColumns(self._snapshot, source, ("input_ids", "lengths"))
        stored = self._columns[source]
        ids, lengths = stored.values("input_ids", row), stored.values("lengths", row)
        return judge_slots(ids, lengths, arrays_T, self._snapshot.vocabulary["specials"])


def judge_slots(stored_T: Any, lengths: Any, arrays_T: Iterable[Any], specials: Mapping[str, int]) -> str:
    """Return what is wrong with the arrays of a row by its stored ids and the lengths of its pieces, or `AS_STORED`."""
    ids_T, targets_T, mask_T, docs_T, *_ = arrays_T
    done = read = 0
    wanted_mask_T = np.zeros(len(ids_T), np.bool_)
    for number, length in enumerate(lengths.tolist(), start=1):
        size = int((docs_T == number).sum())
        end = done + size
        if size not in (length, length + NUM_SENTINELS) or (docs_T[done:end] != number).any():
            return f"document {number} has not its {length} slots in doc_ids"
        piece = ids_T[done:end].tolist()
        plain = piece if size == length else _undone(piece, specials)
        if plain != stored_T[read : read + length].tolist():
            return f"document {number} is not as stored{'' if size == length else ' when its infilling is undone'}"
        wanted_mask_T[done : end - 1] = True
        done, read = end, read + length
    if (docs_T[done:] != NO_DOCUMENT).any() or (ids_T[done:] != specials["<|pad|>"]).any():
        return "what follows the last document is not padding"
    if (mask_T != wanted_mask_T).any():
        return "the mask is not that of its documents without the last slot of each"
    if (targets_T[:-1] != ids_T[1:])[mask_T[:-1]].any():
        return "targets are not the inputs moved by one"
    return AS_STORED


def _undone(piece: list[int], specials: Mapping[str, int]) -> list[int] | None:
    """Return the ids of a document before its infilling; None unless it has each sentinel once, in the order of both forms."""
    signs = [specials[f"<|fim_{name}|>"] for name in ("prefix", "suffix", "middle")]
    if [each for each in piece if each in signs] != signs or piece[1] != signs[0]:
        return None
    suffix, middle = piece.index(signs[1]), piece.index(signs[2])
    end = len(piece) - (piece[-1] == specials["<|eos|>"])
    # PSM has the prefix before the suffix, SPM after the sentinel of the middle: there, nothing is before the suffix.
    return [piece[0], *piece[2:suffix], *piece[middle + 1 : end], *piece[suffix + 1 : middle], *piece[end:]]
