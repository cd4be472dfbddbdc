"""Grouped copies: the copies of all groups, one group in memory at a time, and of a share of the groups as a part."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from pipeline.contracts.part import LINKS_LABEL, SCRATCH, PartJob, PartOutput
from pipeline.core.records import DuplicateRecord
from pipeline.core.schema import table_of_records
from pipeline.stages.normalize.duplicates.duplicates import cleaned_sources
from pipeline.stages.normalize.duplicates.partitions.corpus_rows import (
    ROW_NUMBER,
    CorpusRows,
    spill_copyleft,
    spill_documents,
)
from pipeline.stages.normalize.duplicates.partitions.group_copies import Group, Rule, find_group_copies
from pipeline.stages.normalize.duplicates.partitions.links import components
from pipeline.stages.normalize.params import DuplicateParams

GROUP_COPIES = "copies.parquet"
"""Table of DuplicateRecord with the number of each row that is lost."""


def find_copies(job: PartJob) -> PartOutput:
    """Run the part function of `normalize/copies`: find the copies of the groups of one share."""
    return PartOutput({}, streams={GROUP_COPIES: _copies_of_share(job)})


def _copies_of_share(job: PartJob) -> Iterator[pa.Table]:
    yield numbered([], [])
    with TemporaryDirectory(dir=job.places[SCRATCH], prefix=".copies-") as folder:
        yield from GroupedCopies(job, Path(folder), job.identity["share"], job.identity["num_shares"]).find(())


class GroupedCopies:
    """The groups of a corpus, or one of `num_shares` shares of them. Their documents are on disk while they are compared."""

    def __init__(self, job: PartJob, folder: Path, share: int = 0, num_shares: int = 1) -> None:
        assert isinstance(job.params, DuplicateParams)
        upstreams = job.identity.get("upstreams", {})
        self.rows = CorpusRows(cleaned_sources(job.inputs), job.identity["vendored_roots"], upstreams)
        self.rule = Rule(job.params, self.rows)
        self._job, self._folder, self._share, self._num_shares = job, folder, share, num_shares

    def find(self, left_out: Collection[str]) -> Iterator[pa.Table]:
        """Yield the copies of each group without the documents that are `left_out`, which contain what is held out."""
        links = [stored for label, stored in sorted(self._job.inputs.items()) if label.startswith(LINKS_LABEL)]
        groups = self.rows.groups(components(self.rows.num_rows, links))
        groups[groups % self._num_shares != self._share] = -1
        with TemporaryDirectory(dir=self._folder) as folder:
            documents = spill_documents(self.rows, groups, Path(folder, "documents"))
            copyleft = spill_copyleft(self.rows, groups, Path(folder, "copyleft"))
            numbers = np.unique(groups[groups >= 0]).tolist()
            held = set[str]()
            for number in numbers if self.rows.has_claims else ():
                held |= self._held_ids(documents.read(number), copyleft.read(number))
            self.rows.prefer({*held, *left_out})
            for number in numbers:
                table = documents.read(number)
                if table is not None:
                    group = Group(table)
                    found = find_group_copies(group, copyleft.read(number), self.rule, left_out)
                    yield numbered(found, [group.numbers[record.document_id] for record in found])

    def _held_ids(self, table: pa.Table | None, copyleft: pa.Table | None) -> set[str]:
        """Return the ids of copies of copyleft texts: upstreams are named by the documents that are left."""
        if table is None or copyleft is None:
            return set()
        group = Group(table)
        everything = {entry.document_id for entry in group.entries}
        return {record.document_id for record in find_group_copies(group, copyleft, self.rule, everything)}


def numbered(records: Sequence[DuplicateRecord], numbers: Sequence[int]) -> pa.Table:
    """Return a table of records with the numbers of their rows."""
    table = table_of_records(DuplicateRecord, list(records))
    return table.append_column(ROW_NUMBER, pa.array(numbers, pa.int64()))
