"""Small checkpoints that no training wrote."""

from dataclasses import replace

import torch

from pipeline.store.store import Store
from trainer.checkpoint.certificate import History
from trainer.checkpoint.checkpoint import Checkpoint, save
from trainer.checkpoint.retention import RetentionPolicy
from trainer.checkpoint.saver import Saver

IDENTITY = {"config": {"batch_rows": 4, "model": {"depth": 2}}, "seed": 42, "snapshot_id": "a" * 64}


def made(step: int, moved: float = 0.0) -> Checkpoint:
    history = History()
    for number in range(step):
        history.extend(bytes([number]) * 32, 5.0 - number, False, None)
    parameters = {"embedding_VD": torch.arange(4096.0), "layers.0.norm.weight": torch.full((2048,), 1.0 + moved)}
    optimizer = {f"exp_avg/{name}": torch.zeros_like(value) for name, value in parameters.items()}
    return Checkpoint(
        step, IDENTITY, {"position": 4 * step}, {"torch": "1"}, {"row_length": 8}, parameters, optimizer, history
    )


def put(store: Store, checkpoint: Checkpoint, before: str | None = None) -> str:
    with store.writer("runs/r", "a test") as scratch:
        return save(store, scratch, checkpoint, before)


def write_run(store: Store, run: str, steps: range, keep: RetentionPolicy = RetentionPolicy()) -> list[str]:  # noqa: B008  # frozen
    ids = []
    with store.writer(f"runs/{run}", "a test") as scratch:
        saver = Saver(store, scratch, run, keep, print)
        for step in steps:
            saver.save(replace(made(step, moved=step), identity={**IDENTITY, "seed": len(run)}))
            ids.append(saver.finish(step))
    return ids
