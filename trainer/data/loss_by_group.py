"""LossByGroup: means of a loss by source, lane and license, from the sums of single rows.

All documents of a row are of one group, so that the sum of a row is that of its group; sums are added exactly, in any order.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from trainer.data.batch import Batch, RowOrigins
from trainer.data.loader import Source


class GroupLoss(NamedTuple):
    """Nats and trained tokens of rows: of one, or of those of a source, a lane or a license."""

    nats: float
    num_tokens: int


def row_losses(batch: Batch, nats_B: Sequence[float]) -> list[GroupLoss]:
    """Return the losses of the rows of a batch."""
    num_tokens_B = batch.loss_mask_BT.sum(1).tolist()
    return [GroupLoss(nats, number) for nats, number in zip(nats_B, num_tokens_B, strict=True)]


class LossByGroup:
    """Sums by (dimension, value): of each source and, where its rows name them, of each lane and license."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self._sources = {source.name: source for source in sources}
        self._rows: dict[tuple[str, str], list[GroupLoss]] = defaultdict(list)

    def means_of(self, batch: Batch, nats_B: Sequence[float], name: str) -> dict[str, float]:
        """Return the means of one batch alone, as `take_means` does."""
        self.add(batch.origins, row_losses(batch, nats_B))
        return self.take_means(name)

    def add(self, origins: RowOrigins, rows: Sequence[GroupLoss]) -> None:
        """Add the losses of rows."""
        places = zip(origins.sources_B.tolist(), origins.rows_B.tolist(), rows, strict=False)
        for source, row, loss in places:
            for value in self._values(origins.names[source], row):
                self._rows[value].append(loss)

    def take_means(self, name: str) -> dict[str, float]:
        """Return the means in nats per token by `name/dimension/value`, sorted, of values with trained tokens, and begin anew."""
        found = {}
        for value, rows in sorted(self._rows.items()):
            num_tokens = sum(each.num_tokens for each in rows)
            if num_tokens:
                found["/".join((name, *value))] = math.fsum(each.nats for each in rows) / num_tokens
        self._rows.clear()
        return found

    def _values(self, name: str, row: int) -> list[tuple[str, str]]:
        group = self._sources[name].rows.group_of(row)
        found = [("source", self._sources[name].source)]
        return found if group is None else [*found, ("lane", group[0]), ("license", group[1])]
