"""Made histories of trainings: a batch and a loss a step, and the state of every second step."""

import hashlib

import torch

from trainer.checkpoint.certificate import History

TENSORS = {"parameters/a": torch.arange(6.0), "parameters/b": torch.ones(2, 2)}


def history_of(*losses: float, changed: int | None = None, state: dict[str, torch.Tensor] | None = None) -> History:
    history = History()
    for step, loss in enumerate(losses, 1):
        batch = hashlib.sha256(b"other" if step == changed else bytes([step])).digest()
        history.extend(batch, loss, False, (state or TENSORS) if step % 2 == 0 else None)
    return history
