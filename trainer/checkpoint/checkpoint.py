"""A checkpoint: an object of the store, so content-addressed, and written whole or not at all. Safetensors and JSON alone.

    parameters-<part>.safetensors, optimizer-<part>.safetensors    a file a layer, the embedding, the head, all small tensors
    history.safetensors                                            what the certificate's chains were made of
    state.json                                                     everything else that a later step depends on

A part that is the same as in the checkpoint before is stored once: the new file is a hard link. The id holds no run name
and no clock: a run that stopped and one that never did end in the same id. No pickle is ever loaded.
"""

import errno
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from pipeline.core.digests import file_sha256
from pipeline.core.durable import sync_file, write_synced
from pipeline.core.errors import MissingError, TrainingError
from pipeline.core.params import canonical_json
from pipeline.store.objects import StoredObject, read_manifest
from pipeline.store.store import Store
from trainer.checkpoint.certificate import History
from trainer.distributed.shards import is_sharded, own_rows, rows_like, slice_like

KIND = "training/checkpoint"
PARAMETERS, OPTIMIZER, HISTORY, STATE = "parameters", "optimizer", "history.safetensors", "state.json"
FORMAT_VERSION = 2
SMALL_BYTES = 4096
"""Smaller tensors lie in one file: step counters and router biases move at each step, and a frozen layer must not."""


@dataclass(frozen=True)
class Checkpoint:
    """A training after `step` steps, its tensors in host memory.

    `identity` is what a resume must find unchanged: configuration, seed, snapshot. `surroundings` is the kernel manifest.
    `packing` describes the rows. `forks` lists the drift that was allowed on the way, with the step at which it began;
    `adoptions` the snapshots that a run went on with, with the position.
    """

    step: int
    identity: Mapping[str, Any]
    loader: Mapping[str, Any]
    surroundings: Mapping[str, Any]
    packing: Mapping[str, Any]
    parameters: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    history: History
    forks: list[dict[str, Any]] = field(default_factory=list)
    adoptions: list[dict[str, Any]] = field(default_factory=list)

    @property
    def snapshots(self) -> dict[str, str]:
        """The snapshots that the steps up to here have read, by what they are to the run."""
        mixture = sorted(self.identity.get("mixture", {}))
        adopted = {f"adopted/{adoption['position']}": adoption["new"] for adoption in self.adoptions}
        return {"snapshot": self.identity["snapshot_id"], **{f"mixture/{name}": name for name in mixture}, **adopted}

    def state(self) -> dict[str, Any]:
        """What stands in state.json."""
        return {
            "format_version": FORMAT_VERSION,
            "step": self.step,
            "identity": self.identity,
            "loader": self.loader,
            "surroundings": self.surroundings,
            "packing": self.packing,
            "forks": self.forks,
            **({"adoptions": self.adoptions} if self.adoptions else {}),
            "certificate": self.history.certificate,
            "parameters_sha256": digest_tensors(self.parameters),
            "optimizer_sha256": digest_tensors(self.optimizer),
        }


def save(store: Store, scratch: Path, checkpoint: Checkpoint, before_id: str | None = None) -> str:
    """Write a checkpoint into the store and return its id. Files equal to those of `before_id` share its bytes.

    Raises TrainingError for values that are no numbers: nothing is written.
    """
    _refuse_not_finite(checkpoint)
    folder = scratch / f"step-{checkpoint.step}"
    folder.mkdir(parents=True)
    files = {HISTORY: checkpoint.history.as_tensors()}
    for kind, tensors in ((PARAMETERS, checkpoint.parameters), (OPTIMIZER, checkpoint.optimizer)):
        for name in sorted(tensors):
            files.setdefault(f"{kind}-{_part_of(name, tensors[name])}.safetensors", {})[name] = tensors[name]
    for name, content in sorted(files.items()):
        _write_tensors(folder / name, {key: content[key].detach().cpu().contiguous() for key in sorted(content)})
    write_synced(folder / STATE, canonical_json(checkpoint.state()))
    if before_id is not None:
        _share(store, before_id, folder)
    return store.commit(folder, KIND, {"step": checkpoint.step}, checkpoint.snapshots)


def load(store: Store, checkpoint_id: str) -> Checkpoint:
    """Read and verify a checkpoint. Raises MissingError, DamagedError, or TrainingError for an object that is none."""
    stored = open_stored(store, checkpoint_id)
    state = read_state(stored)
    subject = f"checkpoint {checkpoint_id[:12]}"
    parameters, optimizer = (_load_parts(stored, kind) for kind in (PARAMETERS, OPTIMIZER))
    for name, tensors in (("parameters_sha256", parameters), ("optimizer_sha256", optimizer)):
        if (found := digest_tensors(tensors)) != state[name]:
            raise TrainingError(subject, f"its tensors have {name} {found[:12]}", f"{state[name][:12]}", _OTHER)
    history = History.of_tensors(_load_tensors(stored, HISTORY), state["certificate"])
    if history.num_steps != state["step"]:
        raise TrainingError(subject, f"its history has {history.num_steps} steps", f"{state['step']}", _OTHER)
    named = {name: state[name] for name in ("step", "identity", "loader", "surroundings", "packing", "forks")}
    adoptions = state.get("adoptions", [])
    return Checkpoint(**named, parameters=parameters, optimizer=optimizer, history=history, adoptions=adoptions)


