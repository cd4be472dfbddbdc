"""A batch, and what it says of itself: where each row came from, what infilling did, and the order of commits in it.

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
from trainer.data.mapped_rows import Integers, spread
from trainer.data.row_layout import Filled


class ResumeTriple(NamedTuple):
    """What a resumed run must meet again: source, row (with its epoch), and what infilling does with each piece."""

    source: str
    epoch: int
    row: int
    infilling: str


class Contents(NamedTuple):
    """What B rows are: a place among the sources' `names`, epoch and row; their pieces' middles, -1 where plain; and
    the file and commit that a row begins with, -1 for the commit of a row without chronology.
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
    def concatenated(cls, parts: Sequence["Contents"]) -> "Contents":
        """Parts of one loader's reading, one behind the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(parts[0].names, *map(np.concatenate, zip(*(part[1:] for part in parts), strict=True)))

    def in_order(self, order_B: Integers) -> "Contents":
        """The same rows in another order."""
        first_pieces_B = np.cumsum(self.num_pieces_B) - self.num_pieces_B
        pieces = spread(first_pieces_B[order_B], self.num_pieces_B[order_B])
        columns = {name: getattr(self, name) for name in self._fields[1:]}
        return Contents(
            self.names,
            **{name: column[order_B if name.endswith("_B") else pieces] for name, column in columns.items()},
        )


@dataclass(frozen=True, slots=True)
class Batch:
    """B rows of T slots at consecutive positions; the arrays are (B, T).

    `target_ids` is the shift; the mask is False on a piece's last slot and on padding. Structure is None unless the
    loader was asked for it; sentinels, BOS, EOS and padding have the structure 0.
    """

    position: int
    input_ids_BT: npt.NDArray[np.int64]
    target_ids_BT: npt.NDArray[np.int64]
    loss_mask_BT: npt.NDArray[np.bool_]
    doc_ids_BT: npt.NDArray[np.int32]
    structure_kind_BT: npt.NDArray[np.uint8] | None
    dependency_level_BT: npt.NDArray[np.uint8] | None
    contents: Contents

    @property
    def next_position(self) -> int:
        """Where the next batch begins."""
        return self.position + len(self.input_ids_BT)

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """What a model is given, in the order of its fields: structure only where there is any."""
        core = (self.input_ids_BT, self.target_ids_BT, self.loss_mask_BT, self.doc_ids_BT)
        structure = (self.structure_kind_BT, self.dependency_level_BT)
        return (*core, *(array for array in structure if array is not None))

    @property
    def triples(self) -> tuple[ResumeTriple, ...]:
        """What each row is, spelled out."""
        contents = self.contents
        pieces = iter(zip(*(column.tolist() for column in contents[5:8]), strict=True))
        rows = zip(*(column.tolist() for column in contents[1:5]), strict=True)
        return tuple(
            ResumeTriple(contents.names[source], epoch, row, " ".join(_spelling(*next(pieces)) for _ in range(number)))
            for source, epoch, row, number in rows
        )


def finish(position: int, filled: Filled, contents: Contents) -> Batch:
    """The global batch of these rows, its commits in the order of their files."""
    if (contents.commits_B >= 0).any():
        order_B = chronological(contents.files_B, contents.commits_B)
        filled, contents = filled.rows(order_B), contents.in_order(order_B)
    return Batch(position, *filled, contents)


def chronological(files_B: npt.NDArray[np.uint64], commits_B: Integers) -> Integers:
    """The order of a global batch: its rows with chronology sorted stably by file and commit, the others in place."""
    order_B = np.arange(len(commits_B))
    dated = np.flatnonzero(commits_B >= 0)
    order_B[dated] = dated[np.lexsort((commits_B[dated], files_B[dated]))]
    return order_B


def check_chronology(batch: Batch) -> None:
    """Raise TrainingError for a global batch whose commits are not in the order of their files.

    Asked before ranks and micro-batches divide it.
    """
    contents = batch.contents
    dated = [
        (int(file), int(commit))
        for file, commit in zip(contents.files_B, contents.commits_B, strict=True)
        if commit >= 0
    ]
    for before, after in pairwise(dated):
        if before > after:
            raise TrainingError(
                f"global batch at position {batch.position}",
                f"commit {after[1]} of file {after[0]:016x} stands behind commit {before[1]} of file {before[0]:016x}",
                "rows sorted by file, then commit",
                "Divide the batches of Loader.batch_at among ranks after they are made, not before.",
            )


def _spelling(start: int, end: int, is_spm: bool) -> str:
    return "plain" if start < 0 else str(Infilling(Form.SPM if is_spm else Form.PSM, start, end))
