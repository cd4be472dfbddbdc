"""Copies a group: documents that links join, compared with each other as all documents of a small corpus are.

Nothing outside of a group shares a mark with what is in it, so that what is lost in it depends on nothing else.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.core.records import DuplicateRecord
from pipeline.stages.normalize.duplicates.contained_pairs import compare_candidates
from pipeline.stages.normalize.duplicates.containment import ContainedDocument, resolve_containment
from pipeline.stages.normalize.duplicates.copyleft import copyleft_texts, find_copyleft_copies
from pipeline.stages.normalize.duplicates.duplicates import (
    ComparedDocument,
    find_duplicates,
    rank_documents,
    read_entries,
)
from pipeline.stages.normalize.duplicates.partitions.corpus_rows import ROW_NUMBER, CorpusRows
from pipeline.stages.normalize.duplicates.shingles import NUM_PERMUTATIONS, body_shingle_hashes, shingle_hashes
from pipeline.stages.normalize.params import DuplicateParams

_MAX_SHINGLES_HELD = 2_000


@dataclass(frozen=True)
class Rule:
    """The limits of duplicates, and all rows, which say who is preferred."""

    params: DuplicateParams
    rows: CorpusRows


class Group:
    """The documents of one group, in their order, with their numbers, signatures and texts."""

    def __init__(self, table: pa.Table) -> None:
        self.entries = read_entries(table)
        self.numbers = dict(
            zip((each.document_id for each in self.entries), table[ROW_NUMBER].to_pylist(), strict=True)
        )
        self.signatures: NDArray[np.uint32] = (
            table["signature"].combine_chunks().flatten().to_numpy().reshape(-1, NUM_PERMUTATIONS)
        )
        self.body_sizes = table["num_body_shingles"].to_pylist()
        self._places = {each.document_id: place for place, each in enumerate(self.entries)}
        self._texts = table["text"]
        held = lru_cache(maxsize=_MAX_SHINGLES_HELD)
        self.shingles = held(lambda name: shingle_hashes(*self._path_and_text(name)))
        self.body_shingles = lru_cache(maxsize=_MAX_SHINGLES_HELD)(
            lambda name: body_shingle_hashes(*self._path_and_text(name))
        )

    def _path_and_text(self, document_id: str) -> tuple[str, str]:
        place = self._places[document_id]
        return self.entries[place].path, self._texts[place].as_py()


def find_group_copies(
    group: Group, copyleft: pa.Table | None, rule: Rule, left_out: Collection[str]
) -> list[DuplicateRecord]:
    """Return the documents of a group that are copies of copyleft texts, and then those that are copies of others.

    Those `left_out`, which contain what is held out, are no copies, and nothing is a copy of them.
    """
    texts = copyleft_texts([] if copyleft is None else [copyleft])
    held = find_copyleft_copies(group.entries, group.signatures, texts, group.shingles, rule.params)
    gone = {record.document_id for record in held} | set(left_out)
    left = [entry for entry in group.entries if entry.document_id not in gone]
    rows, vendored = rule.rows, rule.rows.vendored
    return held + find_duplicates(
        left, group.signatures, group.shingles, rule.params, vendored, upstreams=rows.upstreams
    )


def find_group_contained(
    group: Group, met: Collection[tuple[int, int]], rule: Rule
) -> tuple[dict[str, ContainedDocument], Mapping[str, ComparedDocument]]:
    """Return the documents of a group to drop, and all of its documents, by id. `met` are pairs of numbers, the part first."""
    ranked = rank_documents(group.entries, rule.rows.vendored, rule.rows.upstreams)
    ranks = {group.numbers[entry.document_id]: rank for rank, entry in enumerate(ranked)}
    size_of = dict(zip(group.numbers.values(), group.body_sizes, strict=True))
    sizes = {rank: size_of[number] for number, rank in ranks.items()}
    pairs = [(ranks[part], ranks[container]) for part, container in met]
    contained = compare_candidates(ranked, pairs, sizes, group.body_shingles, rule.params)
    found = resolve_containment(ranked, contained, group.body_shingles, rule.params)
    return found, {entry.document_id: entry for entry in ranked}
