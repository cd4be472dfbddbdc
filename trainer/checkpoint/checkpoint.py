"""Checkpoint: an object of the store, so content-addressed and written whole or not at all; safetensors and JSON only.

    parameters-<part>.safetensors, optimizer-<part>.safetensors    a file a layer, the embedding, the head, all small tensors
    history.safetensors                                            what the certificate's chains were made of
    state.json                                                     everything else that later steps depend on

A file that is equal to that of the previous checkpoint is stored once: the new one is a hard link. The id depends on no run name
and no clock: a run that was stopped and resumed ends in the same id as one that was not. No pickle is ever loaded.
"""

import errno
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from pipeline.core.digests import file_sha256
from pipeline.core.durable import sync, write_synced
from pipeline.core.errors import TrainingError
from pipeline.core.params import canonical_json
from pipeline.store.objects import StoredObject, read_manifest
from pipeline.store.store import Store
from trainer.checkpoint.certificate import History
from trainer.checkpoint.stored_state import (
    CHECKPOINT_KIND,
    FORMAT_VERSION,
    HISTORY_FILE,
    OTHER,
    PLAIN_FIELDS,
    STATE,
    TrainingPlace,
    open_stored,
    read_state,
)
from trainer.distributed.shards import is_sharded, own_rows, rows_like, slice_like

PARAMETERS, OPTIMIZER = "parameters", "optimizer"
SMALL_BYTES = 4096
"""Smaller tensors share one file: step counters and router biases change at each step, the file of a frozen layer must not."""


@dataclass(frozen=True)
class Checkpoint(TrainingPlace):
    """A training after `step` steps, its tensors in host memory. To add a field of state.json, declare it in `TrainingPlace`."""

    parameters: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    history: History

    def state(self) -> dict[str, Any]:
        """Return the content of state.json."""
        return {
            "format_version": FORMAT_VERSION,
            **{name: getattr(self, name) for name in PLAIN_FIELDS},
            "certificate": self.history.certificate,
            "parameters_sha256": digest_tensors(self.parameters),
            "optimizer_sha256": digest_tensors(self.optimizer),
        }


def save(store: Store, scratch: Path, checkpoint: Checkpoint, before_id: str | None = None) -> str:
    """Write a checkpoint into the store and return its id. Files equal to those of `before_id` share its bytes.

    Raises TrainingError for values that are not finite: nothing is written.
    """
    _refuse_not_finite(checkpoint)
    folder = scratch / f"step-{checkpoint.step}"
    folder.mkdir(parents=True)
    files = {HISTORY_FILE: checkpoint.history.as_tensors()}
    for kind, tensors in ((PARAMETERS, checkpoint.parameters), (OPTIMIZER, checkpoint.optimizer)):
        for name in sorted(tensors):
            files.setdefault(f"{kind}-{_part_of(name, tensors[name])}.safetensors", {})[name] = tensors[name]
    for name, content in sorted(files.items()):
        _write_tensors(folder / name, {key: content[key].detach().cpu().contiguous() for key in sorted(content)})
    write_synced(folder / STATE, canonical_json(checkpoint.state()))
    if before_id is not None:
        _share(store, before_id, folder)
    return store.commit(folder, CHECKPOINT_KIND, {"step": checkpoint.step}, checkpoint.snapshots)


