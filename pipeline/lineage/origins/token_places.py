"""Packed rows of a build, by name: the tokens of a slot, and the rows and slots that hold a document.

    SOURCE/SPLIT/PACK_ID        such as lantern/train/12

Shapes: T slots of a row, P pieces of all rows of a source and split.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.build.stage_objects import parts_of
from pipeline.core.command_line import place_number
from pipeline.core.errors import MissingError
from pipeline.core.records import Split
from pipeline.core.table_names import PACKED, TRAINING_ROWS
from pipeline.lineage.stored_build import StoredBuild
from pipeline.stages.stages import STAGES, stage_with
from pipeline.store.snapshot import Snapshot, open_snapshot

_PIECE_COLUMNS = ("source_doc_token_lengths", "piece_indices")
_EXAMPLE = "`python -m pipeline why SOURCE PATH` lists the rows of a file."


class RowName(NamedTuple):
    """A packed row of a snapshot."""

    source: str
    split: Split
    pack_id: int

    def __str__(self) -> str:
        return f"{self.source}/{self.split}/{self.pack_id}"


@dataclass(frozen=True)
class PlacedPiece:
    """A piece of a document: its row, its first slot, which is BOS, and the slots of it; `num_tokens` are those of its text."""

    row: RowName
    index: int
    first_slot: int
    num_slots: int
    document_id: str
    is_last: bool

    @property
    def num_tokens(self) -> int:
        return self.num_slots - 1 - self.is_last


class TokenPlace(NamedTuple):
    """A token of a document: its piece, its id and its bytes, and where these begin in the document's text."""

    piece: PlacedPiece
    slot: int
    token_id: int
    token_bytes: bytes
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.token_bytes)


def row_name(text: str) -> RowName:
    """Parse the name of a row. Raises MissingError for what is none."""
    source, _, rest = text.partition("/")
    split, _, digits = rest.partition("/")
    number = place_number(digits)
    if not source or split not in set(Split) or number is None:
        expected = f"SOURCE/SPLIT/PACK_ID, such as lantern/{Split.TRAIN}/12, with {' or '.join(Split)} as the split"
        raise MissingError(f"row {text[:200]!r}", "it is not the name of a row", expected, _EXAMPLE)
    return RowName(source, Split(split), number)


