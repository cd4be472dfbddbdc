"""Prefetch: consecutive batches, made in this process or ahead of time in worker processes, always in the same order."""

import multiprocessing
import os
import threading
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from pipeline.core.errors import TrainingError
from trainer.data.batch import Batch
from trainer.data.loader import Loader

PREFETCH_PER_WORKER = 4
STALLED_AFTER_SECONDS = 300.0


class Batches(IterableDataset[Batch]):
    """Endless batches of `loader` from a position on. Batch size and workers may change at each resume."""

    def __init__(
        self,
        loader: Loader,
        batch_size: int,
        num_workers: int = 0,
        position: int = 0,
        stalled_after_seconds: float = STALLED_AFTER_SECONDS,
    ) -> None:
        self.loader = loader
        self.stalled_after_seconds = stalled_after_seconds
        self.batch_size = batch_size
        self.num_workers = num_workers
        self.position = position
        """Position of the next batch to be yielded, however far workers have read ahead."""

    def __iter__(self) -> Iterator[Batch]:
        if get_worker_info() is not None:
            raise TrainingError(
                "batches",
                "a DataLoader worker iterates over them",
                "the process that trains",
                "Give `num_workers` to Batches.",
            )
        for batch in self._made_here() if self.num_workers == 0 else self._made_by_workers():
            self.position = batch.next_position
            yield batch

    def state_dict(self) -> dict[str, int | str]:
        """Return what a checkpoint stores: mixture digest, seed, position, version."""
        return self.loader.state_at(self.position)

    def load_state_dict(self, state: Mapping[str, int | str]) -> None:
        """Continue at a state, from the next `iter` on. Raise TrainingError for a state of other data."""
        self.position = self.loader.position_of(state)

    def _made_here(self) -> Iterator[Batch]:
        for position in count(self.position, self.batch_size):
            yield self.loader.batch_at(position, self.batch_size)

    def _made_by_workers(self) -> Iterator[Batch]:
        batches: DataLoader[Batch] = DataLoader(
            _BatchesByPosition(self.loader, self.batch_size),
            batch_size=None,
            sampler=count(self.position, self.batch_size),
            num_workers=self.num_workers,
            prefetch_factor=PREFETCH_PER_WORKER,
            collate_fn=_unchanged,
            timeout=self.stalled_after_seconds,
            worker_init_fn=_end_with_trainer,
            multiprocessing_context="forkserver",
            # Without a generator of its own the DataLoader draws its workers' base seed from torch's global one.
            generator=torch.Generator(),
        )
        try:
            yield from batches
        except RuntimeError as error:
            if "timed out" not in str(error):
                raise
            raise TrainingError(
                "loader",
                f"no batch came within {self.stalled_after_seconds:.0f} s",
                "one from its workers",
                "Check the disk that holds the store; resume with --workers 0 to see where it hangs.",
            ) from error


class _BatchesByPosition(Dataset[Batch]):
    def __init__(self, loader: Loader, batch_size: int) -> None:
        self._loader = loader
        self._batch_size = batch_size

    def __getitem__(self, position: int) -> Batch:
        return self._loader.batch_at(position, self._batch_size)


def _end_with_trainer(worker: int) -> None:
    """End this worker as soon as the trainer is gone. Torch watches only the fork server, and not while a queue is full."""
    trainer = multiprocessing.parent_process()
    assert trainer is not None

    def watch() -> None:
        trainer.join()  # waits for a pipe that the kernel closes with the trainer
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _unchanged(batch: Any) -> Any:
    return batch
