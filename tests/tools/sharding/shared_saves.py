"""Two ranks that save one checkpoint, forked again and again; one of them is killed at a call that changes the disk.

python -m tests.tools.sharding.shared_saves FOLDER STRIDE    kills at each STRIDE-th call of each rank; prints what was left
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from pipeline.store.store import Store
from tests.faults.injected_faults import die, in_child, inject
from tests.support.made.made_checkpoints import made
from trainer.checkpoint.checkpoint import load
from trainer.checkpoint.retention import RetentionPolicy, is_sound
from trainer.checkpoint.saver import Saver
from trainer.checkpoint.stored_state import CHECKPOINT_KIND
from trainer.checkpoint.tensor_files import OPTIMIZER, PARAMETERS, share_of
from trainer.distributed.hosts import own_scratch
from trainer.distributed.ranks import Ranks

NUM_RANKS = 2


def save_together(folder: Path, rank: int, meeting: Path) -> None:
    """Save the second checkpoint of a run as one of the ranks."""
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=NUM_RANKS)
    ranks, store = Ranks(rank, NUM_RANKS), Store(folder)
    whole = made(2, moved=1.0)
    own = share_of({PARAMETERS: whole.parameters, OPTIMIZER: whole.optimizer}, ranks)
    fields = {**vars(whole), PARAMETERS: own[PARAMETERS], OPTIMIZER: own[OPTIMIZER]}
    writer = store.writer("runs/r", "a test")
    place = ranks.first(lambda: writer.__enter__().relative_to(store.root))
    saver = Saver(store, own_scratch(store, place, ranks), "r", RetentionPolicy(), lambda text: None, ranks)
    saver.save(type(whole)(**fields))
    saver.finish(2)
    ranks.first(lambda: writer.__exit__(None, None, None))
    dist.destroy_process_group()


def attempt(folder: Path, killed: int, number: int) -> list[int]:
    """Let the ranks save, one of them killed at a call; return their exit codes."""
    meeting = folder.parent / f"meeting-{killed}-{number}"
    children = []
    for rank in range(NUM_RANKS):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with inject(number if rank == killed else 0, die):
                    save_together(folder, rank, meeting)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def left(folder: Path) -> dict[str, Any]:
    """Return whether each object that a reader finds is sound, and the step that `latest` names."""
    store = Store(folder)
    found = sorted(path.name for path in folder.glob(f"objects/{CHECKPOINT_KIND}/*"))
    latest = store.ref("runs/r", "latest")
    return {"sound": [is_sound(store, each) for each in found], "latest": load(store, latest).step if latest else None}


def main(folder: Path, stride: int) -> list[dict[str, Any]]:
    """Kill each rank at one call after another, and save once more over what each kill has left."""
    outcomes: list[dict[str, Any]] = []
    os.environ["TORCH_DISTRIBUTED_DEFAULT_TIMEOUT"] = "60"
    for killed in range(NUM_RANKS):
        for number in range(1, 1000, stride):
            root = folder / f"{killed}-{number}"
            assert in_child(lambda root=root: first_save(root)) == 0  # type: ignore[misc]
            codes = attempt(root / "store", killed, number)
            outcome = {"killed": killed, "number": number, "codes": codes, **left(root / "store")}
            if codes[killed] == 0:
                break
            outcome["again"] = attempt(root / "store", -1, number)
            outcomes.append({**outcome, "at_last": left(root / "store")})
    return outcomes


def first_save(root: Path) -> None:
    """Save the first checkpoint of the run in one process."""
    store = Store(root / "store")
    with store.writer("runs/r", "a test") as scratch:
        saver = Saver(store, scratch, "r", RetentionPolicy(), lambda text: None)
        saver.save(made(1))
        saver.finish(1)


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]))))
