"""Comparison of all sources: duplicates and copies of copyleft texts among the documents that the rules left."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline.contracts.part import PartJob, PartOutput, Tables
from pipeline.core.change_text import CHANGES
from pipeline.core.records import DuplicateRecord, KeptDocument
from pipeline.core.schema import table_of_records
from pipeline.core.table_names import DOCUMENTS, DUPLICATES, KEPT
from pipeline.stages.normalize.duplicates.change_copies import CHANGE_SIGNATURES, follow_files
from pipeline.stages.normalize.duplicates.contained_pairs import Samples
from pipeline.stages.normalize.duplicates.containment import find_contained, follow_keepers
from pipeline.stages.normalize.duplicates.copyleft import COPYLEFT, find_copyleft_copies, read_copyleft
from pipeline.stages.normalize.duplicates.duplicates import (
    ENTRY_COLUMNS,
    SIGNATURES,
    ComparedDocument,
    find_duplicates,
    rank_documents,
    read_entries,
)
from pipeline.stages.normalize.duplicates.shingles import NUM_PERMUTATIONS, body_shingle_hashes, shingle_hashes
from pipeline.stages.normalize.params import DuplicateParams

_NUM_KEPT = 256
"""Documents whose shingles are kept: pairs are compared container by container, and keeper by keeper."""


def compare_sources(job: PartJob) -> PartOutput:
    """Run the part function of `normalize/duplicates`.

    Copies of copyleft texts are dropped first, so that none of them displaces another document.
    """
    assert isinstance(job.params, DuplicateParams)
    entries, signatures, samples = _read_documents(job.inputs, SIGNATURES)
    texts = DocumentTexts(job.inputs, entries)
    copyleft = read_copyleft(job.inputs, COPYLEFT)
    held = find_copyleft_copies(entries, signatures, copyleft, texts.shingles, job.params, texts.expect)
    held_ids = {record.document_id for record in held}
    free = [entry for entry in entries if entry.document_id not in held_ids]
    roots, upstreams = job.identity["vendored_roots"], job.identity["upstreams"]
    whole: dict[str, DuplicateRecord] = {}
    while True:
        left = [entry for entry in free if entry.document_id not in whole]
        copies = find_duplicates(left, signatures, texts.shingles, job.params, roots, texts.expect, upstreams)
        copy_ids = {record.document_id for record in copies}
        ranked = [entry for entry in rank_documents(left, roots, upstreams) if entry.document_id not in copy_ids]
        contained = find_contained(ranked, samples, texts.body_shingles, job.params, texts.expect)
        # What contains a held-out document may have copies that do not: they are compared again without it.
        found = {name: each.record for name, each in contained.items() if each.contains_held_out}
        if not any(record.keeper_id in found and record.jaccard < 1 for record in copies):
            break
        whole |= found
    lost = [
        *held,
        *follow_keepers([*copies, *whole.values()], contained, texts.body_shingles, texts.expect),
        *(each.record for each in contained.values()),
    ]
    lost_changes, changes = compare_changes(job.inputs, job.params, job.identity, lost, entries)
    lost += lost_changes
    lost_ids = {record.document_id for record in lost}
    kept = [entry for entry in (*entries, *changes) if entry.document_id not in lost_ids]
    rows = sorted((KeptDocument(entry.document_id, entry.source) for entry in kept), key=lambda row: row.document_id)
    tables = {
        DUPLICATES: table_of_records(DuplicateRecord, sorted(lost, key=lambda record: (record.source, record.path))),
        KEPT: table_of_records(KeptDocument, rows),
    }
    return PartOutput(tables)


def compare_changes(
    sources: Mapping[str, Tables],
    params: DuplicateParams,
    identity: Mapping[str, Any],
    lost: Sequence[DuplicateRecord],
    documents: Iterable[ComparedDocument],
) -> tuple[list[DuplicateRecord], list[ComparedDocument]]:
    """Return the changes to drop once the files to drop are known, and all changes."""
    with_changes = {name: stored for name, stored in sources.items() if stored.identity.get(CHANGES)}
    if not with_changes:
        return [], []
    changes, signatures, _ = _read_documents(with_changes, CHANGE_SIGNATURES)
    texts = DocumentTexts(with_changes, changes)
    found = follow_files(changes, lost, documents)
    lost_ids = {record.document_id for record in found}
    left = [change for change in changes if change.document_id not in lost_ids]
    roots, upstreams = identity["vendored_roots"], identity["upstreams"]
    found += find_duplicates(left, signatures, texts.shingles, params, roots, texts.expect, upstreams)
    return found, changes


class NamedDocument(Protocol):
    """A document by the names that its text is found by."""

    @property
    def document_id(self) -> str: ...

    @property
    def source(self) -> str: ...

    @property
    def path(self) -> str: ...


class DocumentTexts:
    """Shingles of single documents, computed when needed: most documents are never compared.

    The texts of the documents that were expected last are in memory, and no others.
    """

    def __init__(self, inputs: Mapping[str, Tables], entries: Iterable[NamedDocument]) -> None:
        self._inputs = inputs
        self._entries = {entry.document_id: entry for entry in entries}
        self._expected: Collection[str] = ()
        self._tables: dict[str, dict[str, pa.Scalar]] = {}
        self.shingles = lru_cache(maxsize=_NUM_KEPT)(lambda name: shingle_hashes(*self._path_and_text(name)))
        self.body_shingles = lru_cache(maxsize=_NUM_KEPT)(lambda name: body_shingle_hashes(*self._path_and_text(name)))

    def expect(self, document_ids: Collection[str]) -> None:
        """Keep the texts of these documents only. Texts that were read before are forgotten, and read again when needed."""
        self._expected = document_ids
        self._tables.clear()

    def _path_and_text(self, document_id: str) -> tuple[str, str]:
        entry = self._entries[document_id]
        if entry.source not in self._tables:
            self._tables[entry.source] = self._read(entry.source)
        # A text that is not there shares nothing: that it is lost, the audit says.
        return entry.path, str(self._tables[entry.source].get(document_id, pa.scalar("")).as_py())

    def _read(self, source: str) -> dict[str, pa.Scalar]:
        found: dict[str, pa.Scalar] = {}
        for shard in self._inputs[source].shards:
            table = shard.table(DOCUMENTS, ["document_id", "text"])
            wanted = [name for name in table["document_id"].to_pylist() if name in self._expected]
            table = table.filter(pc.is_in(table["document_id"], pa.array(wanted, pa.large_string())))
            found.update(zip(table["document_id"].to_pylist(), table["text"], strict=True))
        return found


def _read_documents(
    inputs: Mapping[str, Tables], signatures: str
) -> tuple[list[ComparedDocument], NDArray[np.uint32], Samples]:
    """Return the documents of all sources, and the signatures and samples of those that have one, each as one array.

    `signatures` is the table of those of files, or of changes.
    """
    entries: list[ComparedDocument] = []
    stacked = [np.empty((0, NUM_PERMUTATIONS), np.uint32)]
    sampled, num_sampled, sizes = [np.empty(0, np.uint32)], [np.zeros(1, np.int64)], [np.empty(0, np.int64)]
    num_rows = 0
    for source in sorted(inputs):
        table = inputs[source].table(signatures, [*ENTRY_COLUMNS, "signature", "num_body_shingles", "sample"])
        lists = table["signature"].combine_chunks()
        lengths = np.diff(lists.offsets.to_numpy()) if len(lists) else np.empty(0, np.int64)
        stacked.append(lists.flatten().to_numpy().reshape(-1, NUM_PERMUTATIONS))
        samples = table["sample"].combine_chunks()
        sampled.append(samples.flatten().to_numpy())
        num_sampled.append(samples.value_lengths().to_numpy()[lengths > 0].astype(np.int64))
        sizes.append(table["num_body_shingles"].to_numpy()[lengths > 0].astype(np.int64))
        entries += read_entries(table, num_rows, signatures == CHANGE_SIGNATURES)
        num_rows += int((lengths > 0).sum())
    starts = np.cumsum(np.concatenate(num_sampled))
    return entries, np.concatenate(stacked), Samples(np.concatenate(sampled), starts, np.concatenate(sizes))
