"""Duplicates over all sources: documents with equal texts, and near-duplicates.

Candidates share one of 42 bands of 6 signature rows; the exact Jaccard similarity with the keeper decides, so
clusters do not chain. Documents are processed in order of preference: each that is not dropped yet is kept, and later
ones like it are dropped. A cluster is a kept document and those that were dropped for it.
"""

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pipeline.contracts.part import COPIES_LABEL, LINKS_LABEL, Tables
from pipeline.core.change_text import changed_file
from pipeline.core.globs import Globs
from pipeline.core.records import DuplicateRecord, Split, UInt32
from pipeline.core.schema import OwnText, PathText, stored
from pipeline.stages.normalize.duplicates.minhash_bands import find_buckets
from pipeline.stages.normalize.duplicates.shingles import jaccard
from pipeline.stages.normalize.license.evidence import vendored_root
from pipeline.stages.normalize.params import DuplicateParams

if TYPE_CHECKING:
    import pyarrow as pa

MARGIN_OF_ESTIMATE = 0.15
"""A pair whose estimate by 256 values is this far below a limit is not compared: that is five standard deviations."""

ShinglesOf = Callable[[str], NDArray[np.uint64]]
"""Document id -> its shingles."""

Announce = Callable[[Collection[str]], None]
"""Called with the ids of all documents whose shingles may be requested, before the first request."""


class Reason(StrEnum):
    """Reason for which a document is dropped in favor of another."""

    EXACT_DUPLICATE = "exact_duplicate"
    NEAR_DUPLICATE = "near_duplicate"
    COPYLEFT_COPY = "copyleft_copy"
    CONTAINED = "contained"
    CONTAINER = "container"


SIGNATURES = "signatures.parquet"


@stored("SignatureRecord")
@dataclass(frozen=True, slots=True)
class SignatureRecord:
    """The fields of a document that duplicates are found by. `signature` and `sample` are empty for texts with too few tokens."""

    document_id: OwnText
    source: OwnText
    path: PathText
    split: OwnText
    num_bytes: int
    text_sha256: OwnText
    is_inherited: bool
    num_tokens: UInt32
    num_shingles: UInt32
    num_body_shingles: UInt32
    signature: tuple[UInt32, ...]
    sample: tuple[UInt32, ...]


@dataclass(frozen=True)
class ComparedDocument:
    """A SignatureRecord without its 256 values, which are row `row` of one array; None for texts with too few tokens."""

    document_id: str
    source: str
    path: str
    split: str
    num_bytes: int
    text_sha256: str
    is_inherited: bool
    num_shingles: int
    row: int | None
    is_change: bool = False
    """True of a document of change, whose `text_sha256` is that of its hunks."""

    @property
    def file_path(self) -> str:
        """The path of the file, or of the one that a change is of."""
        return changed_file(self.path) if self.is_change else self.path

    @property
    def name(self) -> str:
        """The file name."""
        return self.file_path.rpartition("/")[2]

    def is_sibling(self, other: "ComparedDocument") -> bool:
        """Return whether both are of one source and one split."""
        return (self.source, self.split) == (other.source, other.split)


ENTRY_COLUMNS = [name for name in ComparedDocument.__dataclass_fields__ if name not in ("row", "is_change")]
"""The columns of SignatureRecord that a ComparedDocument holds."""


@dataclass(frozen=True)
class _Duplicate:
    keeper: int
    jaccard: float
    reason: Reason


