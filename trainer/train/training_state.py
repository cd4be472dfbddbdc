"""State of a training: model, optimizer, position and history, everything that a step changes; and the step itself."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from itertools import takewhile
from typing import Any

import torch
from torch import Tensor

from pipeline.core.errors import TrainingError
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from trainer.checkpoint import checkpoint as checkpoints
from trainer.checkpoint.batch_positions import change_positions
from trainer.checkpoint.certificate import History, digest_batch
from trainer.checkpoint.checkpoint import Checkpoint
from trainer.checkpoint.environment import describe_environment
from trainer.checkpoint.initial_weights import WeightsSource, fit
from trainer.checkpoint.stored_state import changes_rows
from trainer.checkpoint.tensor_files import OPTIMIZER, PARAMETERS, digests_of, share_of
from trainer.config.choices import CompileMode
from trainer.config.training_config import TrainingConfig
from trainer.data.batch import Batch, check_chronology
from trainer.data.loader import Loader, LoaderConfig
from trainer.distributed.ranks import Ranks
from trainer.distributed.shards import Whole
from trainer.model.attention_backends import plan
from trainer.optim.clipping import clip_gradients
from trainer.optim.optimizer import build_optimizer
from trainer.optim.schedule import learning_rate, set_learning_rate
from trainer.train.build_model import CPU_PLACEMENT, DevicePlacement, build_model
from trainer.train.determinism import make_deterministic, require_device
from trainer.train.follow_ref import EpochEnd, RefFollower
from trainer.train.loss_spike import is_loss_spike
from trainer.train.not_finite import first_not_finite
from trainer.train.run_data import Adoption, RunData
from trainer.train.session import RunInputs
from trainer.train.step import ShareOutOfMemoryError, StepLoss, backward


class Training:
    """The state of a run between two steps, and the step that moves it."""

    def __init__(
        self, store: Store, inputs: RunInputs, placement: DevicePlacement = CPU_PLACEMENT, with_held_out: bool = False
    ) -> None:
        config = inputs.config
        require_device(placement.device)
        make_deterministic(inputs.seed + placement.ranks.rank, config.num_threads, config.deterministic)
        placement.ranks.share_of(config.num_micro_batches)
        self.inputs = inputs
        self.device, self.ranks = placement.device, placement.ranks
        self.writers = placement.ranks if placement.is_sharded else Ranks()
        """The ranks that divide the state among them: of a training that is not sharded each has all of it."""
        snapshot = open_snapshot(store, inputs.snapshot_id)
        self.messages: list[str] = []
        """Messages of the last step, which the loop logs."""
        self.model, self.compilation = build_model(config, snapshot.vocabulary["size"], inputs.seed, placement)
        self.not_finite: str | None = None  # the first such tensor of the last step that had one
        self.optimizer = build_optimizer(self.model, config.optimizer)
        self.run_data = RunData(
            snapshot,
            inputs.mixture,
            LoaderConfig.of_training(config, inputs.seed, change_positions([], config)),
            with_structure=config.model.structure is not None,
            with_held_out=with_held_out,
            selection=inputs.selection,
        )
        self._plan_attention()
        self.history = History()
        self.position = 0
        self.forks: list[dict[str, Any]] = []

    @property
    def config(self) -> TrainingConfig:
        """The configuration in force: after an out-of-memory step, one of smaller micro-batches than the run began with."""
        return self.inputs.config

    @property
    def num_steps(self) -> int:
        return self.history.num_steps

    @property
    def loader(self) -> Loader:
        """The loader of the snapshot that is read now."""
        return self.run_data.loader

    @property
    def last_step(self) -> int | None:
        """The last step for which the sources have rows, or None without an end."""
        end = self.loader.end
        return None if end is None else self.num_steps + (end - self.position) // self.config.batch_rows

    @property
    def num_skipped_steps(self) -> int:
        """The skipped steps in a row that end with the last one."""
        return sum(takewhile(bool, reversed(self.history.skipped)))

    def step(self, batch: Batch) -> dict[str, Any]:
        """Train on a batch and return its metrics. A step with a loss spike is recorded and changes no weight."""
        check_chronology(batch)
        rate = learning_rate(self.num_steps, self.config.optimizer)
        with self.compilation.guarded(self.num_steps + 1) if self.compilation else nullcontext():
            loss = self._backward(batch)
        if self.compilation:
            message = self.compilation.end_step(self.num_steps + 1, list(loss.untouched), self.ranks)
            self.messages += [message] if message else []
        norm = clip_gradients(self.model.named_parameters(), self.config.optimizer.max_gradient_norm)
        is_skipped = is_loss_spike(float(loss.loss), float(norm), self.history, self.config.spike_factor)
        found = self._name_not_finite(batch, loss, norm) if is_skipped else {}
        if not is_skipped:
            set_learning_rate(self.optimizer, rate)
            self.optimizer.step()
        self.model.balance_experts(0.0 if is_skipped else self.config.balance_rate)
        self.optimizer.zero_grad(set_to_none=True)
        self.position = batch.next_position
        is_certified = (self.num_steps + 1) % self.config.certify_every == 0
        tensors = self.tensors() if is_certified else None
        self.history.extend(digest_batch(batch), float(loss.loss), is_skipped, tensors)
        skipped = {"skipped": True} if is_skipped else {}
        by_group = self.run_data.loss_by_group.means_of(batch, loss.cross_entropy_B.tolist(), "cross_entropy")
        return {**loss.metrics, **by_group, "gradient_norm": float(norm), "learning_rate": rate, **skipped, **found}

    def refuse_skipped_steps(self, is_final: bool) -> None:
        """Raise TrainingError if too many steps in a row were skipped, or the final one of a session."""
        num_skipped = self.num_skipped_steps
        if num_skipped > self.config.max_skipped_steps or (num_skipped and is_final):
            found = f"its loss is {self.history.losses[-1]}, and {num_skipped} steps in a row were skipped"
            found += f"; the first tensor that was not finite: {self.not_finite}" if self.not_finite else ""
            expected = f"a finite loss, at most {self.config.spike_factor:g} times the recent median"
            raise TrainingError(f"step {self.num_steps}", found, expected, _LOSS_SPIKE)

    def _name_not_finite(self, batch: Batch, loss: StepLoss, norm: Tensor) -> dict[str, str]:
        """Name the first tensor that is not finite, if the loss or the gradients' norm is not."""
        if bool(torch.isfinite(loss.loss)) and bool(torch.isfinite(norm)):
            return {}
        num_micro_batches, is_compiled = self.config.num_micro_batches, self.compilation is not None
        self.not_finite = first_not_finite(self.model, batch, num_micro_batches, self.device, is_compiled)
        return {"not_finite": self.not_finite} if self.not_finite else {}

    def _backward(self, batch: Batch) -> StepLoss:
        """Compute the gradients of a batch; out of memory, again in halves of its micro-batches."""
        while True:
            try:
                return backward(self.model, batch, self.config.num_micro_batches, self.ranks, self.device)
            except ShareOutOfMemoryError:
                self._halve_micro_batches()

    def _halve_micro_batches(self) -> None:
        """Cut the same data, in the same order, into smaller pieces: the numbers fork here, and that is recorded."""
        before = self.config.micro_batch_rows
        rows = self.config.batch_rows // self.config.num_micro_batches
        if rows % 2:
            found = f"it does not hold a micro-batch of {rows} rows, which cannot be halved"
            raise TrainingError(f"memory of {self.device}", found, "", "Pack shorter rows, or train a smaller model.")
        self.inputs = replace(self.inputs, config=self.config.model_copy(update={"micro_batch_rows": rows // 2}))
        fields = {"config.micro_batch_rows": [before, rows // 2]}
        self.forks.append({"step": self.num_steps, "fields": fields, "reason": "out of memory"})
        self.messages.append(f"step {self.num_steps + 1}: out of memory; again with micro-batches of {rows // 2} rows")
        self.model.balance_experts(0.0)  # which empties the counters
        if self.device.startswith("cuda"):
            torch.cuda.empty_cache()
        if self.compilation:
            self.compilation.restart()

    def end_epoch(self, follower: RefFollower) -> EpochEnd:
        """Adopt the snapshot that is due after the last step, if any."""
        before = self.position - self.config.batch_rows
        end = follower.follow(self.run_data, before, self.position, self.ranks)
        if end.adoption:
            self._plan_attention()
        return end

    def _plan_attention(self) -> None:
        config, head_size = self.config, self.config.model.attention.head_size
        self.model.attention = plan(
            config.attention, head_size, config.dtype, self.device, lambda: self.run_data.max_documents
        )

    def environment(self) -> dict[str, Any]:
        """Describe what the numbers depend on besides data, weights and configuration."""
        config = self.config
        compiled = None if config.compile is CompileMode.OFF else f"{config.compile}, {config.compile_backend}"
        return describe_environment(self.device, config.num_threads, compiled, config.attention)

    def evaluate(self, num_rows: int) -> dict[str, float]:
        """Return held-out metrics. Changes nothing."""
        held_out = self.run_data.held_out
        return held_out.evaluate(self.model, num_rows, self.config.batch_rows, self.device) if held_out else {}

    def parameters(self) -> Mapping[str, Tensor]:
        """Return parameters and buffers. A sharded tensor is gathered when it is looked up, by all ranks alike."""
        return Whole(self.model.state_dict())

    def optimizer_state(self) -> Mapping[str, Tensor]:
        """Return the optimizer's state, likewise."""
        return Whole(checkpoints.optimizer_tensors(self.optimizer, self.model))

    def tensors(self) -> Mapping[str, Tensor]:
        """Return parameters and optimizer state, likewise."""
        state = {f"parameters/{name}": tensor for name, tensor in self.model.state_dict().items()}
        return Whole(state | checkpoints.optimizer_tensors(self.optimizer, self.model))

    def checkpoint(self) -> Checkpoint:
        """Copy everything that later steps depend on into host memory; of a sharded training each rank copies its share."""
        share = share_of(self._state(), self.writers)
        return Checkpoint(
            step=self.num_steps,
            identity=self.inputs.identity,
            loader=self.loader.state_at(self.position),
            environment=self.environment(),
            packing=self.run_data.packing,
            parameters=share[PARAMETERS],
            optimizer=share[OPTIMIZER],
            history=self.history.copy(),
            forks=list(self.forks),
            adoptions=[adoption._asdict() for adoption in self.run_data.adoptions],
        )

    def digests(self) -> dict[str, str]:
        """Return the digests of parameters and optimizer state, which the ranks of a sharded training make together."""
        return digests_of(self._state(), self.writers)

    def _state(self) -> dict[str, Mapping[str, Tensor]]:
        optimizer = checkpoints.optimizer_tensors(self.optimizer, self.model)
        return {PARAMETERS: self.model.state_dict(), OPTIMIZER: optimizer}

    def begin_with(self, weights: WeightsSource) -> None:
        """Replace the drawn values by weights. Raises TrainingError for others than the run's, or if they do not fit."""
        if weights.initial != self.inputs.initial:
            expected = "those that the run's identity names"
            raise TrainingError(
                weights.name, "it holds other weights", expected, "Name the same as at the first start."
            )
        fitted = fit(weights.read(), self.model, self.inputs.seed, weights.name)
        checkpoints.restore_model(self.model, fitted)

    def restore(self, checkpoint: Checkpoint, changes: Mapping[str, list[Any]] | None = None) -> None:
        """Restore a checkpoint of this training, or of one that differs in `changes`, which are recorded."""
        forks = [*checkpoint.forks, *([{"step": checkpoint.step, "fields": dict(changes)}] if changes else [])]
        self.run_data.place_changes(change_positions(forks, self.config))
        has_other_rows = changes_rows(changes or {})
        if has_other_rows:
            self.position = int(checkpoint.loader["position"])
        else:
            self.run_data.restore([Adoption(**adoption) for adoption in checkpoint.adoptions])
            self._plan_attention()
            self._refuse_other_packing(checkpoint)
            self.position = self.loader.position_of(checkpoint.loader)
        owners = checkpoint.owners
        checkpoints.restore_model(self.model, checkpoint.parameters, owners.get(PARAMETERS))
        checkpoints.restore_optimizer(self.optimizer, self.model, checkpoint.optimizer, owners.get(OPTIMIZER))
        self.history = checkpoint.history
        self.forks = forks
        if has_other_rows:
            self.forks[-1]["snapshots"] = sorted(set(checkpoint.snapshots.values()))

    def _refuse_other_packing(self, checkpoint: Checkpoint) -> None:
        """Raise TrainingError where a checkpoint describes other rows than those that its snapshots have."""
        found, own = dict(checkpoint.packing), self.run_data.packing
        if found != own:
            subject = f"checkpoint of step {checkpoint.step}"
            raise TrainingError(subject, f"its rows are {found}", f"those of its snapshot, {own}", _OTHER_ROWS)


_OTHER_ROWS = "It contradicts itself. Resume an earlier one: `python -m trainer checkpoints list` shows them."
_LOSS_SPIKE = (
    "Nothing was saved since they began. Resume the last checkpoint to a later step, start a new run with a lower learning "
    "rate, or inspect the batch."
)
