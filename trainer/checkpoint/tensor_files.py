"""TensorFiles: the files of a checkpoint's tensors, by name alone: which tensor is in which, and which rank writes or reads which.

    parameters-<part>.safetensors, optimizer-<part>.safetensors    a file a layer, the embedding, the head, all small tensors

They are the same for any number of ranks: ranks divide the files, and cut none. No pickle is ever loaded.
"""

import errno
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from pipeline.core.durable import sync
from pipeline.core.errors import TrainingError
from pipeline.core.params import digest
from pipeline.store.objects import StoredObject
from trainer.checkpoint.stored_state import OTHER
from trainer.distributed.ranks import Ranks
from trainer.distributed.shards import gathered_by, is_sharded

PARAMETERS, OPTIMIZER = "parameters", "optimizer"
SMALL_BYTES = 4096
"""Smaller tensors share one file: step counters and router biases change at each step, the file of a frozen layer must not."""


class TensorDescription(NamedTuple):
    """Description of a tensor, of which digests are made: `sha256` is that of its little-endian bytes."""

    dtype: str
    shape: tuple[int, ...]
    sha256: str


def tensor_file(kind: str, name: str, tensor: Tensor) -> str:
    """Return the name of the file that holds a tensor."""
    return f"{kind}-{_part_of(name, tensor)}.safetensors"


def divide(sizes: Mapping[str, int], num_ranks: int) -> dict[str, int]:
    """Return the rank of each file: each in turn, the largest first, goes to the rank with the fewest bytes so far."""
    loads, owners = [0] * num_ranks, {}
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        owners[name] = loads.index(min(loads))
        loads[owners[name]] += sizes[name]
    return owners


def owners_of(tensors: Mapping[str, Mapping[str, Tensor]], num_ranks: int) -> dict[str, dict[str, int]]:
    """Return for the tensors of each kind, by name, the rank that writes them: those of a file have the same."""
    sizes: dict[str, int] = {}
    for kind, name, tensor in _each(tensors):
        place = tensor_file(kind, name, tensor)
        sizes[place] = sizes.get(place, 0) + tensor.numel() * tensor.element_size()
    ranks, found = divide(sizes, num_ranks), {kind: dict[str, int]() for kind in tensors}
    for kind, name, tensor in _each(tensors):
        found[kind][name] = ranks[tensor_file(kind, name, tensor)]
    return found


def share_of(tensors: Mapping[str, Mapping[str, Tensor]], ranks: Ranks) -> dict[str, dict[str, Tensor]]:
    """Return the tensors of each kind that this rank writes, whole and in host memory. All ranks call this at the same time."""
    owners, found = owners_of(tensors, ranks.count), {kind: dict[str, Tensor]() for kind in tensors}
    for kind, name, tensor in _each(tensors):
        whole = gathered_by(owners[kind][name], tensor.detach())
        if whole is not None:
            found[kind][name] = whole.to("cpu", copy=not is_sharded(tensor))
    return found


def digests_of(tensors: Mapping[str, Mapping[str, Tensor]], ranks: Ranks) -> dict[str, str]:
    """Return the digest of the tensors of each kind, each tensor read by one rank. All ranks call this at the same time."""
    owners, found = owners_of(tensors, ranks.count), {kind: dict[str, TensorDescription]() for kind in tensors}
    for kind, name, tensor in _each(tensors):
        whole = gathered_by(owners[kind][name], tensor.detach())
        if whole is not None:
            found[kind][name] = describe_tensor(whole)
    return digests_of_descriptions(ranks.all_gather(found))


def digests_of_descriptions(by_rank: Iterable[Mapping[str, Mapping[str, TensorDescription]]]) -> dict[str, str]:
    """Return the digest of the tensors of each kind, of which each rank describes some."""
    found: dict[str, dict[str, TensorDescription]] = {}
    for described in by_rank:
        for kind, tensors in described.items():
            found.setdefault(kind, {}).update(tensors)
    return {kind: _digest(tensors) for kind, tensors in found.items()}


def digest_tensors(tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 over name, dtype, shape and the SHA-256 of the little-endian bytes of each tensor, sorted by name."""
    return _digest({name: describe_tensor(tensors[name]) for name in tensors})


def describe_tensor(tensor: Tensor) -> TensorDescription:
    """Describe one tensor."""
    own = tensor.detach().cpu().contiguous()
    sha256 = hashlib.sha256(own.reshape(-1).view(torch.uint8).numpy()).hexdigest()
    return TensorDescription(str(own.dtype).removeprefix("torch."), tuple(own.shape), sha256)


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write and sync one file. Raises OSError: the library has its own error for a full disk."""
    try:
        save_file({name: tensors[name].detach().cpu().contiguous() for name in sorted(tensors)}, str(path))
    except SafetensorError as error:
        raise OSError(errno.EIO, str(error), str(path)) from error
    sync(path)


def read_tensors(stored: StoredObject, name: str) -> dict[str, Tensor]:
    """Read one verified file. Raises DamagedError, or TrainingError for one that holds something else."""
    try:
        return load_file(str(stored.file(name)))
    except SafetensorError as error:
        subject = f"file {name} of checkpoint {stored.object_id[:12]}"
        raise TrainingError(subject, f"it cannot be read as tensors ({error})", "safetensors", OTHER) from error


def _each(tensors: Mapping[str, Mapping[str, Tensor]]) -> Iterable[tuple[str, str, Tensor]]:
    """Iterate over tensors in the order in which every rank takes them."""
    return ((kind, name, tensors[kind][name]) for kind in sorted(tensors) for name in sorted(tensors[kind]))


def _digest(tensors: Mapping[str, TensorDescription]) -> str:
    return digest([[name, *tensors[name]] for name in sorted(tensors)])


def _part_of(name: str, tensor: Tensor) -> str:
    if tensor.numel() * tensor.element_size() < SMALL_BYTES:
        return "small"
    parts = name.rpartition("/")[2].split(".")
    return ".".join(parts[:2]) if parts[0] == "layers" else parts[0]
