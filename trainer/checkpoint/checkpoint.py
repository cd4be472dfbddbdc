"""Checkpoint: an object of the store, so content-addressed and written whole or not at all; safetensors and JSON only.

    parameters-<part>.safetensors, optimizer-<part>.safetensors    as `trainer.checkpoint.tensor_files` divides the tensors
    history.safetensors                                            what the certificate's chains were made of
    state.json                                                     everything else that later steps depend on

A file that is equal to that of the previous checkpoint is stored once: the new one is a hard link. The id depends on no run name,
no clock and no number of ranks: a run that was stopped and resumed ends in the same id as one that was not. Sharded ranks divide
the files: each writes and reads its own, and tells the others the digests. The first one names the whole, when all are stored.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from pipeline.core.digests import file_sha256
from pipeline.core.durable import write_synced
from pipeline.core.errors import TrainingError
from pipeline.core.params import canonical_json
from pipeline.store.objects import FileEntry, Manifest, StoredObject, describe_file, read_manifest
from pipeline.store.store import Store
from pipeline.store.store_layout import MANIFEST
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
from trainer.checkpoint.tensor_files import (
    OPTIMIZER,
    PARAMETERS,
    TensorDescription,
    describe_tensor,
    digests_of_descriptions,
    divide,
    read_tensors,
    tensor_file,
    write_tensors,
)
from trainer.distributed.ranks import Ranks
from trainer.distributed.shards import copy_from

_ONE_RANK = Ranks()


@dataclass(frozen=True)
class Checkpoint(TrainingPlace):
    """A training after `step` steps, its tensors in host memory. To add a field of state.json, declare it in `TrainingPlace`.

    Of sharded ranks each holds some of the tensors, whole; `owners` then names for all of a kind the rank that holds each.
    """

    parameters: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    history: History
    owners: Mapping[str, Mapping[str, int]] = field(default_factory=dict, kw_only=True)

    def state(self, digests: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the content of state.json; `digests` are those of the tensors of each kind, where ranks divide them."""
        own = digests or digests_of_descriptions([self.described()])
        return {
            "format_version": FORMAT_VERSION,
            **{name: getattr(self, name) for name in PLAIN_FIELDS},
            "certificate": self.history.certificate,
            **{f"{kind}_sha256": own[kind] for kind in (PARAMETERS, OPTIMIZER)},
        }

    def described(self) -> dict[str, dict[str, TensorDescription]]:
        """Describe the tensors of each kind that are held here."""
        return {
            kind: {name: describe_tensor(tensor) for name, tensor in sorted(getattr(self, kind).items())}
            for kind in (PARAMETERS, OPTIMIZER)
        }


class _RankFiles(NamedTuple):
    """Files that a rank has written of a checkpoint, or the tensors for which it wrote none."""

    entries: Sequence[FileEntry] = ()
    described: Mapping[str, Mapping[str, TensorDescription]] = {}
    not_finite: Sequence[str] = ()


def save(
    store: Store, scratch: Path, checkpoint: Checkpoint, before_id: str | None = None, ranks: Ranks = _ONE_RANK
) -> str:
    """Write a checkpoint into the store and return its id. Files equal to those of `before_id` share its bytes.

    Sharded `ranks` call this at the same time, each with its tensors and a folder of its own, and all return the id.
    Raises TrainingError for values that are not finite: nothing is written.
    """
    folder = scratch / f"step-{checkpoint.step}"
    written = ranks.all_of(lambda: _write(store, checkpoint, folder, before_id))
    _refuse_not_finite(checkpoint.step, sorted({name for each in written for name in each.not_finite}))
    manifest, place = ranks.first(lambda: _complete(store, checkpoint, folder, written))
    ranks.all_of(lambda: store.storage.hand_over(folder, manifest.object_id, place) if ranks.rank else None)
    ranks.first(lambda: store.adopt(folder, manifest))
    return manifest.object_id


def load(store: Store, checkpoint_id: str, ranks: Ranks = _ONE_RANK) -> Checkpoint:
    """Read and verify a checkpoint; of several `ranks`, which call this at the same time, each reads its share.

    Raises MissingError, DamagedError, or TrainingError if the object is not a checkpoint: on every rank what one has found.
    """
    stored = open_stored(store, checkpoint_id)
    state = read_state(stored)
    subject = f"checkpoint {checkpoint_id[:12]}"
    tensors = {kind: dict[str, Tensor]() for kind in (PARAMETERS, OPTIMIZER)}
    described = ranks.all_of(lambda: _read(stored, tensors, ranks))
    found = digests_of_descriptions(described)
    for kind in tensors:
        if found.get(kind) != (expected := state[f"{kind}_sha256"]):
            digest = f"{found.get(kind)}"[:12]
            raise TrainingError(subject, f"its tensors have {kind}_sha256 {digest}", f"{expected[:12]}", OTHER)
    history = History.of_tensors(read_tensors(stored, HISTORY_FILE), state["certificate"])
    if history.num_steps != state["step"]:
        raise TrainingError(subject, f"its history has {history.num_steps} steps", f"{state['step']}", OTHER)
    stored_fields = {name: state[name] for name in PLAIN_FIELDS}
    owners = {
        kind: {name: rank for rank, each in enumerate(described) for name in each[kind]}
        for kind in (tensors if ranks.count > 1 else ())
    }
    return Checkpoint(**stored_fields, **tensors, history=history, owners=owners)


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Return the optimizer's state by parameter name: `exp_avg/<name>`, `exp_avg_sq/<name>`, `step/<name>`, `momentum/<name>`."""
    named = sorted(model.named_parameters())
    return {
        f"{key}/{name}": value for name, each in named for key, value in sorted(optimizer.state.get(each, {}).items())
    }


