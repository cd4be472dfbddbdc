"""Comparison of all sources of a large corpus: what `compare_sources` finds, with one group of documents in memory at a time.

Columns of a few bytes a document are in memory, and all else is on disk: documents with their texts by groups, samples by stretches
of their values, and what is lost or kept by its place in the order of the tables.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline.contracts.part import COPIES_LABEL, SCRATCH, PartJob, PartOutput, Tables
from pipeline.core.change_text import CHANGES
from pipeline.core.records import DuplicateRecord
from pipeline.formats.tables import read_table
from pipeline.stages.normalize.duplicates.compare_sources import DocumentTexts, NamedDocument, compare_changes
from pipeline.stages.normalize.duplicates.containment import ContainedDocument, follow_keepers
from pipeline.stages.normalize.duplicates.duplicates import ComparedDocument, ShinglesOf, cleaned_sources
from pipeline.stages.normalize.duplicates.minhash_bands import join_components
from pipeline.stages.normalize.duplicates.partitions.corpus_rows import ROW_NUMBER, spill_documents
from pipeline.stages.normalize.duplicates.partitions.group_copies import Group, find_group_contained
from pipeline.stages.normalize.duplicates.partitions.grouped_copies import GROUP_COPIES, GroupedCopies, numbered
from pipeline.stages.normalize.duplicates.partitions.links import roots
from pipeline.stages.normalize.duplicates.partitions.ordered_output import OrderedOutput
from pipeline.stages.normalize.duplicates.partitions.sample_stretches import SpilledSamples
from pipeline.stages.normalize.duplicates.spill import TableSpill
from pipeline.stages.normalize.params import DuplicateParams


def compare_groups(job: PartJob) -> PartOutput:
    """Run the part function of `normalize/duplicates` for a large corpus."""
    with TemporaryDirectory(dir=job.places[SCRATCH], prefix=".compare-") as folder:
        return PartOutput(_GroupComparison(job, Path(folder)).tables())


class _GroupComparison:
    """One comparison, its columns and its folder."""

    def __init__(self, job: PartJob, folder: Path) -> None:
        assert isinstance(job.params, DuplicateParams)
        self._job, self._folder, self._params = job, folder, job.params
        self._sources = cleaned_sources(job.inputs)
        self._grouped = GroupedCopies(job, folder)
        self._rows = self._grouped.rows
        self._samples = SpilledSamples(self._rows, folder)
        self._whole: dict[str, DuplicateRecord] = {}
        self._numbers: dict[str, int] = {}
        self._keepers: dict[str, NamedDocument] = {}

    def tables(self) -> dict[str, pa.Table]:
        """Return the tables of what is lost and of what is kept."""
        number, contained = 0, {}
        while True:
            copies = self._find_copies(self._folder / f"copies-{number}")
            contained = self._find_contained(copies, self._folder / f"contained-{number}")
            found = {name: each.record for name, each in contained.items() if each.contains_held_out}
            if not any(self._are_unlike_copies(table, found) for table in copies.tables()):
                break
            self._whole |= found
            number += 1
        return self._ordered(copies, contained)

    def _find_copies(self, folder: Path) -> "_Copies | _StoredCopies":
        """Return the copies that parts have found, or compare again without what contains held-out text."""
        stored = [stored for label, stored in sorted(self._job.inputs.items()) if label.startswith(COPIES_LABEL)]
        if stored and not self._whole:
            self._rows.prefer(())
            return _StoredCopies(stored)
        copies = _Copies(folder)
        for table in self._grouped.find(self._whole):
            copies.add(table)
        return copies

    def _find_contained(self, copies: "_Copies | _StoredCopies", folder: Path) -> dict[str, ContainedDocument]:
        """Compare the documents that are left by their samples, those of each chain of pairs by themselves."""
        is_left = self._rows.is_document & (self._rows.num_tokens >= self._params.min_num_tokens)
        for table in copies.tables():
            is_left[table[ROW_NUMBER].to_numpy()] = False
        is_left[[self._numbers[name] for name in self._whole]] = False
        met = self._samples.pairs(np.flatnonzero(is_left), self._params, folder / "meetings")
        names = np.arange(self._rows.num_rows)
        join_components(names, met.min(axis=1, initial=self._rows.num_rows), met.max(axis=1, initial=-1))
        groups = self._rows.groups(roots(names))
        documents = spill_documents(self._rows, groups, folder / "documents")
        met = met[np.argsort(groups[met[:, 0]], kind="stable")]
        contained: dict[str, ContainedDocument] = {}
        for number, pairs in _by_number(groups[met[:, 0]], met):
            table = documents.read(number)
            assert table is not None
            group = Group(table)
            found, entries = find_group_contained(group, pairs, self._grouped.rule)
            contained |= found
            self._remember(group, entries, found)
        return dict(sorted(contained.items()))

    def _remember(
        self, group: Group, entries: Mapping[str, ComparedDocument], found: Mapping[str, ContainedDocument]
    ) -> None:
        for name, each in found.items():
            self._numbers[name] = group.numbers[name]
            self._keepers |= {keeper: entries[keeper] for keeper in each.keeper_ids}

    def _are_unlike_copies(self, table: pa.Table, found: Mapping[str, DuplicateRecord]) -> bool:
        """Return whether copies are not equal to what contains held-out text: they are compared again without it."""
        is_of_found = pc.is_in(table["keeper_id"], value_set=pa.array(list(found), pa.large_string()))
        return bool(pc.any(pc.and_(is_of_found, pc.less(table["jaccard"], 1))).as_py())

    def _ordered(
        self, copies: "_Copies | _StoredCopies", contained: Mapping[str, ContainedDocument]
    ) -> dict[str, pa.Table]:
        """Return what is lost, with keepers that are kept, and what is kept, each in its order."""
        output = OrderedOutput(self._rows, self._folder)
        with_changes = {name for name, stored in self._sources.items() if stored.identity.get(CHANGES)}
        of_files: list[DuplicateRecord] = []
        for table in copies.tables():
            moved = pc.is_in(table["keeper_id"], value_set=pa.array(list(contained), pa.large_string()))
            output.lose(table.filter(pc.invert(moved)))
            self._follow(output, table.filter(moved), contained)
        ids = [*contained, *self._whole]
        records = [each.record for each in contained.values()]
        records += follow_keepers(self._whole.values(), contained, self._texts_of(self._whole.values(), contained))
        output.lose(numbered(records, [self._numbers[name] for name in ids]))
        if with_changes:
            of_files = [record for record in output.lost_records() if record.source in with_changes]
        lost, changes = compare_changes(self._sources, self._params, self._job.identity, of_files, self._rows.entries())
        output.add_changes(lost, changes)
        return output.tables()

    def _follow(self, output: OrderedOutput, table: pa.Table, contained: Mapping[str, ContainedDocument]) -> None:
        numbers = table[ROW_NUMBER].to_pylist()
        records = [DuplicateRecord(**row) for row in table.drop_columns([ROW_NUMBER]).to_pylist()]
        if records:
            followed = follow_keepers(records, contained, self._texts_of(records, contained))
            output.lose(numbered(followed, numbers))

    def _texts_of(self, records: Collection[DuplicateRecord], contained: Mapping[str, ContainedDocument]) -> ShinglesOf:
        """Return what reads the shingles of copies that are unlike their keeper, and of the keepers that they get."""
        unlike = [record for record in records if record.jaccard < 1 and record.keeper_id in contained]
        keeper_ids = {name for record in unlike for name in contained[record.keeper_id].keeper_ids}
        wanted: list[NamedDocument] = [*unlike, *(self._keepers[name] for name in sorted(keeper_ids))]
        texts = DocumentTexts(self._sources, wanted)
        texts.expect({each.document_id for each in wanted})
        return texts.body_shingles


class _Copies:
    """Records of copies on disk, a group after the other, with the numbers of the rows that are lost."""

    def __init__(self, folder: Path) -> None:
        self._spill = TableSpill(folder)
        self._num_groups = 0

    def add(self, table: pa.Table) -> None:
        """Add the copies of the next group."""
        self._spill.add(np.full(table.num_rows, self._num_groups), table)
        self._num_groups += 1

    def tables(self) -> Iterator[pa.Table]:
        """Yield the copies of each group that has any."""
        yield from filter(None, map(self._spill.read, range(self._num_groups)))


class _StoredCopies:
    """Records of copies that parts have found."""

    def __init__(self, parts: Sequence[Tables]) -> None:
        self._parts = parts

    def tables(self) -> Iterator[pa.Table]:
        """Yield the copies, some groups at a time."""
        for stored in self._parts:
            yield from (read_table([path]) for path in stored.paths(GROUP_COPIES))


def _by_number(numbers: NDArray[np.int32], pairs: NDArray[np.int64]) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Yield each of ascending numbers and its pairs."""
    found, starts = np.unique(numbers, return_index=True)
    for number, some in zip(found.tolist(), np.split(pairs, starts[1:]), strict=False):  # none of nothing
        yield number, [(part, container) for part, container in some.tolist()]
