"""Copies of copyleft texts: documents labeled permissive whose equal or near-equal text is under copyleft elsewhere.

A label is easily added, and who copied from whom is not known here. If a file states copyleft itself, every equal or
similar text is dropped, whatever it states; if it only inherits copyleft, equal texts that inherit their license are.
Candidates share a band of the signature; exact Jaccard decides, as among duplicates.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pipeline.contracts.part import Tables
from pipeline.core.records import DuplicateRecord, UInt32, UInt64
from pipeline.core.schema import OwnText, PathText, stored
from pipeline.stages.normalize.duplicates.duplicates import (
    Announce,
    ComparedDocument,
    Reason,
    ShinglesOf,
    duplicate_record,
)
from pipeline.stages.normalize.duplicates.minhash_bands import NUM_BANDS, band_keys
from pipeline.stages.normalize.duplicates.shingles import jaccard
from pipeline.stages.normalize.params import DuplicateParams

if TYPE_CHECKING:
    import pyarrow as pa


COPYLEFT = "copyleft.parquet"


@stored("CopyleftRecord")
@dataclass(frozen=True, slots=True)
class CopyleftRecord:
    """A text that left as copyleft.

    `is_own` says that the file states it itself. Only then it has a signature, and its shingles, since its text is not
    kept; both are empty for texts below the token floor too.
    """

    record_id: OwnText
    source: OwnText
    path: PathText
    text_sha256: OwnText
    is_own: bool
    signature: tuple[UInt32, ...]
    shingles: tuple[UInt64, ...]


@dataclass(frozen=True)
class CopyleftText:
    """A CopyleftRecord with its values as arrays."""

    record_id: str
    source: str
    path: str
    text_sha256: str
    is_own: bool
    signature: NDArray[np.uint32]
    shingles: NDArray[np.uint64]

    @property
    def place(self) -> tuple[str, str, str]:
        """Id, source and path."""
        return self.record_id, self.source, self.path


_PLAIN_COLUMNS = ("record_id", "source", "path", "text_sha256", "is_own")


def read_copyleft(inputs: Mapping[str, Tables], table_name: str) -> list[CopyleftText]:
    """Read the copyleft texts of all sources, sorted by source and path."""
    return copyleft_texts(inputs[source].table(table_name) for source in sorted(inputs))


def copyleft_texts(tables: "Iterable[pa.Table]") -> list[CopyleftText]:
    """Return the copyleft texts of tables, sorted by source and path."""
    found = []
    for table in tables:
        columns = [table[name].to_pylist() for name in _PLAIN_COLUMNS]
        lists = [_rows_of_lists(table[name].combine_chunks()) for name in ("signature", "shingles")]
        found += [CopyleftText(*row) for row in zip(*columns, *lists, strict=True)]
    return sorted(found, key=lambda text: (text.source, text.path))


def _rows_of_lists(lists: "pa.LargeListArray") -> list[NDArray[Any]]:
    """Return the list of each row, in order."""
    if not len(lists):
        return []
    return np.split(lists.flatten().to_numpy(), np.cumsum(lists.value_lengths().to_numpy())[:-1])


def find_copyleft_copies(
    entries: Sequence[ComparedDocument],
    signatures: NDArray[np.uint32],
    copyleft: Sequence[CopyleftText],
    shingles_of: ShinglesOf,
    params: DuplicateParams,
    announce: Announce = lambda ids: None,
) -> list[DuplicateRecord]:
    """Return the documents to drop, each with the copyleft text that it is a copy of: an equal one, else the most similar."""
    dropped: dict[str, DuplicateRecord] = {}
    by_text = defaultdict(list)
    for text in copyleft:
        by_text[text.text_sha256].append(text)
    for entry in entries:
        for text in by_text.get(entry.text_sha256, ()):
            if text.is_own or entry.is_inherited:
                dropped.setdefault(entry.document_id, duplicate_record(entry, text.place, 1.0, Reason.COPYLEFT_COPY))
    near: dict[str, DuplicateRecord] = {}
    pairs = []
    for entry, text in _candidates(entries, signatures, copyleft):
        limit = params.min_jaccard(entry.source == text.source)
        sizes = sorted((entry.num_shingles, len(text.shingles)))
        if entry.document_id not in dropped and sizes[0] >= limit * sizes[1]:
            pairs.append((entry, text, limit))
    announce({entry.document_id for entry, _, _ in pairs})
    for entry, text, limit in pairs:
        similarity = jaccard(shingles_of(entry.document_id), text.shingles)
        best = near.get(entry.document_id)
        if similarity >= limit and (best is None or similarity > best.jaccard):
            near[entry.document_id] = duplicate_record(entry, text.place, similarity, Reason.COPYLEFT_COPY)
    return list((dropped | near).values())


def _candidates(
    entries: Sequence[ComparedDocument], signatures: NDArray[np.uint32], copyleft: Sequence[CopyleftText]
) -> Iterator[tuple[ComparedDocument, CopyleftText]]:
    """Yield pairs that share a band, in the order of the entries."""
    texts = [text for text in copyleft if text.is_own and len(text.signature)]
    compared = [entry for entry in entries if entry.row is not None]
    if not texts or not compared:
        return
    their_signatures = np.stack([text.signature for text in texts])
    our_signatures = signatures[np.array([entry.row for entry in compared], np.int64)]
    pairs: set[tuple[int, int]] = set()
    for band in range(NUM_BANDS):
        places = defaultdict(list)
        theirs, ours = band_keys(their_signatures, band), band_keys(our_signatures, band)
        for index, key in enumerate(theirs.tolist()):
            places[key].append(index)
        ordered = np.sort(theirs)
        nearest = ordered[np.minimum(np.searchsorted(ordered, ours), len(ordered) - 1)]
        for row in np.flatnonzero(nearest == ours).tolist():
            pairs.update((row, index) for index in places[int(ours[row])])
    for row, index in sorted(pairs):
        yield compared[row], texts[index]