@dataclass(frozen=True)
class RowsOfSource:
    """The rows of one source and split of a build that has reached a snapshot."""

    build: StoredBuild
    source: str
    split: Split

    @cached_property
    def snapshot(self) -> Snapshot:
        """The snapshot of the build. Raises MissingError for a build that has composed none."""
        return open_snapshot(self.build.store, parts_of(self.build.stage(STAGES.names[-1]))["snapshot"])

    def token(self, row: RowName, slot: int) -> TokenPlace:
        """Find the token in a slot. Raises MissingError for a row or slot that is not there, for padding and special tokens."""
        pieces = self._pieces_of(row)
        ids_T = self._ids(row.pack_id)
        subject = f"slot {slot} of row {row}"
        if not 0 <= slot < len(ids_T):
            raise MissingError(subject, f"a row has {len(ids_T)} slots", f"0 to {len(ids_T) - 1}", "Name one of these.")
        piece = next((each for each in pieces if each.first_slot <= slot < each.first_slot + each.num_slots), None)
        if piece is None:
            last = pieces[-1].first_slot + pieces[-1].num_tokens
            expected = f"{pieces[0].first_slot + 1} to {last}, but for the special tokens between documents"
            raise MissingError(subject, "it is padding, which is of no file", expected, "Name one of these.")
        first = piece.first_slot + 1
        if not first <= slot < first + piece.num_tokens:
            name = "<|bos|>" if slot < first else "<|eos|>"
            found = f"it is {name}, a special token, which is of no bytes of a file"
            expected = f"{first} to {first + piece.num_tokens - 1}, the text of document {piece.document_id[:12]}"
            raise MissingError(subject, found, expected, "Name one of these.")
        before = [
            self._ids(each.row.pack_id)[each.first_slot + 1 :][: each.num_tokens]
            for each in self.pieces(piece.document_id)[: piece.index]
        ]
        sizes = self._token_sizes
        start = sum(int(sizes[ids].sum()) for ids in (*before, ids_T[first:slot]))
        token_id = int(ids_T[slot])
        return TokenPlace(piece, slot, token_id, self._token_bytes[token_id], start)

    def pieces(self, document_id: str) -> list[PlacedPiece]:
        """Return the pieces of a document, in order."""
        found = [self._piece(place) for place, each in enumerate(self._documents) if each == document_id]
        return sorted(found, key=lambda piece: piece.index)

    def _pieces_of(self, row: RowName) -> list[PlacedPiece]:
        offsets = self._offsets
        if row.pack_id >= len(offsets) - 1:
            found = f"source {self.source} has {len(offsets) - 1} rows in split {self.split}"
            expected = f"0 to {len(offsets) - 2} as the number" if len(offsets) > 1 else "a row of another split"
            raise MissingError(f"row {row}", found, expected, _EXAMPLE)
        return [self._piece(place) for place in range(offsets[row.pack_id], offsets[row.pack_id + 1])]

    def _piece(self, place: int) -> PlacedPiece:
        offsets = self._offsets
        lengths_P = self._columns["source_doc_token_lengths"]
        pack_id = int(np.searchsorted(offsets, place, side="right")) - 1
        first_slot, num_slots = int(lengths_P[offsets[pack_id] : place].sum()), int(lengths_P[place])
        is_last = int(self._ids(pack_id)[first_slot + num_slots - 1]) == self.snapshot.vocabulary["specials"]["<|eos|>"]
        index = int(self._columns["piece_indices"][place])
        row = RowName(self.source, self.split, pack_id)
        return PlacedPiece(row, index, first_slot, num_slots, self._documents[place], is_last)

    @cached_property
    def _part(self) -> Any:
        return self.build.part(stage_with(PACKED[self.split]).name, self.source)

    @cached_property
    def _packed(self) -> Any:
        return self._part.table(PACKED[self.split], ["source_doc_ids", *_PIECE_COLUMNS]).combine_chunks()

    def _list_column(self, name: str) -> Any:
        """Return a list column of the packed rows as one array."""
        return self._packed[name].combine_chunks()

    @cached_property
    def _documents(self) -> list[str]:
        """The document id of each of the P pieces."""
        return [name for row in self._list_column("source_doc_ids").to_pylist() for name in row]

    @cached_property
    def _columns(self) -> dict[str, npt.NDArray[np.int64]]:
        return {name: _numbers(self._list_column(name).values) for name in _PIECE_COLUMNS}

    @cached_property
    def _offsets(self) -> npt.NDArray[np.int64]:
        """The first piece of each row, and the number of all."""
        return _numbers(self._list_column("piece_indices").offsets)

    def _ids(self, pack_id: int) -> npt.NDArray[np.int64]:
        """Return the ids in the slots of a row, from the file that training reads."""
        return _numbers(self._training_rows["input_ids"][pack_id].values)

    @cached_property
    def _training_rows(self) -> Any:
        return self._part.table(TRAINING_ROWS[self.split])

    @cached_property
    def _token_bytes(self) -> Sequence[bytes]:
        from pipeline.stages.tokenize.vocabulary import bytes_of_tokens  # who asks for rows alone does not wait for it

        return bytes_of_tokens(self.snapshot.tokenizer_file.read_bytes())

    @cached_property
    def _token_sizes(self) -> npt.NDArray[np.int64]:
        return np.array([len(each) for each in self._token_bytes], dtype=np.int64)


def _numbers(values: Any) -> npt.NDArray[np.int64]:
    """Return an Arrow array of numbers. `to_numpy` would load pandas, where that is installed, for half a second."""
    return np.from_dlpack(values).astype(np.int64)
