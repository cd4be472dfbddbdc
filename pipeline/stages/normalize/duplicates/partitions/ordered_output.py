"""Ordered output: what is lost by source and path, and what is kept by id, sorted stretch by stretch and mapped from disk."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipeline.core.records import DuplicateRecord, KeptDocument
from pipeline.core.schema import arrow_schema, table_of_records
from pipeline.core.table_names import DUPLICATES, KEPT
from pipeline.formats.tables import MAX_ROWS_IN_SHARD
from pipeline.stages.normalize.duplicates.duplicates import SIGNATURES, ComparedDocument
from pipeline.stages.normalize.duplicates.partitions.corpus_rows import ROW_NUMBER, CorpusRows
from pipeline.stages.normalize.duplicates.spill import TableSpill

_ROWS_IN_STRETCH = 1 << 18
_DIGITS = 4


class OrderedOutput:
    """The rows of the two tables. A stretch of what is lost is of whole shards, whose order is that of sources and paths."""

    def __init__(self, rows: CorpusRows, folder: Path) -> None:
        self._rows, self._folder = rows, folder
        self._starts = np.array([shard.start for shard in rows.shards], np.int64)
        self._is_lost = np.zeros(rows.num_rows, np.bool_)
        self._lost = TableSpill(folder / "lost")
        self._kept = TableSpill(folder / "kept")

    def lose(self, table: pa.Table) -> None:
        """Add files to drop: rows of DuplicateRecord with their numbers."""
        numbers = table[ROW_NUMBER].to_numpy()
        self._is_lost[numbers] = True
        starts = self._starts[np.searchsorted(self._starts, numbers, side="right") - 1]
        self._lost.add(starts // _ROWS_IN_STRETCH, table.drop_columns([ROW_NUMBER]))

    def lost_records(self) -> Iterator[DuplicateRecord]:
        """Read what was added."""
        for table in filter(None, map(self._lost.read, self._stretches)):
            yield from (DuplicateRecord(**row) for row in table.to_pylist())

    def add_changes(self, lost: Sequence[DuplicateRecord], changes: Iterable[ComparedDocument]) -> None:
        """Add the changes of all sources, none of which is in more than one shard, and those of them to drop."""
        starts = {shard.source: shard.start for shard in self._rows.shards}
        stretches = np.array([starts[record.source] // _ROWS_IN_STRETCH for record in lost], np.int64)
        self._lost.add(stretches, table_of_records(DuplicateRecord, list(lost)))
        lost_ids = {record.document_id for record in lost}
        left = [change for change in changes if change.document_id not in lost_ids]
        self._keep(table_of_records(KeptDocument, [KeptDocument(each.document_id, each.source) for each in left]))

    def tables(self) -> dict[str, pa.Table]:
        """Return both tables."""
        for shard in self._rows.shards:
            names = shard.stored.table(SIGNATURES, ["document_id", "source"])
            self._keep(names.filter(pa.array(~self._is_lost[shard.start : shard.middle])))
        lost = self._sorted(self._lost, [("source", "ascending"), ("path", "ascending")])
        kept = self._sorted(self._kept, [("document_id", "ascending")])
        return {
            DUPLICATES: _mapped(self._folder / "lost.arrow", DuplicateRecord, lost),
            KEPT: _mapped(self._folder / "kept.arrow", KeptDocument, kept),
        }

    @property
    def _stretches(self) -> range:
        return range(1 + self._rows.num_rows // _ROWS_IN_STRETCH)

    def _keep(self, table: pa.Table) -> None:
        leading = np.array([int(name[:_DIGITS], 16) for name in table["document_id"].to_pylist()], np.int64)
        self._kept.add(leading * len(self._stretches) >> 4 * _DIGITS, table)

    def _sorted(self, spill: TableSpill, order: list[tuple[str, str]]) -> Iterator[pa.Table]:
        for table in filter(None, map(spill.read, self._stretches)):
            yield table.sort_by(order)


def _mapped(path: Path, record: type, tables: Iterable[pa.Table]) -> pa.Table:
    """Write tables one after the other, as chunks of the rows of a stored file, and return them as one that is mapped.

    It is readable also when its file has been removed.
    """
    schema = arrow_schema(record)
    held, num_held = [schema.empty_table()], 0
    with pa.ipc.new_file(str(path), schema) as writer:
        for table in tables:
            held.append(pa.Table.from_arrays(table.columns, schema=schema))
            num_held += table.num_rows
            while num_held >= MAX_ROWS_IN_SHARD:
                whole = pa.concat_tables(held)
                writer.write_table(whole.slice(0, MAX_ROWS_IN_SHARD).combine_chunks())
                held, num_held = [whole.slice(MAX_ROWS_IN_SHARD)], num_held - MAX_ROWS_IN_SHARD
        writer.write_table(pa.concat_tables(held).combine_chunks())
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()
