"""Other loaders over the same ids: `python loader_peers.py NAME ROWS.arrow BATCH_ROWS` prints tokens a second of processor time.

Imports nothing of ours, so that the peers may live in an environment of their own. Each reads rows in a shuffled order,
in this process, and gives the four arrays of our batches: ids, targets, mask and pieces, found here by one pass of torch.
The best of three epochs counts. What none of them does: infill, mix sources by quota, verify digests, or say of each row
where it came from. A resume differs: datasets and torchdata keep a state and skip, litdata and streaming count samples.
"""

import importlib
import importlib.machinery
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pyarrow as pa
import torch

NUM_ROUNDS = 3
PAD, BOS = 0, 1


def main(name: str, path: Path, batch_rows: int) -> float:
    """Tokens a second of one peer."""
    torch.set_num_threads(1)
    with pa.memory_map(str(path)) as source, tempfile.TemporaryDirectory() as folder:
        column = pa.ipc.open_file(source).read_all()["input_ids"].combine_chunks()
        rows = np.asarray(column.values).reshape(len(column), -1)
        epoch = _PEERS[name](rows, Path(folder), batch_rows)
        return max(_speed(epoch) for _ in range(NUM_ROUNDS))


def _speed(epoch: Callable[[], Iterator[Any]]) -> float:
    started = time.process_time()
    num_tokens = sum(_complete(batch)[0].numel() for batch in epoch())
    return num_tokens / (time.process_time() - started)


def _complete(ids: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the ids and the tensors that a model needs to isolate pieces, computed from where pieces begin."""
    pieces = (ids == BOS).cumsum(1, dtype=torch.int32).masked_fill_(ids == PAD, -1)
    targets = torch.nn.functional.pad(ids[:, 1:], (0, 1), value=PAD)
    mask = torch.nn.functional.pad((pieces[:, :-1] == pieces[:, 1:]) & (pieces[:, 1:] > 0), (0, 1))
    return ids, targets, mask, pieces


def _datasets(rows: np.ndarray, folder: Path, batch_rows: int) -> Callable[[], Iterator[Any]]:
    from datasets import Dataset

    Dataset.from_dict({"input_ids": list(rows.astype(np.int32))}).save_to_disk(str(folder))
    stored = Dataset.load_from_disk(str(folder)).with_format("torch", columns=["input_ids"])
    shuffled = stored.shuffle(seed=1)
    return lambda: (batch["input_ids"].long() for batch in shuffled.iter(batch_rows))


def _torchdata(rows: np.ndarray, folder: Path, batch_rows: int) -> Callable[[], Iterator[Any]]:
    from torchdata.stateful_dataloader import StatefulDataLoader

    np.save(folder / "rows.npy", rows)
    mapped = np.load(folder / "rows.npy", mmap_mode="r")

    class Rows(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return len(mapped)

        def __getitem__(self, index: int) -> Any:
            return torch.from_numpy(mapped[index].astype(np.int64))

    return lambda: iter(StatefulDataLoader(Rows(), batch_size=batch_rows, shuffle=True, num_workers=0))


def _litdata(rows: np.ndarray, folder: Path, batch_rows: int) -> Callable[[], Iterator[Any]]:
    from litdata import StreamingDataLoader, StreamingDataset
    from litdata.streaming.writer import BinaryWriter

    writer = BinaryWriter(str(folder), chunk_bytes="64MB")
    for place, row in enumerate(rows):
        writer[place] = {"input_ids": torch.from_numpy(row.astype(np.int32))}
    writer.done()
    writer.merge(1)
    data = StreamingDataset(str(folder), shuffle=True, seed=1)
    loader = StreamingDataLoader(data, batch_size=batch_rows, num_workers=0)
    return lambda: (batch["input_ids"].long() for batch in loader)


def _streaming(rows: np.ndarray, folder: Path, batch_rows: int) -> Callable[[], Iterator[Any]]:
    _replace_torchvision()
    from streaming import MDSWriter, StreamingDataset

    with MDSWriter(out=str(folder), columns={"input_ids": "ndarray:uint16"}) as writer:
        for row in rows:
            writer.write({"input_ids": row})
    data = StreamingDataset(local=str(folder), shuffle=True, shuffle_seed=1, batch_size=batch_rows)
    collate = lambda samples: torch.from_numpy(np.stack([sample["input_ids"] for sample in samples]).astype(np.int64))  # noqa: E731
    return lambda: iter(torch.utils.data.DataLoader(data, batch_size=batch_rows, collate_fn=collate))


def _replace_torchvision() -> None:
    """Put empty modules in place of a torchvision that does not load.

    streaming imports it for data sets of images, which are not read here. The package index has it for torch's CUDA build
    alone: beside torch's CPU build it raises "operator torchvision::nms does not exist".
    """
    try:
        importlib.import_module("torchvision")
    except (ImportError, RuntimeError):
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        for name in (
            "torchvision",
            "torchvision.datasets",
            "torchvision.transforms",
            "torchvision.transforms.functional",
        ):
            sys.modules[name] = MagicMock(__spec__=importlib.machinery.ModuleSpec(name, None), __path__=[])
        sys.modules["torchvision.datasets"].VisionDataset = type("VisionDataset", (), {})  # type: ignore[attr-defined]


_PEERS = {
    "hugging-face-datasets": _datasets,
    "torchdata": _torchdata,
    "litdata": _litdata,
    "mosaicml-streaming": _streaming,
}


if __name__ == "__main__":
    print(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
