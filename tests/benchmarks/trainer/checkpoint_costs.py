"""Costs of a checkpoint: the delay of a step, its bytes, what two share; of a state's digest, and of strict determinism."""

import hashlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from kernels.tensor_digest import tensor_digest
from pipeline.store.store import Store
from tests.benchmarks.figure import Figure
from tests.conftest import build_tiny
from trainer.checkpoint.retention import RetentionPolicy, list_checkpoints
from trainer.checkpoint.saver import Saver
from trainer.config.training_config import training_recipe
from trainer.train.session import RunInputs
from trainer.train.training_state import Training

NUM_SAVES = 5
NUM_DIGESTED = 2**24
FLOAT_BYTES = 4


def save_stall() -> list[Figure]:
    """Measure the time that a step waits for a save, against waiting until the bytes are on disk."""
    with made_training() as (training, store):
        with store.writer("runs/stall", "a benchmark") as scratch:
            saver = Saver(store, scratch, "stall", RetentionPolicy(), print)
            stalls, whole = [], []
            for _ in range(NUM_SAVES):
                training.step(training.loader.batch_at(training.position, training.config.batch_rows))
                started = time.monotonic()
                saver.save(training.checkpoint())
                stalls.append(time.monotonic() - started)
                saver.wait()
                whole.append(time.monotonic() - started)
        stall, wait = (1000 * statistics.median(times) for times in (stalls, whole))
    peer = "the whole save, waited for, ms"
    return [
        Figure(
            "save-stall",
            round(stall, 2),
            "ms",
            "< half",
            stall < wait / 2,
            peer,
            round(wait, 2),
            round(stall / wait, 3),
        )
    ]


def state_digest() -> list[Figure]:
    """Digest a large tensor as a certificate does, on one core, against a SHA-256 of its bytes."""
    values = torch.randn(NUM_DIGESTED)
    ours, peer = (
        min(_cpu_seconds(make) for _ in range(NUM_SAVES))
        for make in (lambda: tensor_digest(values), lambda: hashlib.sha256(values.numpy().data).digest())
    )
    rates = [round(values.nbytes / seconds / 1e9, 2) for seconds in (ours, peer)]
    ratio = round(rates[0] / rates[1], 2)
    return [Figure("state-digest", rates[0], "GB/s, one core", ">= 1 x", ratio >= 1, "SHA-256, GB/s", rates[1], ratio)]


def _cpu_seconds(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


def checkpoint_size() -> list[Figure]:
    """Bytes of a checkpoint over the least: each parameter and its two moments once."""
    with made_training() as (training, store):
        _save(training, store)
        (entry,) = list_checkpoints(store)
        least = 3 * FLOAT_BYTES * sum(parameter.numel() for parameter in training.model.parameters())
    ratio = entry.num_bytes / least
    peer = "parameters and two moments in float32, bytes"
    return [Figure("checkpoint-size", entry.num_bytes, "bytes", "<= 1.1 x", ratio <= 1.1, peer, least, round(ratio, 3))]


def checkpoint_sharing() -> list[Figure]:
    """The share of a second checkpoint that the first one holds already, when one layer of four is trained and when all are."""
    figures = []
    for name, is_frozen in (("one layer of four trained", True), ("all trained", False)):
        with made_training() as (training, store):
            for parameter_name, parameter in training.model.named_parameters():
                parameter.requires_grad_(not is_frozen or parameter_name.startswith("layers.3."))
            for group in training.optimizer.param_groups if is_frozen else ():
                group["weight_decay"] = 0.0
            for _ in range(2):
                _save(training, store)
            entries = list_checkpoints(store)
            shared = 1 - entries[1].num_own_bytes / entries[1].num_bytes
        reach = "> 0.5" if is_frozen else "none claimed"
        figures.append(
            Figure(f"checkpoint-sharing, {name}", round(shared, 3), "fraction", reach, not is_frozen or shared > 0.5)
        )
    return figures


def determinism_cost() -> list[Figure]:
    """Say why this page has no figure on a CPU: a difference between equal kernels would be noise."""
    why = "not measured on a CPU: both run the same kernels; `make bench-gpu` measures it"
    return [Figure("determinism-cost, CPU", None, "fraction of a step", "none claimed", None, why)]


@contextmanager
def made_training() -> Iterator[tuple[Training, Store]]:
    """Build the tiny corpus in a store that is removed afterwards, and begin a training of it."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store")
        snapshot_id = _built(store)
        yield Training(store, RunInputs(snapshot_id, training_recipe("tiny"), 42)), store


def _save(training: Training, store: Store) -> None:
    training.step(training.loader.batch_at(training.position, training.config.batch_rows))
    with store.writer("runs/sharing", "a benchmark") as scratch:
        saver = Saver(store, scratch, "sharing", RetentionPolicy(), print)
        saver.save(training.checkpoint())
        saver.wait()


def _built(store: Store) -> str:
    build_tiny(store.root)
    return store.ref("tiny", "candidate") or ""