def load(store: Store, checkpoint_id: str) -> Checkpoint:
    """Read and verify a checkpoint. Raises MissingError, DamagedError, or TrainingError if the object is not a checkpoint."""
    stored = open_stored(store, checkpoint_id)
    state = read_state(stored)
    subject = f"checkpoint {checkpoint_id[:12]}"
    parameters, optimizer = (_load_parts(stored, kind) for kind in (PARAMETERS, OPTIMIZER))
    for name, tensors in (("parameters_sha256", parameters), ("optimizer_sha256", optimizer)):
        if (found := digest_tensors(tensors)) != state[name]:
            raise TrainingError(subject, f"its tensors have {name} {found[:12]}", f"{state[name][:12]}", OTHER)
    history = History.of_tensors(_load_tensors(stored, HISTORY_FILE), state["certificate"])
    if history.num_steps != state["step"]:
        raise TrainingError(subject, f"its history has {history.num_steps} steps", f"{state['step']}", OTHER)
    stored_fields = {name: state[name] for name in PLAIN_FIELDS}
    return Checkpoint(**stored_fields, parameters=parameters, optimizer=optimizer, history=history)


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Return the optimizer's state by parameter name: `exp_avg/<name>`, `exp_avg_sq/<name>`, `step/<name>`, `momentum/<name>`."""
    named = sorted(model.named_parameters())
    return {
        f"{key}/{name}": value for name, each in named for key, value in sorted(optimizer.state.get(each, {}).items())
    }


def restore_model(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Load whole tensors into a model, sharded or not. Raises TrainingError unless they are those of the model."""
    sharded = {name: own for name, own in model.state_dict().items() if is_sharded(own)}
    parts = {name: slice_like(value, sharded[name]) if name in sharded else value for name, value in tensors.items()}
    try:
        model.load_state_dict(parts)
    except RuntimeError as error:
        raise TrainingError("checkpoint's parameters", str(error), "those of this model") from error


def restore_optimizer(optimizer: torch.optim.Optimizer, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Load the state that `optimizer_tensors` returned. Raises TrainingError where an entry is missing or left over."""
    own = optimizer_tensors(optimizer, model)
    if own.keys() != tensors.keys():
        found = f"entries differ: {sorted(own.keys() ^ tensors.keys())}"
        raise TrainingError("optimizer state", found, "one for each trained parameter")
    for name, value in own.items():
        own_rows(value).copy_(rows_like(tensors[name], value))


def digest_tensors(tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 over (name, dtype, shape, little-endian bytes) of each tensor, sorted by name."""
    hasher = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        hasher.update(canonical_json([name, str(tensor.dtype).removeprefix("torch."), list(tensor.shape)]))
        hasher.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return hasher.hexdigest()


def _refuse_not_finite(checkpoint: Checkpoint) -> None:
    """Raise TrainingError for a value that is not finite: a step may overflow though its gradient was finite."""
    tensors = {**checkpoint.parameters, **checkpoint.optimizer}
    names = [name for name, tensor in sorted(tensors.items()) if not bool(torch.isfinite(tensor).all())]
    if names:
        found = f"{len(names)} tensors hold values that are not finite, {names[0]} first"
        remedy = "Nothing was saved. Resume the last checkpoint with a lower learning rate."
        raise TrainingError(f"step {checkpoint.step}", found, "finite numbers", remedy)


def _write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write and sync one file. Raises OSError: the library has its own error for a full disk."""
    try:
        save_file(tensors, str(path))
    except SafetensorError as error:
        raise OSError(errno.EIO, str(error), str(path)) from error
    sync(path)


def _part_of(name: str, tensor: Tensor) -> str:
    if tensor.numel() * tensor.element_size() < SMALL_BYTES:
        return "small"
    parts = name.rpartition("/")[2].split(".")
    return ".".join(parts[:2]) if parts[0] == "layers" else parts[0]


def _share(store: Store, before_id: str, folder: Path) -> None:
    """Replace files that equal those of the previous checkpoint by links to them, if those are sound."""
    before = store.locate(before_id)
    entries = {entry.name: entry.sha256 for entry in read_manifest(before).files} if before else {}
    for path in sorted(folder.iterdir()):
        sha256 = entries.get(path.name)
        if (
            before
            and sha256
            and (before / path.name).is_file()
            and sha256 == file_sha256(path) == file_sha256(before / path.name)
        ):
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
        raise TrainingError(subject, f"it cannot be read as tensors ({error})", "safetensors", OTHER) from error
