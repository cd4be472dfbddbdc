"""Device checks of `python -m trainer bench`: document isolation, and bitwise-equal resume in bfloat16.

Shapes: B rows, T tokens of a row, D width.
"""

import argparse
import json
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kernels.measure.measurements import timing_environment
from pipeline.core.errors import TrainingError
from pipeline.store.snapshot import resolve_snapshot
from pipeline.store.store import Store
from trainer.bench.step_timing import plan_attention
from trainer.config.choices import Precision
from trainer.config.presets import PRESETS
from trainer.data.small_snapshot import copy_snapshot
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize
from trainer.model.segments import PADDING_DOC_ID
from trainer.train.child_session import SAME, ChildSessions, SessionFailed
from trainer.train.determinism import make_deterministic

CHECK_SEED = 42


@dataclass(frozen=True)
class CheckSizes:
    """Sizes of the checks: `lengths` of the documents of one row, `steps` at which training sessions end."""

    model: str = "small"
    lengths: tuple[int, ...] = (200, 1, 63, 64, 65, 300, 331)
    steps: tuple[int, ...] = (40, 80, 120)
    num_averaged_steps: int = 20
    options: tuple[str, ...] = tuple(
        "--device cuda --recipe small --batch-rows 16 --micro-batch-rows 16".split()  # noqa: SIM905
    )

    @classmethod
    def dry(cls) -> "CheckSizes":
        """Return sizes for the smallest model on the CPU."""
        options = ("--recipe", "tiny", "--compile", "fullgraph", "--compile-backend", "eager")
        return cls("tiny", (20, 1, 64, 43), (2, 4, 6), 2, options)


def measure_packing(sizes: CheckSizes) -> dict[str, Any]:
    """Count the outputs of a document, in bfloat16, that differ if another document changes or all others are removed."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    make_deterministic(CHECK_SEED, torch.get_num_threads())
    model = _model(sizes.model, device)
    plan_attention(model, Precision.BFLOAT16, device, len(sizes.lengths) + 1)  # and padding
    places_T = torch.repeat_interleave(torch.arange(len(sizes.lengths)), torch.tensor(sizes.lengths)).to(device)
    generator = torch.Generator().manual_seed(CHECK_SEED)
    ids_T = torch.randint(0, model.vocabulary_size, (len(places_T),), generator=generator).to(device)
    other_ids_T = (ids_T + 1) % model.vocabulary_size  # which differ at every position
    packed_TD = _outputs(model, ids_T, places_T + 1)
    touched, parted, moved = 0, 0, 0.0
    for document in range(len(sizes.lengths)):
        own_T = places_T == document
        changed_TD = _outputs(model, torch.where(own_T, other_ids_T, ids_T), places_T + 1)
        touched += _num_different(changed_TD[~own_T], packed_TD[~own_T])
        alone_TD = _outputs(model, torch.where(own_T, ids_T, 0), torch.where(own_T, 1, PADDING_DOC_ID))
        parted += _num_different(alone_TD[own_T], packed_TD[own_T])
        first_TD = _outputs(model, ids_T[own_T], torch.ones_like(ids_T[own_T]))
        moved = max(moved, _relative(first_TD, packed_TD[own_T]))
    return {
        **timing_environment(),
        "preset": sizes.model,
        "dtype": "bfloat16",
        "num_documents": len(sizes.lengths),
        "num_touched": touched,
        "num_different_alone": parted,
        "moved_eps": moved / torch.finfo(torch.bfloat16).eps,
    }


def measure_training(sizes: CheckSizes, options: argparse.Namespace) -> dict[str, Any]:
    """Compare a bfloat16 training that is stopped and resumed in fresh processes with an uninterrupted one."""
    store = Store(options.store)
    snapshot_id = resolve_snapshot(store, options.corpus, options.snapshot)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        copy = copy_snapshot(store, snapshot_id, Path(folder) / "store")
        sessions = ChildSessions(copy, snapshot_id, Path(folder) / "runs", sizes.steps[-1])
        more = ("--dtype", "bfloat16", "--save-every", str(sizes.steps[-1]), *sizes.options)
        try:
            straight = sessions.train("straight", *more)
            for step in sizes.steps:
                stopped = sessions.train("stopped", *more, "--resume", "latest", steps=step)
        except SessionFailed as error:
            raise TrainingError("training in bfloat16", str(error)) from error
        lines = (Path(folder) / "runs" / "straight" / "metrics.jsonl").read_text().splitlines()
    last = [json.loads(line) for line in lines[-sizes.num_averaged_steps :]]
    averaged = ("expert_padding_fraction", "expert_overflow_fraction")
    return {
        **timing_environment(),
        "recipe": straight["recipe"],
        "num_steps": straight["steps"],
        "num_processes": len(sizes.steps),
        "compared": list(SAME),
        "different": [name for name in SAME if straight[name] != stopped[name]],
        **{name: statistics.mean(line[name] for line in last) for name in averaged},
        "num_steps_averaged": len(last),
    }


def _model(name: str, device: str) -> HybridModel:
    model = HybridModel(PRESETS[name].model, PRESETS[name].target.vocabulary_size)
    initialize(model, CHECK_SEED)
    model.to(device)
    model.dtype = torch.bfloat16
    return model.eval()


@torch.no_grad()
def _outputs(model: HybridModel, ids_T: Tensor, documents_T: Tensor) -> Tensor:
    hidden_BTD: Tensor = model(ids_T.unsqueeze(0), documents_T.unsqueeze(0))
    return hidden_BTD.squeeze(0)


def _num_different(one: Tensor, other: Tensor) -> int:
    """Return how many numbers differ in their bits."""
    return int((one.contiguous().view(torch.int16) != other.contiguous().view(torch.int16)).sum())


def _relative(one: Tensor, other: Tensor) -> float:
    return float((one.float() - other.float()).abs().max() / other.float().abs().max())