def restore_model(model: nn.Module, tensors: Mapping[str, Tensor], owners: Mapping[str, int] | None = None) -> None:
    """Load whole tensors into a model, sharded or not; with `owners` each comes from the rank that holds it.

    Raises TrainingError unless they are those of the model.
    """
    _copy_all(tensors, model.state_dict(), owners, ("checkpoint's parameters", "those of this model"))


def restore_optimizer(
    optimizer: torch.optim.Optimizer,
    model: nn.Module,
    tensors: Mapping[str, Tensor],
    owners: Mapping[str, int] | None = None,
) -> None:
    """Load the state that `optimizer_tensors` returned. Raises TrainingError where an entry is missing or left over."""
    own = optimizer_tensors(optimizer, model)
    _copy_all(tensors, own, owners, ("optimizer state", "one for each trained parameter"))


def _copy_all(
    tensors: Mapping[str, Tensor],
    targets: Mapping[str, Tensor],
    owners: Mapping[str, int] | None,
    subject_and_expected: tuple[str, str],
) -> None:
    """Copy tensors into their targets. Raises TrainingError, before the first, for other names, shapes or types."""
    subject, expected = subject_and_expected
    names = owners or tensors
    if names.keys() != targets.keys():
        found = f"entries differ: {sorted(names.keys() ^ targets.keys())}"
        raise TrainingError(subject, found, expected)
    for name, value in sorted(tensors.items()):
        if (value.shape, value.dtype) != ((own := targets[name]).shape, own.dtype):
            found = f"{name} is {value.dtype} {list(value.shape)}"
            raise TrainingError(subject, found, f"{own.dtype} {list(own.shape)}")
    with torch.no_grad():
        for name in sorted(targets):
            copy_from(owners[name] if owners else None, tensors.get(name), targets[name])


def _write(store: Store, checkpoint: Checkpoint, folder: Path, before_id: str | None) -> _RankFiles:
    """Write the files whose tensors are held here."""
    if names := _not_finite(checkpoint):
        return _RankFiles(not_finite=names)
    folder.mkdir(parents=True)
    files: dict[str, dict[str, Tensor]] = {}
    for kind in (PARAMETERS, OPTIMIZER):
        for name, tensor in getattr(checkpoint, kind).items():
            files.setdefault(tensor_file(kind, name, tensor), {})[name] = tensor
    for place, content in sorted(files.items()):
        write_tensors(folder / place, content)
    if before_id is not None:
        _share(store, before_id, folder)
    return _RankFiles([describe_file(folder / place) for place in sorted(files)], checkpoint.described())


def _complete(
    store: Store, checkpoint: Checkpoint, folder: Path, written: Sequence[_RankFiles]
) -> tuple[Manifest, str]:
    """Write what belongs to all tensors, and return the manifest and the folder, as a place in the store."""
    write_tensors(folder / HISTORY_FILE, checkpoint.history.as_tensors())
    digests = digests_of_descriptions(each.described for each in written)
    write_synced(folder / STATE, canonical_json(checkpoint.state(digests)))
    own = [describe_file(folder / name) for name in (HISTORY_FILE, STATE)]
    entries = sorted([*own, *(entry for each in written for entry in each.entries)], key=lambda entry: entry.name)
    inputs = dict(sorted(checkpoint.snapshots.items()))
    manifest = Manifest(CHECKPOINT_KIND, {"step": checkpoint.step}, inputs, tuple(entries))
    store.prepare()
    write_synced(folder / MANIFEST, canonical_json(manifest.as_json()))
    return manifest, folder.relative_to(store.root).as_posix()


def _read(stored: StoredObject, tensors: dict[str, dict[str, Tensor]], ranks: Ranks) -> Any:
    """Read the files of this rank into `tensors`, by kind and name, and describe them."""
    files = {entry.name: entry.num_bytes for entry in stored.manifest.files}
    kinds = {name: kind for name in files for kind in tensors if name.startswith(f"{kind}-")}
    owners = divide({name: files[name] for name in kinds}, ranks.count)
    for name, kind in kinds.items():
        if owners[name] == ranks.rank:
            tensors[kind] |= read_tensors(stored, name)
    return {kind: {name: describe_tensor(each) for name, each in found.items()} for kind, found in tensors.items()}


def _not_finite(checkpoint: Checkpoint) -> list[str]:
    """Return the names of tensors that hold a value that is not finite."""
    tensors = {**checkpoint.parameters, **checkpoint.optimizer}
    return [name for name, tensor in sorted(tensors.items()) if not bool(torch.isfinite(tensor).all())]


def _refuse_not_finite(step: int, names: Sequence[str]) -> None:
    """Raise TrainingError for a value that is not finite: a step may overflow though its gradient was finite."""
    if names:
        found = f"{len(names)} tensors hold values that are not finite, {names[0]} first"
        remedy = "Nothing was saved. Resume the last checkpoint with a lower learning rate."
        raise TrainingError(f"step {step}", found, "finite numbers", remedy)


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
