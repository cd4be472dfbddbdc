"""Certificate of a run: two hash chains, a link a step. Two runs are the same if their certificates are the same.

    data_n     sha256(data_(n-1) | digest of the step's batch)                       equal on any hardware
    numbers_n  sha256(numbers_(n-1) | bits of the loss [| digests of the state])     the state every `certify_every` steps

The history keeps the input of each link, so that two runs that differ can be compared step by step: 37 bytes a step, and for each
recorded state 40 bytes and 4 bytes a tensor. It is part of the checkpoint, and is verified against the chains on loading.
"""

import hashlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from kernels.tensor_digest import tensor_digest
from pipeline.core.errors import TrainingError
from trainer.data.batch import Batch

DATA_VERSION, NUMBERS_VERSION = 2, 3
"""Versions of what each chain is made of, apart from the formats of checkpoints and snapshots."""
_DATA_START = hashlib.sha256(f"sluice/certificate/data/{DATA_VERSION}".encode()).digest()
_NUMBERS_START = hashlib.sha256(f"sluice/certificate/numbers/{NUMBERS_VERSION}".encode()).digest()
_TENSOR_BYTES = 4


@dataclass(frozen=True)
class StateDigest:
    """Digest of all tensors after a step, and the first bytes of each one's own digest, in the order of their names."""

    step: int
    digest: bytes
    tensors: bytes

    @property
    def link(self) -> bytes:
        """The part of a link that the state is: all that is recorded of it."""
        return self.digest + self.tensors


@dataclass
class History:
    """The input of the chains, one entry a step, skipped steps included."""

    losses: list[float] = field(default_factory=list)
    batches: list[bytes] = field(default_factory=list)
    skipped: list[bool] = field(default_factory=list)
    states: list[StateDigest] = field(default_factory=list)
    data: bytes = _DATA_START
    numbers: bytes = _NUMBERS_START

    @property
    def certificate(self) -> str:
        """`<data>:<numbers>`, each 64 hexadecimal digits."""
        return f"{self.data.hex()}:{self.numbers.hex()}"

    @property
    def num_steps(self) -> int:
        return len(self.losses)

    def certificates(self) -> dict[int, str]:
        """Return the certificate after each step: a checkpoint belongs to this run if it has one of them."""
        return dict(self.copy()._link_again())

    def copy(self) -> "History":
        """Return a copy, which later steps do not change."""
        return replace(self, **{name: list(getattr(self, name)) for name in ("losses", "batches", "skipped", "states")})

    def extend(self, batch: bytes, loss: float, is_skipped: bool, tensors: Mapping[str, Tensor] | None) -> None:
        """Add one step. `loss` is rounded to float32; `tensors` is the state after the step where it is recorded."""
        self.losses.append(float(np.float32(loss)))
        self.batches.append(batch)
        self.skipped.append(is_skipped)
        state = b""
        if tensors is not None:
            self.states.append(describe_state(self.num_steps, tensors))
            state = self.states[-1].link
        self._link(self.num_steps, state)

    def as_tensors(self) -> dict[str, Tensor]:
        """Return the history as a checkpoint stores it."""
        return {
            "losses": torch.tensor(self.losses, dtype=torch.float32),
            "batches": _rows(self.batches, 32),
            "skipped": torch.tensor(self.skipped, dtype=torch.bool),
            "state_steps": torch.tensor([state.step for state in self.states], dtype=torch.int64),
            "state_digests": _rows([state.digest for state in self.states], 32),
            "state_tensors": _rows([state.tensors for state in self.states]),
        }

    @classmethod
    def of_tensors(cls, tensors: Mapping[str, Tensor], certificate: str) -> "History":
        """Read what `as_tensors` wrote. Raises TrainingError unless the chains made of it end in `certificate`."""
        try:
            columns = {name: tensors[name].numpy() for name in cls().as_tensors()}
            steps, digests, prefixes = (columns[f"state_{name}"] for name in ("steps", "digests", "tensors"))
            states = [
                StateDigest(int(step), bytes(digest), bytes(prefix))
                for step, digest, prefix in zip(steps, digests, prefixes, strict=True)
            ]
            losses = [float(loss) for loss in columns["losses"]]
            skipped = [bool(flag) for flag in columns["skipped"]]
            history = cls(losses, [bytes(row) for row in columns["batches"]], skipped, states)
            list(history._link_again())
            recorded = [state.step for state in states]
            is_whole = len(losses) == len(skipped) == len(history.batches)
            is_whole &= recorded == sorted(set(recorded) & set(range(1, history.num_steps + 1)))
        except (KeyError, ValueError, IndexError) as error:
            raise TrainingError("checkpoint's history", f"it is incomplete ({error})", "one entry a step") from error
        if not is_whole or history.certificate != certificate:
            raise TrainingError("checkpoint's history", "its chains do not end in its certificate", certificate)
        return history

    def _link_again(self) -> Iterator[tuple[int, str]]:
        """Compute both chains from their start, and yield each step with its certificate."""
        recorded = {state.step: state.link for state in self.states}
        self.data, self.numbers = _DATA_START, _NUMBERS_START
        for step in range(1, self.num_steps + 1):
            self._link(step, recorded.get(step, b""))
            yield step, self.certificate

    def _link(self, step: int, state: bytes) -> None:
        loss = struct.pack("<f", self.losses[step - 1])
        flag = b"\1" if self.skipped[step - 1] else b"\0"
        self.data = hashlib.sha256(self.data + self.batches[step - 1]).digest()
        self.numbers = hashlib.sha256(self.numbers + loss + flag + state).digest()


def digest_batch(batch: Batch) -> bytes:
    """Return the SHA-256 of a batch and its position: ids, targets, mask, documents and any structure."""
    hasher = hashlib.sha256(struct.pack("<q", batch.position))
    for array in batch.arrays:
        hasher.update(f"{array.dtype.str}{array.shape}".encode())
        hasher.update(np.ascontiguousarray(array).data)
    return hasher.digest()


def digest_tensor(name: str, tensor: Tensor) -> bytes:
    """Return the SHA-256 over name, dtype, shape and the digest of the bytes, which is made where the tensor is."""
    hasher = hashlib.sha256(f"{name}\0{str(tensor.dtype).removeprefix('torch.')}\0{list(tensor.shape)}\0".encode())
    hasher.update(struct.pack("<Q", tensor_digest(tensor)))
    return hasher.digest()


def describe_state(step: int, tensors: Mapping[str, Tensor]) -> StateDigest:
    """Return the digests of the tensors after a step."""
    digests = [digest_tensor(name, tensors[name]) for name in sorted(tensors)]
    prefixes = b"".join(digest[:_TENSOR_BYTES] for digest in digests)
    return StateDigest(step, hashlib.sha256(b"".join(digests)).digest(), prefixes)


def differing_tensors(first: StateDigest, second: StateDigest, names: Sequence[str]) -> list[str]:
    """Return the names, in order, of the tensors that differ between two states."""
    pieces = [slice(at, at + _TENSOR_BYTES) for at in range(0, _TENSOR_BYTES * len(names), _TENSOR_BYTES)]
    named = zip(sorted(names), pieces, strict=True)
    return [name for name, piece in named if first.tensors[piece] != second.tensors[piece]]


def _rows(rows: Sequence[bytes], width: int = 0) -> Tensor:
    width = len(rows[0]) if rows else width
    return torch.tensor(list(b"".join(rows)), dtype=torch.uint8).reshape(len(rows), width)
