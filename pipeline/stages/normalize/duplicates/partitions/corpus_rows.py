"""Corpus rows: the documents of all shards by one number each, the columns that are held of all, and groups of them on disk.

The rows of a shard are its documents, then its copyleft texts, in the order of sources and shards: among files of a source
that is the order of paths.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.contracts.part import Tables
from pipeline.core.table_names import DOCUMENTS
from pipeline.stages.normalize.duplicates.copyleft import COPYLEFT
from pipeline.stages.normalize.duplicates.duplicates import (
    ENTRY_COLUMNS,
    SIGNATURES,
    ComparedDocument,
    Upstreams,
    preference,
    read_entries,
)
from pipeline.stages.normalize.duplicates.spill import TableSpill, rows_with

ROW_NUMBER = "number"
"""Column of a row's number, beside those of its table."""
_GROUP_BYTES = 1 << 26
_BYTES_OF_ROW = 4_096
"""Bytes that a document takes while its group is compared, beside its text: signature, keys of bands, objects."""
_BYTES_OF_SHINGLE = 8
_SPILLED = [*ENTRY_COLUMNS, "num_body_shingles", "signature"]
_COLUMNS = ["num_bytes", "num_body_shingles", "num_shingles", "num_tokens"]


@dataclass(frozen=True)
class ShardRows:
    """A shard and its rows: documents from `start` on, then copyleft texts from `middle` on, up to `end`."""

    source: str
    stored: Tables
    start: int
    middle: int
    end: int