def find_duplicates(
    entries: Sequence[ComparedDocument],
    signatures: NDArray[np.uint32],
    shingles_of: ShinglesOf,
    params: DuplicateParams,
    vendored: Collection[str],
    announce: Announce = lambda ids: None,
    upstreams: "Mapping[str, Mapping[str, str]] | Upstreams" = MappingProxyType({}),
) -> list[DuplicateRecord]:
    """Return the documents to drop, sorted by source and path. `signatures` has shape (rows, 256).

    The preferred of several copies is kept: see `rank_documents`.
    """
    ranked = rank_documents(entries, vendored, upstreams)
    losses = _lose_equal_texts(ranked)
    candidates = _Candidates(ranked, signatures, losses, announce)
    for keeper, loser, similarity in _similar(candidates, shingles_of, params, losses):
        losses[loser] = _Duplicate(keeper, similarity, Reason.NEAR_DUPLICATE)
    found = []
    for loser, loss in _with_kept_keepers(losses).items():
        kept = ranked[loss.keeper]
        place = (kept.document_id, kept.source, kept.path)
        found.append(duplicate_record(ranked[loser], place, loss.jaccard, loss.reason))
    return sorted(found, key=lambda record: (record.source, record.path))


def rank_documents(
    entries: Iterable[ComparedDocument],
    vendored: Collection[str],
    upstreams: "Mapping[str, Mapping[str, str]] | Upstreams",
) -> list[ComparedDocument]:
    """Return documents in the order of preference.

    Preferred are held-out documents over training ones: what is held out loses nothing, and no copy of it is trained on. Then the
    pin named upstream for that file (see `Upstreams`), then files below no vendored root, then the smallest (source, path). Changes
    of a source stay in their order: the first of a chain is preferred. Of some documents of a corpus the claims of all are given.
    """
    listed = list(entries)
    claims = upstreams if isinstance(upstreams, Upstreams) else Upstreams(upstreams, listed)
    roots = frozenset(vendored)
    return sorted(
        listed,
        key=lambda entry: (*preference(entry, claims, roots), entry.source, "" if entry.is_change else entry.path),
    )


class UpstreamClaim(IntEnum):
    """Claim of the pins about a file, the preferred first."""

    NAMED_UPSTREAM = 0
    UNCLAIMED = 1
    COPY = 2


class Upstreams:
    """The claims about each file of a corpus. `named` is source -> glob of its own paths -> the source they were taken from.

    A file that its pin calls a copy is one. A file of the named source with the same file name is its upstream, and is
    preferred even if it is below a vendored root itself.
    """

    def __init__(self, named: Mapping[str, Mapping[str, str]], files: Iterable[ComparedDocument]) -> None:
        self._globs = {
            source: [(Globs([glob]), upstream) for glob, upstream in named[source].items()] for source in named
        }
        self._wanted = {(upstream, file.name) for file in files if (upstream := self._upstream_of(file)) is not None}

    def claim(self, file: ComparedDocument) -> UpstreamClaim:
        """Return the claim about a file of the corpus."""
        if self._upstream_of(file) is not None:
            return UpstreamClaim.COPY
        is_named = (file.source, file.name) in self._wanted
        return UpstreamClaim.NAMED_UPSTREAM if is_named else UpstreamClaim.UNCLAIMED

    def _upstream_of(self, file: ComparedDocument) -> str | None:
        globs = self._globs.get(file.source, ())
        return next((upstream for glob, upstream in globs if glob.match_any(file.file_path)), None)


def cleaned_sources(inputs: Mapping[str, Tables]) -> dict[str, Tables]:
    """Return the cleaned sources among the inputs of the part that compares them, by name."""
    return {label: stored for label, stored in inputs.items() if not label.startswith((LINKS_LABEL, COPIES_LABEL))}


def read_entries(table: "pa.Table", first_row: int = 0, is_change: bool = False) -> list[ComparedDocument]:
    """Return the documents of a table of SignatureRecord. `first_row` is that of the first of their signatures."""
    lists = table["signature"].combine_chunks()
    is_signed = (lists.value_lengths().to_numpy() > 0).tolist() if len(lists) else []
    columns = zip(*(table[name].to_pylist() for name in ENTRY_COLUMNS), strict=True)
    numbers = itertools.count(first_row)
    return [
        ComparedDocument(*(*row, next(numbers) if signed else None, is_change))
        for row, signed in zip(columns, is_signed, strict=True)
    ]


