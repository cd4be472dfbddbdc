"""One sitting of a training: from where the run stands to a step, saving on the way. The same run, whoever interrupts it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pipeline.errors import TrainingError
from pipeline.params import digest
from pipeline.snapshot import Snapshot, open_snapshot
from pipeline.store import Store
from trainer import checkpoint as checkpoints
from trainer.batches import Batches
from trainer.checkpoint import Checkpoint
from trainer.determinism import kernel_manifest, make_deterministic
from trainer.journal import Journal
from trainer.loader import Batch, LoaderConfig
from trainer.model.hybrid import HybridModel, LossMetrics, TrainingBatch, count_parameters
from trainer.model.initialization import initialize
from trainer.optimizer import build_optimizer, clip_gradients, learning_rate, set_learning_rate
from trainer.recipes import TrainingConfig
from trainer.sources import open_loader


@dataclass(frozen=True)
class Sitting:
    """What is asked of one sitting. `stop_after` counts steps from the start of the run, not of the sitting."""

    snapshot_id: str
    recipe: str
    config: TrainingConfig
    seed: int
    stop_after: int
    save_every: int
    out: Path
    run: str | None = None
    resume: str | None = None
    num_workers: int = 0
    device: str = "cpu"

    @property
    def identity(self) -> dict[str, Any]:
        """What the numbers depend on: a resume finds it unchanged or is refused."""
        return {"config": self.config.model_dump(mode="json"), "seed": self.seed, "snapshot_id": self.snapshot_id}

    @property
    def run_name(self) -> str:
        """The name given, else one that says what the run is: equal runs share it, so that they find their checkpoints."""
        return self.run or f"{self.recipe}-{digest(self.identity)[:12]}"


class Training:
    """Model, optimiser and position: everything that a step changes."""

    def __init__(self, snapshot: Snapshot, sitting: Sitting) -> None:
        config = sitting.config
        make_deterministic(sitting.seed, config.num_threads)
        self.config = config
        self.device = sitting.device
        self.model = HybridModel(config.model, snapshot.vocabulary["size"])
        initialize(self.model, sitting.seed)
        self.model.to(self.device)
        self.optimizer = build_optimizer(self.model, config.optimizer)
        self.loader = open_loader(snapshot, LoaderConfig(seed=sitting.seed, infilling=config.infilling))
        self.losses: list[Tensor] = []

    @property
    def num_steps(self) -> int:
        return len(self.losses)

    def step(self, batch: Batch) -> dict[str, float]:
        """One optimiser step; returns its metrics."""
        rate = learning_rate(self.num_steps, self.config.optimizer)
        self.optimizer.zero_grad(set_to_none=True)
        loss, metrics = self.model.loss(to_device(batch, self.device))
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own signature
        norm = clip_gradients(self.model.named_parameters(), self.config.optimizer.max_gradient_norm)
        if not bool(torch.isfinite(norm)):
            raise TrainingError(
                f"step {self.num_steps + 1}", f"the gradient's norm is {float(norm)}", "a finite number", _NOT_FINITE
            )
        set_learning_rate(self.optimizer, rate)
        self.optimizer.step()
        self.model.balance_experts(self.config.balance_rate)
        self.losses.append(loss.detach().float().cpu())
        return _metrics(loss, metrics, norm, rate)

    def checkpoint(self, sitting: Sitting) -> Checkpoint:
        """Everything that later steps depend on."""
        return Checkpoint(
            step=self.num_steps,
            identity=sitting.identity,
            loader=self.loader.state_at(self.num_steps * self.config.batch_rows),
            surroundings=kernel_manifest(self.device, self.config.num_threads),
            parameters=self.model.state_dict(),
            optimizer=checkpoints.optimizer_tensors(self.optimizer, self.model),
            losses=torch.stack(self.losses),
        )

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go back to a checkpoint of this very training."""
        self.loader.position_of(checkpoint.loader)
        self.model.load_state_dict(dict(checkpoint.parameters))
        checkpoints.restore_optimizer(self.optimizer, self.model, checkpoint.optimizer)
        self.losses = list(checkpoint.losses)


def train(store: Store, sitting: Sitting) -> dict[str, Any]:
    """Run a sitting and return its result, which is also written to `out/result.json`.

    Raises TrainingError where the run is already past `stop_after`, where the checkpoint is of another configuration, or where a
    loss is not finite: that step is not saved.
    """
    with store.writer(f"runs/{sitting.run_name}", f"training {sitting.run_name}") as scratch:
        found_id, found = _find(store, sitting)
        unchanged = found is not None and found.step == sitting.stop_after
        training = Training(open_snapshot(store, sitting.snapshot_id), sitting)
        if found is not None:
            training.restore(found)
        journal = Journal(sitting.out, training.num_steps, sitting.stop_after)
        journal.say(_first_words(training, sitting, found_id))
        saved_id = found_id if unchanged else _run(training, sitting, journal, store, scratch)
        result = _result(training, sitting, saved_id or "", unchanged)
        journal.finish(result)
        return result


