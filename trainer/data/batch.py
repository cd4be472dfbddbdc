"""Batch: arrays of training rows, the origin of each row, and the order of commits in a global batch.

Shapes: B rows, T slots of a row, P pieces of the rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.core.errors import TrainingError
from trainer.data.infilling import Form, Infilling
from trainer.data.keyed_hash import Integers
from trainer.data.mapped_rows import spread

Arrays = tuple[npt.NDArray[Any], ...]


class RowOrigin(NamedTuple):
    """Identity of a training row, equal on resume: source, epoch, row, and the infilling of each piece."""

    source: str
    epoch: int
    row: int
    infilling: str


class RowOrigins(NamedTuple):
    """Origins of B rows: index into the sources' `names`, epoch and row; infillings of their pieces, -1 where plain; and the
    file and commit that a row begins with, -1 for the commit of a row without chronology.
    """

    names: tuple[str, ...]
    sources_B: Integers
    epochs_B: Integers
    rows_B: Integers
    num_pieces_B: Integers
    starts_P: Integers
    ends_P: Integers
    are_spm_P: npt.NDArray[np.bool_]
    files_B: npt.NDArray[np.uint64]
    commits_B: Integers

    @classmethod
    def concatenated(cls, parts: Sequence["RowOrigins"]) -> "RowOrigins":
        """Concatenate parts of one loader's rows."""
        if len(parts) == 1:
            return parts[0]
        return cls(parts[0].names, *map(np.concatenate, zip(*(part[1:] for part in parts), strict=True)))

    def between(self, first: int, last: int) -> "RowOrigins":
        """Return rows `first` to `last`."""
        ends_B = np.cumsum(self.num_pieces_B[:last])
        pieces = slice(ends_B[first - 1] if first else 0, ends_B[-1])
        return self._at(slice(first, last), pieces)

    def in_order(self, order_B: Integers) -> "RowOrigins":
        """Return the same rows in another order."""
        first_pieces_B = np.cumsum(self.num_pieces_B) - self.num_pieces_B
        return self._at(order_B, spread(first_pieces_B[order_B], self.num_pieces_B[order_B]))

    def _at(self, rows: slice | Integers, pieces: slice | Integers) -> "RowOrigins":
        columns = zip(self._fields[1:], self[1:], strict=True)
        return RowOrigins(self.names, *(column[rows if name.endswith("_B") else pieces] for name, column in columns))


@dataclass(frozen=True, slots=True)
class Batch:
    """B rows of T slots at consecutive positions; the arrays are (B, T).

    `target_ids` is the shift; the mask is False on a piece's last slot and on padding. Structure is None unless the loader
    reads it; sentinels, BOS, EOS and padding have the structure 0.
    """

    position: int
    origins: RowOrigins
    input_ids_BT: npt.NDArray[np.int64]
    target_ids_BT: npt.NDArray[np.int64]
    loss_mask_BT: npt.NDArray[np.bool_]
    doc_ids_BT: npt.NDArray[np.int32]
    structure_kind_BT: npt.NDArray[np.uint8] | None = None
    dependency_level_BT: npt.NDArray[np.uint8] | None = None

    @property
    def next_position(self) -> int:
        """The position of the next batch."""
        return self.position + len(self.input_ids_BT)

    @property
    def arrays(self) -> Arrays:
        """The inputs of a model, in the order of the fields: structure only if it was read."""
        core = (self.input_ids_BT, self.target_ids_BT, self.loss_mask_BT, self.doc_ids_BT)
        structure = (self.structure_kind_BT, self.dependency_level_BT)
        return (*core, *(array for array in structure if array is not None))

    @property
    def row_origins(self) -> tuple[RowOrigin, ...]:
        """The origin of each row, spelled out."""
        origins = self.origins
        pieces = iter(zip(*(column.tolist() for column in origins[5:8]), strict=True))
        rows = zip(*(column.tolist() for column in origins[1:5]), strict=True)
        return tuple(
            RowOrigin(origins.names[source], epoch, row, " ".join(_spelling(*next(pieces)) for _ in range(number)))
            for source, epoch, row, number in rows
        )


def empty_arrays(num_rows: int, row_length: int, with_structure: bool) -> Arrays:
    """Allocate the arrays of a batch, in the order of its fields."""
    kinds = [np.int64, np.int64, np.bool_, np.int32] + [np.uint8, np.uint8] * with_structure
    return tuple(np.empty((num_rows, row_length), dtype=kind) for kind in kinds)


def global_batch(position: int, arrays: Arrays, origins: RowOrigins) -> Batch:
    """Return the global batch of these rows, its commits in the order of their files."""
    if (origins.commits_B >= 0).any():
        order_B = chronological(origins.files_B, origins.commits_B)
        arrays, origins = tuple(array[order_B] for array in arrays), origins.in_order(order_B)
    return Batch(position, origins, *arrays)


def chronological(files_B: npt.NDArray[np.uint64], commits_B: Integers) -> Integers:
    """Return the order of a global batch: rows with chronology sorted stably by file and commit, the others in place."""
    order_B = np.arange(len(commits_B))
    dated = np.flatnonzero(commits_B >= 0)
    order_B[dated] = dated[np.lexsort((commits_B[dated], files_B[dated]))]
    return order_B


def check_chronology(batch: Batch) -> None:
    """Raise TrainingError for a global batch whose commits are not in the order of their files.

    Call it before ranks and micro-batches divide the batch.
    """
    origins = batch.origins
    dated = [
        (int(file), int(commit)) for file, commit in zip(origins.files_B, origins.commits_B, strict=True) if commit >= 0
    ]
    for before, after in pairwise(dated):
        if before > after:
            raise TrainingError(
                f"global batch at position {batch.position}",
                f"commit {after[1]} of file {after[0]:016x} comes after commit {before[1]} of file {before[0]:016x}",
                "rows sorted by file, then commit",
                "Divide the batches of Loader.batch_at among ranks after they are made, not before.",
            )


def _spelling(start: int, end: int, is_spm: bool) -> str:
    return "plain" if start < 0 else str(Infilling(Form.SPM if is_spm else Form.PSM, start, end))
