"""Four ranks, forked from one process: two steps of a sharded model; rank 0 prints the result as JSON.

python -m tests.tools.sharding.sharded FILE      FILE is where the ranks meet; it must not be there yet
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from pipeline.core.errors import TrainingError
from pipeline.store.store import Store
from trainer.checkpoint.certificate import History
from trainer.checkpoint.checkpoint import Checkpoint, load, optimizer_tensors, restore_model, restore_optimizer, save
from trainer.checkpoint.tensor_files import OPTIMIZER, PARAMETERS, digest_tensors, share_of
from trainer.config.model import MuonConfig, OptimizerConfig
from trainer.config.presets import preset
from trainer.data.batch import Batch
from trainer.distributed.ranks import Ranks
from trainer.distributed.shards import Whole, own_rows
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize
from trainer.model.parallelize import shard
from trainer.optim.clipping import clip_gradients
from trainer.optim.optimizer import build_optimizer
from trainer.optim.schedule import set_learning_rate
from trainer.train.not_finite import first_not_finite
from trainer.train.step import backward

NUM_RANKS, NUM_MICRO_BATCHES, VOCABULARY_SIZE = 4, 8, 61
CONFIG = OptimizerConfig(muon=MuonConfig())


def batch_of() -> Batch:
    """Eight rows of two documents; the last of padding alone."""
    chance = np.random.default_rng(0)
    ids_BT = chance.integers(0, VOCABULARY_SIZE, (8, 24), dtype=np.int64)
    doc_ids_BT = np.array([[1] * 10 + [2] * 14] * 7 + [[-1] * 24], dtype=np.int32)
    return Batch(0, None, ids_BT, np.roll(ids_BT, -1, 1), doc_ids_BT > 0, doc_ids_BT)


def two_steps(ranks: Ranks, folder: Path) -> dict[str, object]:
    """Digests of the state at first, after each step, and read into a model of other weights; losses and norms.

    It is read from the checkpoint that the ranks have written into the store `folder`; `moved` is how much each wrote and read.
    """
    model = HybridModel(preset("tiny"), VOCABULARY_SIZE)
    if ranks.count > 1:
        shard(model, ranks)
    initialize(model, seed=7)
    optimizer = build_optimizer(model, CONFIG)
    found: dict[str, object] = {"digests": [state_of(model, optimizer)], "losses": [], "norms": []}
    for _ in range(2):
        loss = backward(model, batch_of(), NUM_MICRO_BATCHES, ranks, "cpu").loss
        norm = clip_gradients(model.named_parameters(), 1.0)
        set_learning_rate(optimizer, 1e-3)
        optimizer.step()
        optimizer.zero_grad()
        found["losses"].append(float(loss))  # type: ignore[attr-defined]
        found["norms"].append(float(norm))  # type: ignore[attr-defined]
        found["digests"].append(state_of(model, optimizer))  # type: ignore[attr-defined]
    share = share_of({PARAMETERS: model.state_dict(), OPTIMIZER: optimizer_tensors(optimizer, model)}, ranks)
    store, scratch = Store(folder), folder / "tmp" / f"rank-{ranks.rank}"
    written = Checkpoint(0, {"snapshot_id": "a" * 64}, {}, {}, {}, share[PARAMETERS], share[OPTIMIZER], History())
    found["checkpoint_id"] = saved_id = save(store, scratch, written, None, ranks.beside())
    kept = load(store, saved_id, ranks)
    found["moved"] = [num_bytes(each.parameters) + num_bytes(each.optimizer) for each in (written, kept)]
    initialize(model, seed=8)
    fresh = build_optimizer(model, CONFIG)
    restore_model(model, kept.parameters, kept.owners.get(PARAMETERS))
    restore_optimizer(fresh, model, kept.optimizer, kept.owners.get(OPTIMIZER))
    found["restored"] = state_of(model, fresh)
    found["not_finite"] = [
        poisoned(model, name, factor) for name, factor in (("norm.weight", 3e38), ("embedding_VD", torch.nan))
    ]
    found["fewest_rows"] = min(len(own_rows(each)) for each in model.parameters())
    found["share"] = sum(own_rows(each).numel() for each in model.parameters())
    return found


def num_bytes(tensors: Mapping[str, torch.Tensor]) -> int:
    """The bytes of tensors."""
    return sum(each.numel() * each.element_size() for each in tensors.values())


def poisoned(model: HybridModel, name: str, factor: float) -> str | None:
    """The first tensor that is not finite where a parameter is multiplied so."""
    with torch.no_grad():
        own_rows(model.get_parameter(name)).mul_(factor)
    return first_not_finite(model, batch_of(), NUM_MICRO_BATCHES, "cpu")


def state_of(model: HybridModel, optimizer: torch.optim.Optimizer) -> str:
    """The digest of a model and its optimizer."""
    return digest_tensors(Whole(model.state_dict())) + digest_tensors(Whole(optimizer_tensors(optimizer, model)))


def disagreement(ranks: Ranks) -> str:
    """The error of this rank if the last one was given other arguments."""
    try:
        ranks.require_agreement({"seed": 42, "stop_after": 5 + (ranks.rank == ranks.count - 1)})
    except TrainingError as error:
        return str(error)
    return "nothing"


def main(place: str) -> int:
    """Fork the other ranks, then be the first."""
    children = []
    rank = 0
    for number in range(1, NUM_RANKS):
        child = os.fork()
        if child == 0:
            rank, children = number, []
            break
        children.append(child)
    dist.init_process_group("gloo", init_method=f"file://{place}", rank=rank, world_size=NUM_RANKS)
    ranks = Ranks(rank, NUM_RANKS)
    answer = {**two_steps(ranks, Path(f"{place}-store")), "disagreements": ranks.all_gather(disagreement(ranks))}
    answer["moved"] = ranks.all_gather(answer["moved"])
    answer["shares"] = ranks.all_gather(answer["share"])
    answer["fewest_rows"] = min(ranks.all_gather(answer["fewest_rows"]))
    if rank == 0:
        print(json.dumps(answer), flush=True)
    dist.destroy_process_group()
    if rank:
        os._exit(0)
    return max((os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children), default=0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main(sys.argv[1]))
