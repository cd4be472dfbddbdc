"""RowSelection: which training rows are drawn, by source, lane or license, and in which shares of tokens.

All documents of a row have one source, one provenance (its lane) and one license, so that a selection chooses whole rows. Rows of
a source that a selection leaves become a Source with a permutation of its own. Shares are of stored tokens that are trained: those
that infilling adds and padding count for none. A part of a source gets the weight at which its mean row gives the share; one
source keeps its weight beside others of the same lane or license.

`spread_rows` chooses those that stand for all of them, where some are measured in place of all.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from heapq import heapify, heapreplace
from typing import Any, NamedTuple

import numpy as np

from pipeline.core.errors import SnapshotError, did_you_mean
from trainer.data.loader import Loader, Source

_GroupKey = tuple[str, tuple[str, ...]]
"""Name of a source, and what a group of its rows has in common."""
MAX_QUOTAS = 1 << 17
"""Rows of a cycle with shares: each part's number of them is rounded, at least 1, which moves its share by 4 in a million."""
LICENSE_CLASSES = {"permissive": "allowed", "weak_copyleft": "tagged"}
"""Names of the classes that the license policy calls so; the policy's own words are names too."""


class Dimension(StrEnum):
    """Property of a row that a selection is by."""

    SOURCE = "source"
    LANE = "lane"
    LICENSE = "license"


class RowGroup(NamedTuple):
    """Source, lane and license of a row."""

    source: str
    lane: str
    license: str
    license_class: str

    def has(self, dimension: Dimension, value: str) -> bool:
        """Return whether a row is of the value: a source, a lane, an SPDX expression or a class of licenses."""
        if dimension is Dimension.LICENSE:
            return value in (self.license, self.license_class) or LICENSE_CLASSES.get(value) == self.license_class
        return bool(value == (self.source if dimension is Dimension.SOURCE else self.lane))


@dataclass(frozen=True)
class RowSelection:
    """Rows of these values alone, and shares of tokens by value of one dimension. A value without a share is not drawn."""

    only: tuple[tuple[Dimension, tuple[str, ...]], ...] = ()
    shares_by: Dimension | None = None
    shares: tuple[tuple[str, float], ...] = ()

    @property
    def identity(self) -> dict[str, Any]:
        """The selection as a checkpoint stores it; empty for all rows."""
        only = {str(dimension): list(values) for dimension, values in self.only}
        mix = {str(self.shares_by): dict(self.shares)} if self.shares_by else {}
        return ({"only": only} if only else {}) | ({"mix": mix} if mix else {})

    @classmethod
    def of_identity(cls, identity: Mapping[str, Any]) -> "RowSelection":
        """Return the selection that a checkpoint stores."""
        only = tuple((Dimension(name), tuple(values)) for name, values in sorted(identity.get("only", {}).items()))
        for name, shares in identity.get("mix", {}).items():
            return cls(only, Dimension(name), tuple(sorted(shares.items())))
        return cls(only)


class SharesFromStep(NamedTuple):
    """Shares of all trained tokens by value that hold after so many steps."""

    at_step: int
    shares: dict[str, float]

    @property
    def sentence(self) -> str:
        """The shares in words."""
        shares = ", ".join(f"{value} {share * 100:.2f} %" for value, share in self.shares.items())
        return f"shares of tokens from step {self.at_step} on: {shares}"


def select_rows(sources: Sequence[Source], selection: RowSelection, subject: str) -> list[Source]:
    """Return the sources with the rows that are drawn, or parts of them.

    Raises SnapshotError about `subject` for a value that no row has, values that share a row, and rows without lane and license.
    """
    if not selection.identity:
        return list(sources)
    groups = {source.name: row_groups(source, subject) for source in sources}
    present = sorted(set().union(*(set(each) for each in groups.values())))
    kept = {group for group in present if _is_kept(group, selection)}
    for dimension, values in selection.only:
        _refuse_absent(dimension, values, present, f"--only {dimension}", subject)
    if not kept:
        raise SnapshotError(subject, "no row is of all that --only names", _described(present), _CHANGE)
    if selection.shares_by is None:
        chosen = dict.fromkeys(kept, "")
    else:
        names = [name for name, _ in selection.shares]
        _refuse_absent(selection.shares_by, names, sorted(kept), f"--mix by {selection.shares_by}", subject)
        chosen = {group: name for group in sorted(kept) if (name := _value_of(group, selection, subject))}
    parts = [part for source in sources for part in _parts(source, groups[source.name], chosen)]
    return _weighted(parts, dict(selection.shares)) if selection.shares_by else [part for _, part in parts]


def shares_by_step(loader: Loader) -> list[SharesFromStep]:
    """Return the shares of tokens that hold at the start of a loader, and from each later change of its mixture on.

    Each holds until the next, or until a source reaches its epoch cap. Empty where rows have no shares.
    """
    values = sorted({source.share_of for source in loader.sources if source.share_of})
    changes = zip(loader.config.mixture_changes, loader.config.change_positions, strict=True)
    starts = [(0, 0), *((change.at_step, position) for change, position in changes)]
    last = max(place for place, (_, position) in enumerate(starts) if position <= loader.start.position)
    means = [Fraction(int(source.rows.num_targets().sum()), len(source.rows)) for source in loader.sources if values]
    found = []
    for step, position in starts[last:] if values else ():
        if loader.end is not None and position >= loader.end:
            break
        num_tokens = dict.fromkeys(values, Fraction(0))
        for source, quota, mean in zip(loader.sources, loader.quotas_at(position), means, strict=True):
            num_tokens[source.share_of or ""] += quota * mean
        total = sum(num_tokens.values())
        found.append(SharesFromStep(step, {value: float(number / total) for value, number in num_tokens.items()}))
    return found


