"""The held-out rows in the middle of a training: a look that changes nothing, not even the experts' counters."""

import math
from dataclasses import dataclass
from itertools import islice

import torch

from pipeline.errors import TrainingError
from pipeline.records import Split
from pipeline.snapshot import Snapshot
from trainer.loader import RowLayout, held_out_batches
from trainer.model.hybrid import HybridModel
from trainer.sources import sources_of
from trainer.stepping import to_device


@dataclass(frozen=True)
class Evaluation:
    """How often to look, and at how many rows: the first ones, in stored order by source. `every` None: never."""

    every: int | None = None
    num_rows: int = 32

    def is_due(self, step: int) -> bool:
        return self.every is not None and step % self.every == 0


class HeldOut:
    """The held-out rows of a snapshot, mapped once. Raises TrainingError where it has none."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._sources = sources_of(snapshot, Split.HELD_OUT)
        if not any(len(source.rows) for source in self._sources):
            subject = f"snapshot {snapshot.snapshot_id[:12]}"
            raise TrainingError(subject, "it has no held-out rows", "", "Train without --evaluate-every.")
        self._layout = RowLayout.of(snapshot.snapshot_id, snapshot.row_length, snapshot.vocabulary["specials"])
        num_bytes = sum(source.num_text_bytes for source in snapshot.sources)
        self._tokens_a_byte = sum(source.num_tokens for source in snapshot.sources) / max(1, num_bytes)

    @torch.no_grad()
    def evaluate(self, model: HybridModel, num_rows: int, batch_rows: int, device: str) -> dict[str, float]:
        """Mean cross-entropy in nats over the first rows, in whole batches, and as bits a byte of text.

        Bytes are counted by the snapshot's own tokens a byte, over all its documents. The model is left as it was found.
        """
        batches = held_out_batches(self._sources, self._layout, batch_rows)
        total, num_tokens = 0.0, 0
        was_training = model.training
        model.eval()
        for batch in islice(batches, -(-num_rows // batch_rows)):
            _, parts = model.loss(to_device(batch, device))
            total += float(parts.cross_entropy_sum)
            num_tokens += int(parts.num_trained_tokens)
        model.train(was_training)
        mean = total / max(1, num_tokens)
        return {"held_out_cross_entropy": mean, "held_out_bits_per_byte": mean / math.log(2) * self._tokens_a_byte}
