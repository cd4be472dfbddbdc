"""A program for torchrun: two steps of a sharded model, told as JSON by rank 0. `test_sharding` compares it with one process."""

import json
import sys

import torch

from trainer.checkpoint import digest_tensors
from trainer.config import MuonConfig, OptimizerConfig
from trainer.model.hybrid import HybridModel, TrainingBatch
from trainer.model.initialization import initialize
from trainer.optimizer import build_optimizer, clip_gradients, set_learning_rate
from trainer.parallel import Ranks
from trainer.presets import preset
from trainer.sharding import build_sharded, full_tensors, sharded_backward

CONFIG = OptimizerConfig(muon=MuonConfig())


def batch_of() -> TrainingBatch:
    """Four rows of two documents; the last of padding alone."""
    ids_BT = torch.randint(0, 64, (4, 24), generator=torch.Generator().manual_seed(0))
    doc_ids_BT = torch.tensor([[1] * 10 + [2] * 14] * 3 + [[-1] * 24])
    return TrainingBatch(ids_BT, ids_BT.roll(-1, 1), doc_ids_BT > 0, doc_ids_BT)


def two_steps(ranks: Ranks) -> dict[str, object]:
    """Losses, norms, the digest at first and the parameters at last."""
    model = HybridModel(preset("tiny"), 64)
    if ranks.count > 1:
        build_sharded(model, ranks, seed=7)
    else:
        initialize(model, seed=7)
    optimizer = build_optimizer(model, CONFIG)
    told: dict[str, object] = {"initial": digest_tensors(full_tensors(model)), "losses": [], "norms": []}
    for _ in range(2):
        loss = sharded_backward(model, batch_of(), ranks)
        norm = clip_gradients(model.named_parameters(), 1.0)
        set_learning_rate(optimizer, 1e-3)
        optimizer.step()
        optimizer.zero_grad()
        told["losses"].append(float(loss))  # type: ignore[attr-defined]
        told["norms"].append(float(norm))  # type: ignore[attr-defined]
    whole = full_tensors(model)
    told["final"] = {name: tensor.double().norm().item() for name, tensor in whole.items()}
    told["digest"] = digest_tensors(whole)
    return told


if __name__ == "__main__":
    torch.set_num_threads(1)
    joined = Ranks.join()
    answer = two_steps(joined)
    if joined.rank == 0:
        print(json.dumps(answer))
    joined.leave()
    sys.exit(0)
