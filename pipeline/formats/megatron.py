"""Documents as a Megatron-LM dataset: `PREFIX.bin` holds the ids, `PREFIX.idx` the place of each document.

The layout is that of `megatron/core/datasets/indexed_dataset.py`, version 1. Each document is one sequence and ends with
EOS, as Megatron's own preprocessing appends it. Ids are uint16, which Megatron takes for fewer than 65,500 entries.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipeline.core.errors import StageError

Ids = npt.NDArray[np.uint16]

_MAGIC = b"MMIDIDX\x00\x00"
_VERSION = 1
_UINT16 = 8
_ID_BYTES = 2


def write_megatron(prefix: Path, documents: Iterable[Ids], eos: int) -> int:
    """Write the documents one by one, so that only their lengths are held in memory; returns the number of tokens.

    The index is written last: without it there is no dataset.
    """
    end = np.array([eos], dtype="<u2").tobytes()
    lengths: list[int] = []
    with _file(prefix, "bin").open("wb") as stream:
        for ids in documents:
            stream.write(ids.astype("<u2", copy=False).tobytes() + end)
            lengths.append(len(ids) + 1)
    _file(prefix, "idx").write_bytes(index_bytes(lengths))
    return sum(lengths)


def index_bytes(lengths: Sequence[int]) -> bytes:
    """Build the index of sequences of these lengths in tokens, one sequence a document. Pointers are bytes, in 64 bits."""
    lengths_N = np.array(lengths, dtype=np.int64)
    pointers_N = (np.cumsum(lengths_N) - lengths_N) * _ID_BYTES
    head = struct.pack("<QBQQ", _VERSION, _UINT16, len(lengths), len(lengths) + 1)
    documents = np.arange(len(lengths) + 1, dtype="<i8")
    columns = (lengths_N.astype("<i4"), pointers_N.astype("<i8"), documents)
    return _MAGIC + head + b"".join(column.tobytes() for column in columns)


def read_megatron(prefix: Path) -> Iterator[Ids]:
    """Iterate over the sequences of a dataset, EOS included, as the index lists them. Shares no code with the writer.

    Raises StageError if the files are not a uint16 dataset, or one is too short for the other.
    """
    index, tokens = _file(prefix, "idx").read_bytes(), np.fromfile(_file(prefix, "bin"), dtype="<u2")
    if len(index) < 34 or index[:9] != b"MMIDIDX\0\0":
        raise StageError(f"{prefix}.idx", f"it begins with {index[:9]!r}", "a Megatron index")
    version, code, num_sequences, num_documents = struct.unpack_from("<QBQQ", index, 9)
    num_bytes = 34 + 12 * num_sequences + 8 * num_documents
    if (version, code, len(index)) != (1, 8, num_bytes):
        found = f"version {version}, type {code}, {len(index)} bytes"
        raise StageError(f"{prefix}.idx", found, f"version 1, type 8 (uint16), {num_bytes} bytes")
    lengths = np.frombuffer(index, "<i4", num_sequences, 34)
    pointers = np.frombuffer(index, "<i8", num_sequences, 34 + 4 * num_sequences)
    for pointer, length in zip(pointers.tolist(), lengths.tolist(), strict=True):
        if pointer % 2 or pointer // 2 + length > len(tokens):
            raise StageError(f"{prefix}.bin", f"it has {2 * len(tokens)} bytes", f"{length} ids at byte {pointer}")
        yield tokens[pointer // 2 : pointer // 2 + length]


def count_documents_that_differ(prefix: Path, documents: Sequence[Ids], eos: int) -> int:
    """Read a dataset back: the number of documents that are missing, extra, or not their ids followed by EOS."""
    found = list(read_megatron(prefix))
    pairs = zip(found, documents, strict=False)
    differing = sum(not np.array_equal(sequence, np.append(ids, eos)) for sequence, ids in pairs)
    return differing + abs(len(found) - len(documents))


def _file(prefix: Path, suffix: str) -> Path:
    # Not `with_suffix`: a prefix may hold dots of its own.
    return prefix.parent / f"{prefix.name}.{suffix}"