def to_device(batch: Batch, device: str) -> TrainingBatch:
    """A batch as tensors on a device."""
    arrays = (batch.input_ids_BT, batch.target_ids_BT, batch.loss_mask_BT, batch.doc_ids_BT)
    return TrainingBatch(*(torch.from_numpy(array).to(device) for array in arrays))


def _find(store: Store, sitting: Sitting) -> tuple[str | None, Checkpoint | None]:
    found_id = checkpoints.find(store, sitting.run_name, sitting.resume) if sitting.resume else None
    if found_id is None:
        return None, None
    found = checkpoints.load(store, found_id)
    checkpoints.refuse_drift(found.identity, sitting.identity, found_id)
    if found.step > sitting.stop_after:
        raise TrainingError(
            f"run {sitting.run_name}",
            f"it is at step {found.step}",
            f"at most {sitting.stop_after}",
            "Ask for a later step.",
        )
    return found_id, found


def _run(training: Training, sitting: Sitting, journal: Journal, store: Store, scratch: Path) -> str:
    batches = Batches(
        training.loader,
        training.config.batch_rows,
        sitting.num_workers,
        training.num_steps * training.config.batch_rows,
    )
    saved_id = ""
    with _stop_request() as stop:
        for batch in batches:
            metrics = training.step(batch)
            journal.step(training.num_steps, metrics, batch.input_ids_BT.size)
            is_last = training.num_steps >= sitting.stop_after or bool(stop)
            if is_last or training.num_steps % sitting.save_every == 0:
                saved_id = _save(training, sitting, store, scratch)
            if is_last:
                break
    if training.num_steps < sitting.stop_after:
        journal.say(f"stopped by a signal; resumable at step {training.num_steps}")
    return saved_id


def _save(training: Training, sitting: Sitting, store: Store, scratch: Path) -> str:
    saved_id = checkpoints.save(store, scratch, training.checkpoint(sitting))
    run = f"runs/{sitting.run_name}"
    store.move_ref(run, "latest", store.ref(run, "latest"), saved_id, f"step {training.num_steps}")
    return saved_id


@contextmanager
def _stop_request() -> Iterator[list[int]]:
    """A list that a SIGTERM makes true: the step in hand is finished and saved first."""
    received: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)


def _first_words(training: Training, sitting: Sitting, found_id: str | None) -> str:
    model = f"{count_parameters(training.model):,} parameters, {training.loader.num_rows:,} rows"
    where = f"resumed at step {training.num_steps} from {found_id[:12]}" if found_id else "from the start"
    return f"run {sitting.run_name} on {training.device}: {model}, {where}"


def _metrics(loss: Tensor, parts: LossMetrics, norm: Tensor, rate: float) -> dict[str, float]:
    return {
        "loss": float(loss.detach()),
        "cross_entropy": float(parts.cross_entropy_sum) / max(1, int(parts.num_trained_tokens)),
        "num_trained_tokens": int(parts.num_trained_tokens),
        "router_z_loss": float(parts.router_z_loss),
        "gradient_norm": float(norm),
        "learning_rate": rate,
    }


def _result(training: Training, sitting: Sitting, checkpoint_id: str, unchanged: bool) -> dict[str, Any]:
    losses = [float(loss) for loss in training.losses]
    return {
        "run": sitting.run_name,
        "recipe": sitting.recipe,
        "steps": training.num_steps,
        "losses": losses,
        "final_loss": losses[-1],
        "parameters_sha256": checkpoints.digest_tensors(training.model.state_dict()),
        "optimizer_sha256": checkpoints.digest_tensors(
            checkpoints.optimizer_tensors(training.optimizer, training.model)
        ),
        "num_parameters": count_parameters(training.model),
        "snapshot_id": sitting.snapshot_id,
        "checkpoint_id": checkpoint_id,
        "loader": training.loader.state_at(training.num_steps * training.config.batch_rows),
        "seeds": {"global": sitting.seed, "weights": sitting.seed, "loader": sitting.seed},
        "versions": kernel_manifest(training.device, training.config.num_threads),
        "unchanged": unchanged,
        "finished": training.num_steps >= sitting.stop_after,
    }


_NOT_FINITE = (
    "Nothing of this step was saved. Resume the last checkpoint with a lower learning rate, or look at the batch."
)