def open_stored(store: Store, checkpoint_id: str) -> StoredObject:
    """The object of a checkpoint. Raises MissingError, or TrainingError for an object that is none."""
    stored = store.read(checkpoint_id)
    if stored.manifest.kind != KIND:
        raise TrainingError(f"object {checkpoint_id[:12]}", f"it is a {stored.manifest.kind}", "a checkpoint")
    return stored


def read_state(stored: StoredObject) -> dict[str, Any]:
    """The state.json of a checkpoint. Raises TrainingError for another format or a missing entry."""
    subject = f"checkpoint {stored.object_id[:12]}"
    state: dict[str, Any] = json.loads(stored.file(STATE).read_bytes())
    if state.get("format_version") != FORMAT_VERSION:
        raise TrainingError(subject, f"format {state.get('format_version')}", f"{FORMAT_VERSION}", _OTHER)
    missing = sorted(set(STATE_FIELDS) - state.keys())
    if missing:
        raise TrainingError(subject, f"its state has no {', '.join(missing)}", f"{', '.join(STATE_FIELDS)}", _OTHER)
    return state


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


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """The optimizer's state by parameter name: `exp_avg/<name>`, `exp_avg_sq/<name>`, `step/<name>`, `momentum/<name>`."""
    tensors: dict[str, Tensor] = {}
    for name, parameter in sorted(model.named_parameters()):
        for key, value in sorted(optimizer.state[parameter].items()):
            tensors[f"{key}/{name}"] = value
    return tensors


def restore_model(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Put whole tensors into a model, sharded or not. Raises TrainingError unless they are those of the model."""
    own = model.state_dict()
    try:
        model.load_state_dict({name: _as_held(value, own.get(name)) for name, value in tensors.items()})
    except RuntimeError as error:
        raise TrainingError("checkpoint's parameters", str(error), "those of this model") from error


def restore_optimizer(optimizer: torch.optim.Optimizer, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Put back what `optimizer_tensors` took. Raises TrainingError where an entry is missing or left over."""
    by_name = dict(model.named_parameters())
    expected = optimizer_tensors(optimizer, model).keys()
    if expected != tensors.keys():
        raise TrainingError(
            "optimizer state", f"entries differ: {sorted(expected ^ tensors.keys())}", "one for each parameter"
        )
    for name, parameter in by_name.items():
        for key, value in optimizer.state[parameter].items():
            own_rows(value).copy_(rows_like(tensors[f"{key}/{name}"], value))


def digest_tensors(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over (name, dtype, shape, little-endian bytes) of each tensor, sorted by name."""
    hasher = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        hasher.update(canonical_json([name, str(tensor.dtype).removeprefix("torch."), list(tensor.shape)]))
        hasher.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return hasher.hexdigest()


def _as_held(value: Tensor, own: Tensor | None) -> Tensor:
    return value if own is None or not is_sharded(own) else slice_like(value, own)


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


def _write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write and sync one file. Raises OSError: the library has an error of its own for a disk that is full."""
    try:
        save_file(tensors, str(path))
    except SafetensorError as error:
        raise OSError(errno.EIO, str(error), str(path)) from error
    sync_file(path)


def _part_of(name: str, tensor: Tensor) -> str:
    if tensor.numel() * tensor.element_size() < SMALL_BYTES:
        return "small"
    words = name.rpartition("/")[2].split(".")
    return ".".join(words[:2]) if words[0] == "layers" else words[0]


def _share(store: Store, before_id: str, folder: Path) -> None:
    """Replace the files that the checkpoint before has too by links to its own, where those are sound."""
    before = store.locate(before_id)
    entries = {entry.name: entry.sha256 for entry in read_manifest(before).files} if before else {}
    for path in sorted(folder.iterdir()):
        sha256 = entries.get(path.name)
        if before and sha256 and sha256 == file_sha256(path) == file_sha256(before / path.name):
            link = path.with_name(f".{path.name}")
            os.link(before / path.name, link)
            os.replace(link, path)


def _load_parts(stored: StoredObject, kind: str) -> dict[str, Tensor]:
    names = [entry.name for entry in stored.manifest.files if entry.name.startswith(f"{kind}-")]
    return {key: tensor for name in names for key, tensor in _load_tensors(stored, name).items()}


def _load_tensors(stored: StoredObject, name: str) -> dict[str, Tensor]:
    try:
        return load_file(str(stored.file(name)))
    except SafetensorError as error:
        subject = f"file {name} of checkpoint {stored.object_id[:12]}"
        raise TrainingError(subject, f"it holds no tensors ({error})", "safetensors", _OTHER) from error


STATE_FIELDS = (
    "step",
    "identity",
    "loader",
    "surroundings",
    "packing",
    "forks",
    "certificate",
    "parameters_sha256",
    "optimizer_sha256",
)
_OTHER = "Resume an earlier checkpoint: `python -m trainer checkpoints list` shows them."