def duplicate_record(
    loser: ComparedDocument, keeper: tuple[str, str, str], similarity: float, reason: Reason, num_keepers: int = 1
) -> DuplicateRecord:
    """Return the record of a dropped document: `keeper` is the id, source and path of the text that it is a copy of."""
    lost = (loser.document_id, loser.source, loser.path, loser.num_bytes)
    return DuplicateRecord(*lost, *keeper, similarity, reason, keeper[0], num_keepers)


def preference(entry: ComparedDocument, claims: Upstreams, vendored: Collection[str]) -> tuple[bool, int, bool]:
    """Return by what a document is preferred before source and path are compared, the preferred first."""
    is_vendored = vendored_root(entry.file_path, vendored) is not None
    return entry.split != Split.HELD_OUT, claims.claim(entry), is_vendored


def _lose_equal_texts(ranked: Sequence[ComparedDocument]) -> dict[int, _Duplicate]:
    first: dict[str, int] = {}
    losses = {}
    for rank, entry in enumerate(ranked):
        keeper = first.setdefault(entry.text_sha256, rank)
        if keeper != rank:  # changes with equal hunks differ in their subjects
            reason = Reason.NEAR_DUPLICATE if entry.is_change else Reason.EXACT_DUPLICATE
            losses[rank] = _Duplicate(keeper, 1.0, reason)
    return losses


class _Candidates:
    """Ranks that share a band: each that is not in `lost` when it is reached, and the later ones."""

    def __init__(
        self,
        ranked: Sequence[ComparedDocument],
        signatures: NDArray[np.uint32],
        lost: Collection[int],
        announce: Announce,
    ) -> None:
        self.ranked = ranked
        self._signatures = signatures
        self._lost = lost
        self._compared = [rank for rank, entry in enumerate(ranked) if entry.row is not None and rank not in lost]
        rows = [ranked[rank].row for rank in self._compared]
        self._buckets = find_buckets(signatures[np.array(rows, np.int64)])
        announce({ranked[self._compared[row]].document_id for row in self._buckets.rows.tolist()})

    def estimate(self, first: int, second: int) -> float:
        """Return the share of values in which the signatures of two ranks agree."""
        left, right = (self._signatures[self.ranked[rank].row] for rank in (first, second))
        return int(np.count_nonzero(left == right)) / len(left)

    def __iter__(self) -> Iterator[tuple[int, list[int]]]:
        for row, partners in self._buckets.later_partners(lambda row: self._compared[row] in self._lost):
            yield self._compared[row], [self._compared[partner] for partner in partners.tolist()]


def _similar(
    candidates: _Candidates, shingles_of: ShinglesOf, params: DuplicateParams, lost: Collection[int]
) -> Iterator[tuple[int, int, float]]:
    """Yield keeper, loser and similarity. The caller adds each loser to `lost` before it requests the next."""
    ranked = candidates.ranked
    for keeper, others in candidates:
        for other in others:
            is_next_version = ranked[keeper].is_change and ranked[keeper].source == ranked[other].source
            if other in lost or is_next_version:
                continue
            limit = params.min_jaccard(ranked[keeper].is_sibling(ranked[other]))
            sizes = sorted((ranked[keeper].num_shingles, ranked[other].num_shingles))
            # No similarity exceeds the ratio of the sizes.
            if sizes[0] < limit * sizes[1] or candidates.estimate(keeper, other) < limit - MARGIN_OF_ESTIMATE:
                continue
            similarity = jaccard(shingles_of(ranked[keeper].document_id), shingles_of(ranked[other].document_id))
            if similarity >= limit:
                yield keeper, other, similarity


def _with_kept_keepers(losses: Mapping[int, _Duplicate]) -> dict[int, _Duplicate]:
    """Return the same losses with keepers that are kept: a copy of a dropped text was dropped for the same document."""
    return {loser: losses.get(loss.keeper, loss) for loser, loss in losses.items()}
