"""Repetition of a training in one process, as the acceptance gates need it: as it is, or with a race added to its model.

python -m trainer.proof.repeat_training as-it-is|with-race STORE CHECKPOINT_ID STEPS FOLDER...    prints the results as JSON
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pipeline.store.store import Store
from trainer.checkpoint.checkpoint import load
from trainer.model.hybrid import HybridModel
from trainer.proof.rerun import inputs_of
from trainer.train.child_session import SAVE_EVERY
from trainer.train.loop import train
from trainer.train.session import TrainSession


def repeat_training(store: Store, checkpoint_id: str, num_steps: int, folders: list[Path]) -> list[dict[str, Any]]:
    """Train from the start with the inputs of a checkpoint, once for each folder, and return the results."""
    inputs = inputs_of(load(store, checkpoint_id))
    sessions = (TrainSession(inputs, "tiny", num_steps, SAVE_EVERY, folder, folder.name) for folder in folders)
    return [train(store, session) for session in sessions]


def add_race() -> None:
    """Add a sum to every model whose order no seed decides, as an atomic addition would have it.

    The terms have both signs, so that orders round differently, and the norm that follows must not remove the difference.
    """
    run = HybridModel._run

    def race(self: HybridModel, *arguments: Any) -> tuple[Tensor, Tensor]:
        hidden_BTD, penalty = run(self, *arguments)
        values = hidden_BTD.detach().flatten()[:20_000]
        order = torch.tensor(random.SystemRandom().sample(range(len(values)), len(values)))
        total = torch.zeros(())
        for part in values[order].split(50):
            total = total + part.sum()
        return hidden_BTD + total.sin() * (torch.arange(hidden_BTD.shape[-1]) % 2), penalty

    HybridModel._run = race  # type: ignore[method-assign,assignment]


if __name__ == "__main__":
    how, root, checkpoint_id, num_steps, *folders = sys.argv[1:]
    if how == "with-race":
        add_race()
    print(json.dumps(repeat_training(Store(Path(root)), checkpoint_id, int(num_steps), [*map(Path, folders)])))
