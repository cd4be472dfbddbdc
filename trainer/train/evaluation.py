"""Evaluation during a training: held-out loss, which changes nothing, not even the experts' counters."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from pipeline.core.errors import TrainingError
from pipeline.core.records import Split
from pipeline.store.snapshot import Snapshot
from trainer.data.loader import held_out_batches
from trainer.data.loss_by_group import LossByGroup, row_losses
from trainer.data.open_loader import sources_of
from trainer.data.row_layout import RowLayout
from trainer.data.row_selection import spread_rows
from trainer.distributed.shards import release
from trainer.model.hybrid import HybridModel
from trainer.train.step import nats_of_rows, to_device

_HOLD_OUT = "Hold some out by `held_out` of the corpus's recipe and build again, or train without --evaluate-every."


@dataclass(frozen=True)
class EvaluationSchedule:
    """Steps between evaluations (None: never), and the number of rows, which `spread_rows` chooses: the same each time."""

    every: int | None = None
    num_rows: int = 32

    def is_due(self, step: int) -> bool:
        return self.every is not None and step % self.every == 0


class HeldOutRows:
    """Held-out rows of the snapshots that a training reads, mapped once. Raises TrainingError where there are none."""

    def __init__(self, snapshots: Sequence[Snapshot], with_structure: bool = False) -> None:
        self._with_structure = with_structure
        self._sources = [
            replace(source, name=f"{snapshot.snapshot_id}/{source.name}", part_of=source.name)
            for snapshot in snapshots
            for source in sources_of(snapshot, Split.HELD_OUT, with_structure)
        ]
        first = snapshots[0]
        if not any(len(source.rows) for source in self._sources):
            subject = f"snapshot {first.snapshot_id[:12]}"
            raise TrainingError(subject, "it has no held-out rows", "", _HOLD_OUT)
        self._layout = RowLayout.of(first.snapshot_id, first.row_length, first.vocabulary["specials"])
        described = [source for snapshot in snapshots for source in snapshot.sources]
        num_bytes = sum(source.num_text_bytes for source in described)
        self._tokens_per_byte = sum(source.num_tokens for source in described) / max(1, num_bytes)

    @torch.no_grad()
    def evaluate(self, model: HybridModel, num_rows: int, batch_rows: int, device: str) -> dict[str, float]:
        """Return the mean cross-entropy in nats over so many rows, spread over all that are held out, and as bits per byte of text.

        The same mean by source, lane and license of the rows stands beside them. Bytes are estimated by the tokens per byte of
        all documents of the snapshots. The model is unchanged.
        """
        sources = spread_rows(self._sources, num_rows)
        batches = held_out_batches(sources, self._layout, batch_rows, self._with_structure)
        total, num_tokens, by_group = 0.0, 0, LossByGroup(sources)
        was_training = model.training
        model.eval()
        planned = model.attention
        for batch in batches:
            model.attention = planned.with_room_for(batch.doc_ids_BT)
            _, parts = model.loss(to_device(batch, device))
            total += float(parts.cross_entropy_sum)
            num_tokens += int(parts.num_trained_tokens)
            by_group.add(batch.origins, row_losses(batch, nats_of_rows(parts, batch)))
        model.attention = planned
        model.train(was_training)
        release(model)
        mean = total / max(1, num_tokens)
        found = {"held_out_cross_entropy": mean, "held_out_bits_per_byte": mean / math.log(2) * self._tokens_per_byte}
        return found | by_group.take_means("held_out_cross_entropy")