class CorpusRows:
    """All rows, and the columns of each that decide what it is compared with."""

    def __init__(
        self, sources: Mapping[str, Tables], vendored: Collection[str], named: Mapping[str, Mapping[str, str]]
    ):
        """Read the columns. `vendored` and `named` are those of the order of preference: see `rank_documents`."""
        self.vendored, self._named = frozenset(vendored), named
        self.shards = _rows_of_shards(sources)
        self.num_rows = self.shards[-1].end if self.shards else 0
        self.upstreams = Upstreams(named, ())
        self.is_document = np.zeros(self.num_rows, np.bool_)
        self.weights = np.full(self.num_rows, _BYTES_OF_ROW, np.int32)
        self.num_tokens, self.body_sizes = (np.zeros(self.num_rows, np.int32) for _ in range(2))
        self._ranks = np.zeros(self.num_rows, np.int8)
        for shard in self.shards:
            self._read(shard)

    @property
    def has_claims(self) -> bool:
        """True where pins name upstreams: then the order of preference depends on which documents are left."""
        return bool(self._named)

    def entries(self, sources: Collection[str] | None = None) -> Iterator[ComparedDocument]:
        """Read the documents of all sources, or of some."""
        for shard in self.shards:
            if sources is None or shard.source in sources:
                yield from read_entries(shard.stored.table(SIGNATURES, [*ENTRY_COLUMNS, "signature"]))

    def prefer(self, gone: Collection[str]) -> None:
        """Set the order of preference among the documents that are left, without those of the ids that are `gone`."""
        if self.has_claims:
            left = (each for each in self.entries(self._named) if each.document_id not in gone)
            self.upstreams = Upstreams(self._named, left)
        for shard in self.shards:
            self._ranks[shard.start : shard.middle] = self._preferences(shard)

    def by_size(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return rows of documents by the sizes of their bodies; of one size the preferred last."""
        ordered: NDArray[np.int64] = rows[np.lexsort((-rows, -self._ranks[rows], self.body_sizes[rows]))]
        return ordered

    def groups(self, names: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return of each row the number of its group, -1 of one that is joined with none. `names` are those of components.

        A group has whole components, one after the other, about as many as fit into memory at once.
        """
        sizes = np.bincount(names, minlength=self.num_rows)
        heads = np.flatnonzero(sizes > 1)
        weights = np.bincount(names, self.weights, self.num_rows)[heads]
        numbers = np.full(self.num_rows, -1, np.int32)
        numbers[heads] = ((np.cumsum(weights) - weights) // _GROUP_BYTES).astype(np.int32)
        return numbers[names]

    def _read(self, shard: ShardRows) -> None:
        table = shard.stored.table(SIGNATURES, _COLUMNS)
        rows = slice(shard.start, shard.middle)
        self.is_document[rows] = True
        self.num_tokens[rows] = table["num_tokens"].to_numpy()
        self.body_sizes[rows] = table["num_body_shingles"].to_numpy()
        self.weights[rows] += table["num_bytes"].to_numpy() + _BYTES_OF_SHINGLE * table["num_shingles"].to_numpy()
        copyleft = shard.stored.table(COPYLEFT, ["shingles"])["shingles"].combine_chunks()
        if len(copyleft):
            self.weights[shard.middle : shard.end] += _BYTES_OF_SHINGLE * copyleft.value_lengths().to_numpy()

    def _preferences(self, shard: ShardRows) -> list[int]:
        """Return numbers in the order of preference, the same for files that only source and path tell apart."""
        if self.has_claims:
            entries = read_entries(shard.stored.table(SIGNATURES, [*ENTRY_COLUMNS, "signature"]))
            return [_number(preference(each, self.upstreams, self.vendored)) for each in entries]
        table = shard.stored.table(SIGNATURES, ["path", "split"])
        known: dict[tuple[str, str], int] = {}
        found = []
        for path, split in zip(table["path"].to_pylist(), table["split"].to_pylist(), strict=True):
            folder = path.rpartition("/")[0]
            if (split, folder) not in known:
                file = ComparedDocument("", shard.source, f"{folder}/", split, 0, "", False, 0, None)
                known[split, folder] = _number(preference(file, self.upstreams, self.vendored))
            found.append(known[split, folder])
        return found


def _number(preference_of_file: tuple[bool, int, bool]) -> int:
    is_trained, claim, is_vendored = preference_of_file
    return 6 * is_trained + 2 * claim + is_vendored


def _rows_of_shards(sources: Mapping[str, Tables]) -> list[ShardRows]:
    found: list[ShardRows] = []
    start = 0
    for source in sorted(sources):
        for stored in sources[source].shards:
            middle = start + stored.table(SIGNATURES, ["num_bytes"]).num_rows
            end = middle + stored.table(COPYLEFT, ["is_own"]).num_rows
            found.append(ShardRows(source, stored, start, middle, end))
            start = end
    return found


def spill_documents(rows: CorpusRows, groups: NDArray[np.int32], folder: Path) -> TableSpill:
    """Write what is known of the documents of groups, with their texts, into a folder, by group. It is read once."""
    spill = TableSpill(folder)
    for shard in rows.shards:
        chosen = shard.start + np.flatnonzero(groups[shard.start : shard.middle] >= 0)
        if len(chosen):
            table = shard.stored.table(SIGNATURES, _SPILLED).take(pa.array(chosen - shard.start))
            texts = rows_with(
                shard.stored.table(DOCUMENTS, ["document_id", "text"]), "document_id", table["document_id"]
            )
            # A text that is not there shares nothing: that it is lost, the audit says.
            table = (
                table.append_column("text", texts["text"]) if texts.num_rows == len(chosen) else _filled(table, texts)
            )
            spill.add(groups[chosen], table.append_column(ROW_NUMBER, pa.array(chosen)))
    return spill


def spill_copyleft(rows: CorpusRows, groups: NDArray[np.int32], folder: Path) -> TableSpill:
    """Write the copyleft texts of groups into a folder, by group."""
    spill = TableSpill(folder)
    for shard in rows.shards:
        chosen = np.flatnonzero(groups[shard.middle : shard.end] >= 0)
        if len(chosen):
            spill.add(groups[shard.middle + chosen], shard.stored.table(COPYLEFT).take(pa.array(chosen)))
    return spill


def _filled(table: pa.Table, texts: pa.Table) -> pa.Table:
    known = dict(zip(texts["document_id"].to_pylist(), texts["text"].to_pylist(), strict=True))
    found = [known.get(name, "") for name in table["document_id"].to_pylist()]
    return table.append_column("text", pa.array(found, pa.large_string()))
