"""A checkpoint: an object of the store, so content-addressed, and written whole or not at all. Safetensors and JSON alone.

Its id holds no run name and no clock: a run that stopped and one that never did end in the same id. No pickle is ever loaded.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from pipeline.durable import sync_file, write_synced
from pipeline.errors import MissingError, TrainingError
from pipeline.params import canonical_json
from pipeline.store import Store

KIND = "training/checkpoint"
PARAMETERS, OPTIMIZER, HISTORY, STATE = (
    "parameters.safetensors",
    "optimizer.safetensors",
    "history.safetensors",
    "state.json",
)
FORMAT_VERSION = 1


@dataclass(frozen=True)
class Checkpoint:
    """A training after `step` steps. `losses` has one entry a step, so that a resumed run reports them all.

    `identity` is what a resume must find unchanged: configuration, seed, snapshot. `surroundings` is the kernel manifest.
    """

    step: int
    identity: Mapping[str, Any]
    loader: Mapping[str, Any]
    surroundings: Mapping[str, Any]
    parameters: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    losses: Tensor


def save(store: Store, scratch: Path, checkpoint: Checkpoint) -> str:
    """Write a checkpoint into the store and return its id. Raises TrainingError for parameters that are no numbers."""
    _refuse_not_finite(checkpoint)
    folder = scratch / f"step-{checkpoint.step}"
    folder.mkdir(parents=True)
    tensors = {
        PARAMETERS: checkpoint.parameters,
        OPTIMIZER: checkpoint.optimizer,
        HISTORY: {"losses": checkpoint.losses},
    }
    for name, content in tensors.items():
        save_file({key: content[key].detach().cpu().contiguous() for key in sorted(content)}, str(folder / name))
        sync_file(folder / name)
    state = {
        "format_version": FORMAT_VERSION,
        "step": checkpoint.step,
        "identity": checkpoint.identity,
        "loader": checkpoint.loader,
        "surroundings": checkpoint.surroundings,
    }
    write_synced(folder / STATE, canonical_json(state))
    return store.commit(folder, KIND, {"step": checkpoint.step}, {"snapshot": checkpoint.identity["snapshot_id"]})


def load(store: Store, checkpoint_id: str) -> Checkpoint:
    """Read and verify a checkpoint. Raises MissingError, DamagedError, or TrainingError for an object that is none."""
    stored = store.read(checkpoint_id)
    if stored.manifest.kind != KIND:
        raise TrainingError(f"object {checkpoint_id[:12]}", f"it is a {stored.manifest.kind}", "a checkpoint")
    state = json.loads(stored.file(STATE).read_bytes())
    if state["format_version"] != FORMAT_VERSION:
        raise TrainingError(
            f"checkpoint {checkpoint_id[:12]}", f"format {state['format_version']}", f"{FORMAT_VERSION}"
        )
    parameters, optimizer, history = (load_file(str(stored.file(name))) for name in (PARAMETERS, OPTIMIZER, HISTORY))
    return Checkpoint(
        step=state["step"],
        identity=state["identity"],
        loader=state["loader"],
        surroundings=state["surroundings"],
        parameters=parameters,
        optimizer=optimizer,
        losses=history["losses"],
    )


def find(store: Store, run: str, name: str) -> str | None:
    """The id that `latest` or an id stands for; None where the run has no checkpoint yet."""
    if name == "latest":
        return store.ref(f"runs/{run}", "latest")
    if store.locate(name) is None:
        known = store.ref(f"runs/{run}", "latest")
        hint = f"the newest of this run is {known}" if known else "this run has none yet"
        raise MissingError(
            f"checkpoint {name}", "it is not in the store", "`latest` or the id of a checkpoint", f"Of those, {hint}."
        )
    return name


def refuse_drift(found: Mapping[str, Any], wanted: Mapping[str, Any], checkpoint_id: str) -> None:
    """Raise TrainingError naming every field in which a checkpoint's configuration is not the one that was asked for."""
    before, after = _flat(found), _flat(wanted)
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    if names:
        changes = "; ".join(f"{name} was {before.get(name)!r}, is now {after.get(name)!r}" for name in names)
        raise TrainingError(
            f"checkpoint {checkpoint_id[:12]}",
            f"it is of another configuration: {changes}",
            "",
            "Resume it as it was, or start a new run.",
        )


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """The optimiser's state by parameter name: `exp_avg/<name>`, `exp_avg_sq/<name>`, `step/<name>`."""
    tensors: dict[str, Tensor] = {}
    for name, parameter in sorted(model.named_parameters()):
        for key, value in sorted(optimizer.state[parameter].items()):
            tensors[f"{key}/{name}"] = value
    return tensors


def restore_optimizer(optimizer: torch.optim.Optimizer, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Put back what `optimizer_tensors` took. Raises TrainingError where an entry is missing or left over."""
    by_name = dict(model.named_parameters())
    keys = sorted({name.partition("/")[0] for name in tensors})
    expected = {f"{key}/{name}" for key in keys for name in by_name}
    if expected != tensors.keys():
        raise TrainingError(
            "optimiser state", f"entries differ: {sorted(expected ^ tensors.keys())}", "one for each parameter"
        )
    for name, parameter in by_name.items():
        optimizer.state[parameter] = {key: tensors[f"{key}/{name}"].clone() for key in keys}


def digest_tensors(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over (name, dtype, shape, little-endian bytes) of each tensor, sorted by name."""
    hasher = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        hasher.update(canonical_json([name, str(tensor.dtype).removeprefix("torch."), list(tensor.shape)]))
        hasher.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return hasher.hexdigest()


def _refuse_not_finite(checkpoint: Checkpoint) -> None:
    """A step may leave the range of a float though its gradient was finite; what follows from it is worth nothing."""
    tensors = {**checkpoint.parameters, **checkpoint.optimizer}
    names = [name for name, tensor in sorted(tensors.items()) if not bool(torch.isfinite(tensor).all())]
    if names:
        raise TrainingError(
            f"step {checkpoint.step}",
            f"{len(names)} tensors hold values that are not finite, {names[0]} first",
            "finite numbers",
            "Nothing was saved. Resume the last checkpoint with a lower learning rate.",
        )


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {prefix: value}
    flat: dict[str, Any] = {}
    for key, inner in value.items():
        flat.update(_flat(inner, f"{prefix}.{key}" if prefix else str(key)))
    return flat
