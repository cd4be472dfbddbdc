"""Containment: which of the documents that hold each other's text are dropped.

A container of which the other kept documents say nearly all is dropped: each of its parts stays. Then a document that is contained
in a kept one is dropped. Both go by the exact shares of shingles alone, whatever the sources. Every keeper is kept: if parts of a
dropped container go in favor of others, those must say nearly all of it, or it stays.

This is done among the held-out documents first. Then a training document goes that is contained in a kept one of them, or that
contains one, whatever else it says: no text that is held out is trained on. At last it is done among the training documents left.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from pipeline.core.records import DuplicateRecord, Split
from pipeline.stages.normalize.duplicates.contained_pairs import (
    ContainedPair,
    Samples,
    covered_share,
    find_contained_pairs,
    shared_places,
)
from pipeline.stages.normalize.duplicates.duplicates import (
    Announce,
    ComparedDocument,
    Reason,
    ShinglesOf,
    duplicate_record,
)
from pipeline.stages.normalize.params import DuplicateParams


@dataclass(frozen=True)
class ContainedDocument:
    """The record of a document that is contained in another or covered by several, and the ids of all its keepers."""

    record: DuplicateRecord
    keeper_ids: tuple[str, ...]
    contains_held_out: bool = False
    """A training document that goes as it contains held-out ones, and need not be covered by them."""


@dataclass(frozen=True)
class _Containment:
    keepers: tuple[int, ...]
    share: float
    reason: Reason


def find_contained(
    ranked: Sequence[ComparedDocument],
    samples: Samples,
    shingles_of: ShinglesOf,
    params: DuplicateParams,
    announce: Announce = lambda ids: None,
) -> dict[str, ContainedDocument]:
    """Return the documents to drop by their ids. `ranked` are in the order of preference, without copies."""
    pairs = find_contained_pairs(ranked, samples, shingles_of, params, announce)
    return resolve_containment(ranked, pairs, shingles_of, params)


def resolve_containment(
    ranked: Sequence[ComparedDocument],
    pairs: Sequence[ContainedPair],
    shingles_of: ShinglesOf,
    params: DuplicateParams,
) -> dict[str, ContainedDocument]:
    """Return the documents to drop of those in pairs, by their ids. Documents that no chain of pairs joins are of no account."""
    held_out = {rank for rank, entry in enumerate(ranked) if entry.split == Split.HELD_OUT}
    losses = _Resolution(
        ranked, [each for each in pairs if {each.part, each.container} <= held_out], shingles_of, params
    ).losses()
    across = _Resolution(ranked, pairs, shingles_of, params).lost_to(held_out, losses.keys())
    losses |= across
    rest = [each for each in pairs if not {each.part, each.container} & (held_out | across.keys())]
    losses |= _Resolution(ranked, rest, shingles_of, params).losses()
    return {ranked[lost].document_id: _found(ranked, lost, loss) for lost, loss in sorted(losses.items())}


def follow_keepers(
    copies: Iterable[DuplicateRecord],
    contained: Mapping[str, ContainedDocument],
    shingles_of: ShinglesOf,
    announce: Announce = lambda ids: None,
) -> list[DuplicateRecord]:
    """Return the records of copies with keepers that are kept: the copy of a contained document is contained where that is.

    Its share is its own.
    """
    copies, found = list(copies), []
    unlike = [copy for copy in copies if copy.jaccard < 1 and copy.keeper_id in contained]
    keeper_ids = {name for copy in unlike for name in contained[copy.keeper_id].keeper_ids}
    announce(keeper_ids | {copy.document_id for copy in unlike})
    for copy in copies:
        keeper = contained.get(copy.keeper_id)
        if keeper is None:
            found.append(copy)
            continue
        share = keeper.record.jaccard
        if copy.jaccard < 1:
            share = covered_share(shingles_of(copy.document_id), [shingles_of(name) for name in keeper.keeper_ids])
        lost = {name: getattr(copy, name) for name in ("document_id", "source", "path", "num_bytes")}
        found.append(replace(keeper.record, **lost, jaccard=share))
    return found


class _Resolution:
    """The choice between parts and containers."""

    def __init__(
        self,
        ranked: Sequence[ComparedDocument],
        pairs: Sequence[ContainedPair],
        shingles_of: ShinglesOf,
        params: DuplicateParams,
    ) -> None:
        self._ranked = ranked
        self._shingles_of = shingles_of
        self._min_containment = params.min_containment
        self._parts: dict[int, list[ContainedPair]] = defaultdict(list)
        self._containers: dict[int, list[ContainedPair]] = defaultdict(list)
        self._sizes: dict[int, int] = {}
        for pair in pairs:
            self._sizes |= {pair.part: pair.part_size, pair.container: pair.container_size}
            self._parts[pair.container].append(pair)
            self._containers[pair.part].append(pair)

    def losses(self) -> dict[int, _Containment]:
        """Return the losses. A container that does not hold out against its last keepers stays, and all is chosen again."""
        staying: set[int] = set()
        while True:
            dropped = self._drop_containers(staying)
            contained = self._drop_contained(dropped.keys())
            covers = {container: self._cover_by_kept(container, dropped, contained) for container in dropped}
            failing = {container for container, cover in covers.items() if not self._is_covered(cover)}
            if not failing:
                return {**covers, **contained}
            staying |= failing

    def lost_to(self, held_out: set[int], gone: Set[int]) -> dict[int, _Containment]:
        """Return the training documents that are contained in a held-out one that is kept, or contain such ones."""
        lost: dict[int, _Containment] = {}
        for rank in sorted(self._sizes.keys() - held_out):
            containers = [each for each in self._containers[rank] if each.container in held_out - gone]
            parts = [each.part for each in self._parts[rank] if each.part in held_out - gone]
            if containers:
                lost[rank] = _contained(containers)
            elif parts:
                lost[rank] = self._cover(rank, parts)
        return lost

    def _drop_containers(self, staying: Collection[int]) -> dict[int, _Containment]:
        """Return the containers that several parts cover, the smaller first, so that a part is no dropped container itself."""
        dropped: dict[int, _Containment] = {}
        for container in sorted(self._parts, key=self._place):
            kept = [pair.part for pair in self._parts[container] if pair.part not in dropped]
            if container in staying or len(kept) < 2:
                continue
            cover = self._cover(container, kept)
            if self._is_covered(cover):
                dropped[container] = cover
        return dropped

    def _is_covered(self, cover: _Containment) -> bool:
        """Return whether several say nearly all of a container. Of one alone the limits of pairs say whether it is contained."""
        return cover.share >= self._min_containment and len(cover.keepers) > 1

    def _drop_contained(self, dropped: Collection[int]) -> dict[int, _Containment]:
        """Return the documents that a kept one contains, the larger first: what contains others is decided before them."""
        lost: dict[int, _Containment] = {}
        for part in sorted(self._containers, key=self._place, reverse=True):
            if part in dropped:
                continue
            kept = [
                pair for pair in self._containers[part] if pair.container not in dropped and pair.container not in lost
            ]
            if kept:
                lost[part] = _contained(kept)
        return lost

    def _cover_by_kept(
        self, container: int, dropped: Collection[int], contained: Mapping[int, _Containment]
    ) -> _Containment:
        parts = {pair.part for pair in self._parts[container] if pair.part not in dropped}
        kept = {part for part in parts if part not in contained}
        return self._cover(container, kept | {contained[part].keepers[0] for part in parts - kept})

    def _cover(self, container: int, others: Iterable[int]) -> _Containment:
        """Return the share of a container that others have, and the needed ones of them, first those that say most of it."""
        shingles = self._shingles(container)
        found = [(shared_places(self._shingles(other), shingles), other) for other in others]
        covered = np.zeros(len(shingles), np.bool_)
        keepers = []
        for places, other in sorted(found, key=lambda each: (-len(each[0]), each[1])):
            if not covered[places].all():
                keepers.append(other)
                covered[places] = True
        return _Containment(tuple(keepers), float(np.count_nonzero(covered)) / max(1, len(shingles)), Reason.CONTAINER)

    def _shingles(self, rank: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        return self._shingles_of(self._ranked[rank].document_id)

    def _place(self, rank: int) -> tuple[int, int]:
        return self._sizes[rank], -rank


def _contained(pairs: Sequence[ContainedPair]) -> _Containment:
    """Return the loss of a part to the container that has most of it."""
    best = min(pairs, key=lambda pair: (-pair.containment, pair.container))
    return _Containment((best.container,), best.containment, Reason.CONTAINED)


def _found(ranked: Sequence[ComparedDocument], lost: int, loss: _Containment) -> ContainedDocument:
    loser, keeper = ranked[lost], ranked[loss.keepers[0]]
    place = (keeper.document_id, keeper.source, keeper.path)
    record = duplicate_record(loser, place, loss.share, loss.reason, len(loss.keepers))
    is_across = loss.reason == Reason.CONTAINER and (loser.split, keeper.split) == (Split.TRAIN, Split.HELD_OUT)
    return ContainedDocument(record, tuple(ranked[rank].document_id for rank in loss.keepers), is_across)