def spread_rows(sources: Sequence[Source], num_rows: int) -> list[Source]:
    """Return the sources with so many rows of all of theirs, in stored order: the same ones each time, for equal rows.

    A source, lane or license has as many of them as its share of all rows, and one at least while there are enough. Of one group
    they are evenly spaced.
    """
    rows: dict[_GroupKey, list[int]] = defaultdict(list)
    for source in sources:
        for row, group in enumerate(source.rows.groups() or [()] * len(source.rows)):
            rows[source.name, group].append(row)
    names = {source.name: source.source for source in sources}
    values = {key: {("source", names[key[0]]), *zip(("lane", "license"), key[1], strict=False)} for key in rows}
    numbers = _numbers({key: len(rows[key]) for key in sorted(rows)}, values, num_rows)
    chosen: dict[str, list[int]] = defaultdict(list)
    for (name, group), number in numbers.items():
        those = rows[name, group]
        chosen[name] += [those[(2 * place + 1) * len(those) // (2 * number)] for place in range(number)]
    return [
        replace(source, rows=source.rows.subset(np.array(sorted(chosen[source.name]), dtype=np.int64)))
        for source in sources
        if source.name in chosen
    ]


def row_groups(source: Source, subject: str) -> list[RowGroup]:
    """Return the group of each row of a source. Raises SnapshotError for rows of an earlier version, which have none."""
    found = source.rows.groups()
    if found is None:
        remedy = "Build the corpus again."
        raise SnapshotError(f"source {source.name} of {subject}", "its rows have no lane and license", "both", remedy)
    return [RowGroup(source.source, *group) for group in found]


def _numbers(
    sizes: Mapping[_GroupKey, int], values: Mapping[_GroupKey, set[Any]], num_rows: int
) -> dict[_GroupKey, int]:
    """Return how many rows of each group are chosen: of each value one, then always of the group that lacks most of its share."""
    total = sum(sizes.values())
    left = min(num_rows, total)
    numbers: Counter[_GroupKey] = Counter()
    missing = set().union(*values.values())
    while missing and numbers.total() < left:
        best = max(sizes, key=lambda key: (len(values[key] & missing), sizes[key]))
        numbers[best] += 1
        missing -= values[best]
    lacking = [(numbers[key] * total - sizes[key] * left, place, key) for place, key in enumerate(sizes)]
    heapify(lacking)
    for _ in range(left - numbers.total()):
        surplus, place, key = lacking[0]
        numbers[key] += 1
        heapreplace(lacking, (surplus + total, place, key))
    return dict(numbers)


def _is_kept(group: RowGroup, selection: RowSelection) -> bool:
    return all(any(group.has(dimension, value) for value in values) for dimension, values in selection.only)


def _value_of(group: RowGroup, selection: RowSelection, subject: str) -> str | None:
    """Return the value of the shares that a group is of, if any."""
    assert selection.shares_by is not None
    found = [name for name, _ in selection.shares if group.has(selection.shares_by, name)]
    if len(found) > 1:
        raise SnapshotError(
            subject, f"rows under {group.license} are of {' and of '.join(found)}", "one share a row", _CHANGE
        )
    return found[0] if found else None


def _refuse_absent(
    dimension: Dimension, values: Sequence[str], present: Sequence[RowGroup], what: str, subject: str
) -> None:
    for value in values:
        if not any(group.has(dimension, value) for group in present):
            near = did_you_mean(value, _names(present)[dimension], _CHANGE)
            raise SnapshotError(
                f"{what}: {subject}", f"no training row is of {value}", _described(present, dimension), near
            )


def _described(present: Sequence[RowGroup], dimension: Dimension | None = None) -> str:
    """Return what rows there are, in words."""
    names = _names(present)
    wanted = [dimension] if dimension else list(Dimension)
    return "; ".join(f"{each} {', '.join(names[each])}" for each in wanted)


def _names(present: Sequence[RowGroup]) -> dict[Dimension, list[str]]:
    """Return the values that rows have, by dimension; a class of licenses by its name here."""
    names = {each: sorted({getattr(group, each) for group in present}) for each in Dimension}
    words = {word: name for name, word in LICENSE_CLASSES.items()}
    names[Dimension.LICENSE] += sorted({words.get(group.license_class, group.license_class) for group in present})
    return names


def _parts(source: Source, groups: Sequence[RowGroup], chosen: Mapping[RowGroup, str]) -> list[tuple[str, Source]]:
    """Return the parts of a source by the value of their share, each with the rows of its groups."""
    rows: dict[str, list[int]] = defaultdict(list)
    for row, group in enumerate(groups):
        if group in chosen:
            rows[chosen[group]].append(row)
    names = {value: "/".join(filter(None, (source.name, value))) for value in rows}
    return [
        (
            value,
            replace(
                source,
                name=names[value],
                rows=source.rows.subset(np.array(numbers)),
                part_of=source.source,
                share_of=value or None,
            ),
        )
        for value, numbers in sorted(rows.items())
    ]


def _weighted(parts: Sequence[tuple[str, Source]], shares: Mapping[str, float]) -> list[Source]:
    """Return the parts with the weights at which each value has its share of all trained tokens."""
    num_tokens = {value: Fraction(0) for value in shares}
    for value, source in parts:
        num_tokens[value] += Fraction(source.weight) * int(source.rows.num_targets().sum())
    rows = [
        Fraction(each.weight) * len(each.rows) * Fraction(shares[value]) / num_tokens[value] for value, each in parts
    ]
    scale = MAX_QUOTAS / sum(rows)
    return [
        replace(source, weight=Fraction(max(1, round(amount * scale)), len(source.rows)))
        for (_, source), amount in zip(parts, rows, strict=True)
    ]


_CHANGE = "Change --only or --mix."
