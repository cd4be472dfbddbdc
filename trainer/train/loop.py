"""One sitting of a training: from where the run stands to a step, saving on the way. The same run, whoever interrupts it."""

import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pipeline.core.errors import StoreError, TrainingError
from pipeline.core.params import digest, flat
from pipeline.store.snapshot import Snapshot, open_snapshot
from pipeline.store.store import Store
from trainer.checkpoint import checkpoint as checkpoints
from trainer.checkpoint.certificate import History, digest_batch
from trainer.checkpoint.checkpoint import Checkpoint
from trainer.checkpoint.resume_rules import judge_drift
from trainer.checkpoint.retention import Keep, is_sound, list_checkpoints
from trainer.checkpoint.saver import Saver
from trainer.compile.cache import record_run
from trainer.config.training import TrainingConfig
from trainer.data.batch import Batch, check_chronology
from trainer.data.loader import Loader, LoaderConfig
from trainer.distributed.ranks import Ranks
from trainer.distributed.shards import Whole
from trainer.model.hybrid import count_parameters
from trainer.optim.clipping import clip_gradients
from trainer.optim.optimizer import build_optimizer
from trainer.optim.schedule import learning_rate, set_learning_rate
from trainer.train.build_model import assemble, compile_words, plan_attention
from trainer.train.determinism import broken_promises, kernel_manifest, make_deterministic, require_device
from trainer.train.evaluation import Evaluation
from trainer.train.follow_ref import Following, Turn, following_of
from trainer.train.metrics import Journal, hold_folder
from trainer.train.not_finite import first_not_finite
from trainer.train.result import result_of
from trainer.train.run_data import Adoption, Reading
from trainer.train.step import MemorySpentError, StepLoss, backward, is_excursion


@dataclass(frozen=True)
class Sitting:
    """What is asked of one sitting. `stop_after` counts steps from the start of the run, not of the sitting."""

    snapshot_id: str
    """What it reads; of a mixture the first. Where `follow` is set, what a new run begins with."""
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
    keep: Keep = field(default_factory=Keep)
    allowed_drift: tuple[str, ...] = ()
    has_telemetry: bool = True
    evaluation: Evaluation = field(default_factory=Evaluation)
    mixture: tuple[tuple[str, float], ...] = ()
    """Snapshot ids with their weights, where several are read."""
    follow: str | None = None
    """`CORPUS/live` or `CORPUS/candidate`, or a checkpoint whose adoptions are repeated."""
    is_sharded: bool = False
    """Whether parameters and optimizer state are spread over the ranks: elastic, the same bits either way."""

    @property
    def identity(self) -> dict[str, Any]:
        """What the numbers depend on: a resume finds it unchanged or is refused."""
        told = {"config": self.config.model_dump(mode="json"), "seed": self.seed, "snapshot_id": self.snapshot_id}
        return told | ({"mixture": dict(self.mixture)} if self.mixture else {})

    @property
    def run_name(self) -> str:
        """The name given, else one that says what the run is: equal runs share it, so that they find their checkpoints."""
        told = {**self.identity, "snapshot_id": f"follow {self.follow}"} if self.follow else self.identity
        return self.run or f"{self.recipe}-{digest(told)[:12]}"


class Training:
    """Model, optimizer, position and history: everything that a step changes."""

    def __init__(self, snapshot: Snapshot, sitting: Sitting, ranks: Ranks = Ranks()) -> None:  # noqa: B008  # frozen
        config = sitting.config
        require_device(sitting.device)
        make_deterministic(sitting.seed + ranks.rank, config.num_threads, config.deterministic)
        ranks.share_of(config.num_micro_batches)
        self.config = config
        self.device = sitting.device
        self.ranks = ranks
        self.is_sharded = sitting.is_sharded
        size = snapshot.vocabulary["size"]
        self.model, self.compilation = assemble(config, size, sitting.seed, ranks, self.device, sitting.is_sharded)
        self.notes: list[str] = []
        self.not_finite: str | None = None  # the first tensor of the last such step
        self.optimizer = build_optimizer(self.model, config.optimizer)
        self.reading = Reading(
            snapshot,
            sitting.mixture,
            LoaderConfig(seed=sitting.seed, infilling=config.infilling),
            with_structure=config.model.structure is not None,
            with_held_out=sitting.evaluation.every is not None,
        )
        self.model.attention = plan_attention(config, self.device, lambda: self.reading.max_documents)
        self.history = History()
        self.position = 0
        self.forks: list[dict[str, Any]] = []

    @property
    def num_steps(self) -> int:
        return self.history.num_steps

    @property
    def loader(self) -> Loader:
        """The loader of the snapshot that is read now."""
        return self.reading.loader

    @property
    def is_inside_excursion(self) -> bool:
        """Whether the last step was skipped."""
        return bool(self.history.skipped) and self.history.skipped[-1]

    def step(self, batch: Batch) -> dict[str, Any]:
        """One optimizer step, or none where its loss is no good; returns its metrics."""
        check_chronology(batch)
        rate = learning_rate(self.num_steps, self.config.optimizer)
        with self.compilation.guarded(self.num_steps + 1) if self.compilation else nullcontext():
            loss = self._backward(batch)
        if self.compilation:
            words = self.compilation.end_step(self.num_steps + 1, list(loss.untouched), self.ranks)
            self.notes += [words] if words else []
        norm = clip_gradients(self.model.named_parameters(), self.config.optimizer.max_gradient_norm)
        is_skipped = is_excursion(float(loss.loss), float(norm), self.history, self.config.spike_factor)
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
        return _metrics(loss, norm, rate, is_skipped) | found

    def _name_not_finite(self, batch: Batch, loss: StepLoss, norm: Tensor) -> dict[str, str]:
        """The first tensor that is not finite, where the loss or the gradients' norm is not; else nothing."""
        if bool(torch.isfinite(loss.loss)) and bool(torch.isfinite(norm)):
            return {}
        self.not_finite = first_not_finite(
            self.model, batch, self.config.num_micro_batches, self.device, is_compiled=self.compilation is not None
        )
        return {"not_finite": self.not_finite} if self.not_finite else {}

    def turn(self, following: Following) -> Turn:
        """Behind a step: adopt the snapshot that is to be adopted there, if any."""
        before = self.position - self.config.batch_rows
        turn = following.turn(self.reading, before, self.position, self.ranks)
        if turn.adoption:
            self.model.attention = plan_attention(self.config, self.device, lambda: self.reading.max_documents)
        return turn

    def _backward(self, batch: Batch) -> StepLoss:
        """The gradients of a batch. Where the memory does not suffice, again in halves of its micro-batches."""
        while True:
            try:
                return backward(self.model, batch, self.config.num_micro_batches, self.ranks, self.device)
            except MemorySpentError:
                self._halve_micro_batches()

    def _halve_micro_batches(self) -> None:
        """The same data in the same order, in smaller pieces: the numbers fork here, and that is recorded."""
        rows = self.config.batch_rows // self.config.num_micro_batches
        if rows % 2:
            found = f"it does not hold a micro-batch of {rows} rows, which cannot be halved"
            raise TrainingError(f"memory of {self.device}", found, "", "Pack shorter rows, or train a smaller model.")
        before, self.config = self.config, self.config.model_copy(update={"micro_batch_rows": rows // 2})
        fields = {"config.micro_batch_rows": [before.micro_batch_rows, rows // 2]}
        self.forks.append({"step": self.num_steps, "fields": fields, "reason": "out of memory"})
        self.notes.append(f"step {self.num_steps + 1}: out of memory; again with micro-batches of {rows // 2} rows")
        self.model.balance_experts(0.0)  # which empties the counters
        if self.device.startswith("cuda"):
            torch.cuda.empty_cache()
        if self.compilation:
            self.compilation.restart()

    def manifest(self) -> dict[str, Any]:
        """What the numbers depend on besides data, weights and configuration."""
        return kernel_manifest(self.device, self.config.num_threads, compile_words(self.config), self.config.attention)

    def evaluate(self, num_rows: int) -> dict[str, float]:
        """Held-out metrics of the model as it is. Changes nothing."""
        held_out = self.reading.held_out
        return held_out.evaluate(self.model, num_rows, self.config.batch_rows, self.device) if held_out else {}

    def parameters(self) -> Mapping[str, Tensor]:
        """Parameters and buffers, where they lie; what is sharded is gathered while it is looked at, by all ranks alike."""
        return Whole(self.model.state_dict())

    def optimizer_state(self) -> Mapping[str, Tensor]:
        """The optimizer's state, likewise."""
        return Whole(checkpoints.optimizer_tensors(self.optimizer, self.model))

    def tensors(self) -> Mapping[str, Tensor]:
        """Parameters and optimizer state, likewise."""
        state = {f"parameters/{name}": tensor for name, tensor in self.model.state_dict().items()}
        return Whole(state | checkpoints.optimizer_tensors(self.optimizer, self.model))

    def checkpoint(self, sitting: Sitting) -> Checkpoint:
        """Everything that later steps depend on, copied into host memory; of a sharded training into that of rank 0."""
        return Checkpoint(
            step=self.num_steps,
            identity=replace(sitting, config=self.config).identity,
            loader=self.loader.state_at(self.position),
            surroundings=self.manifest(),
            packing=self.reading.packing,
            parameters=self._copied(self.parameters()),
            optimizer=self._copied(self.optimizer_state()),
            history=self.history.copy(),
            forks=list(self.forks),
            adoptions=[adoption.as_json() for adoption in self.reading.adoptions],
        )

    def _copied(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Copies in host memory, on the rank that writes them. The others only take part in the gathering."""
        found = {}
        for name, tensor in tensors.items():
            if self.ranks.rank == 0:
                found[name] = tensor.detach().to("cpu", copy=True)
        return found

    def restore(self, checkpoint: Checkpoint, drift: dict[str, list[Any]] | None = None) -> None:
        """Go back to a checkpoint of this training, or of one that differs in `drift`, which is recorded."""
        has_other_data = any(name.partition(".")[0] in ("snapshot_id", "mixture") for name in drift or {})
        if not has_other_data:
            self.reading.restore([Adoption.of(adoption) for adoption in checkpoint.adoptions])
            self.model.attention = plan_attention(self.config, self.device, lambda: self.reading.max_documents)
        self.position = (
            int(checkpoint.loader["position"]) if has_other_data else self.loader.position_of(checkpoint.loader)
        )
        checkpoints.restore_model(self.model, checkpoint.parameters)
        checkpoints.restore_optimizer(self.optimizer, self.model, checkpoint.optimizer)
        self.history = checkpoint.history
        self.forks = list(checkpoint.forks)
        if drift:
            self.forks.append({"step": checkpoint.step, "fields": drift})


def train(store: Store, sitting: Sitting) -> dict[str, Any]:
    """Run a sitting and return its result, which is also written to `out/result.json`.

    Raises TrainingError where the run is already past `stop_after`, where the checkpoint is of another configuration, or where
    too many losses in a row are no good: those steps are not saved. Raises LockedError where another process trains this run.
    """
    with ExitStack() as stack:
        ranks = stack.enter_context(Ranks.joined(sitting.device))
        sitting = replace(sitting, device=ranks.device_of(sitting.device))
        stop = stack.enter_context(_stop_request())
        scratch = Path()
        if ranks.rank == 0:
            run = f"runs/{sitting.run_name}"
            scratch = stack.enter_context(store.writer(run, f"training {sitting.run_name}"))
        return _sit(store, sitting, ranks, scratch, stop)


def _sit(store: Store, sitting: Sitting, ranks: Ranks, scratch: Path, stop: list[int]) -> dict[str, Any]:
    ranks.agree(_told(sitting))
    found_id = ranks.tell(_find(store, sitting) if ranks.rank == 0 else "")
    sitting = _as_begun(store, sitting, found_id)
    training = Training(open_snapshot(store, sitting.snapshot_id), sitting, ranks)
    ranks.agree(training.manifest())
    if found_id:
        _restore(training, sitting, store, found_id)
    following = following_of(store, sitting.follow, f"runs/{sitting.run_name}", training.reading, training.history)
    who = f"training {sitting.run_name}"
    with hold_folder(sitting.out, who) if ranks.rank == 0 else nullcontext():
        saver = Saver(store, scratch, sitting.run_name, sitting.keep)
        return _go_on(training, sitting, following, saver, found_id, stop)


def _told(sitting: Sitting) -> dict[str, Any]:
    """What all ranks of a sitting have to be told alike."""
    names = ("run_name", "identity", "is_sharded", "stop_after", "save_every", "resume", "evaluation", "allowed_drift")
    return flat({name: getattr(sitting, name) for name in names})


def _as_begun(store: Store, sitting: Sitting, found_id: str) -> Sitting:
    """A sitting that follows, with the snapshot that its run began with."""
    if not (sitting.follow and found_id):
        return sitting
    begun = checkpoints.read_state(checkpoints.open_stored(store, found_id))["identity"]["snapshot_id"]
    return replace(sitting, snapshot_id=begun)


def _go_on(
    training: Training, sitting: Sitting, following: Following, saver: Saver, found_id: str, stop: list[int]
) -> dict[str, Any]:
    ranks = training.ranks
    is_unchanged = bool(found_id) and training.num_steps == sitting.stop_after
    journal = Journal(sitting.out, training.num_steps, sitting.stop_after, sitting.has_telemetry, ranks.rank)
    journal.say(_first_words(training, sitting, found_id))
    for reason in broken_promises(sitting.config.deterministic):
        journal.say(f"warning: bitwise equality is not promised: {reason}")
    if training.compilation:
        journal.say(training.compilation.sentence)
    saver.say = journal.say
    saved_id = found_id if is_unchanged else ranks.tell(_run(training, sitting, following, journal, saver, stop))
    result = result_of(training, sitting, saved_id, is_unchanged)
    result["tokens_per_second"] = journal.tokens_per_second
    if ranks.rank == 0:
        saver.certify(training.num_steps, saved_id)
    journal.finish(result)
    if training.compilation and ranks.rank == 0:
        record_run(training.reading.packing["vocabulary_sha256"])
    return result


def _find(store: Store, sitting: Sitting) -> str:
    """The checkpoint to go on from, or nothing; one of another run is marked as needed by this one."""
    run = f"runs/{sitting.run_name}"
    found_id = checkpoints.find(store, sitting.run_name, sitting.resume) if sitting.resume else None
    if found_id and found_id not in store.refs(run).values():
        checkpoints.open_stored(store, found_id)
        store.move_ref(run, "started-from", store.ref_text(run, "started-from"), found_id, "resumed by id")
    return found_id or ""


def _restore(training: Training, sitting: Sitting, store: Store, found_id: str) -> None:
    found = _load(store, sitting.run_name, found_id)
    manifest = training.manifest()
    drift = judge_drift(
        found_id,
        {**found.identity, "manifest": found.surroundings, "tokenizer": found.packing["vocabulary_sha256"]},
        {**sitting.identity, "manifest": manifest, "tokenizer": training.reading.packing["vocabulary_sha256"]},
        sitting.allowed_drift,
    )
    if found.step > sitting.stop_after:
        raise TrainingError(
            f"run {sitting.run_name}",
            f"it is at step {found.step}",
            f"at most {sitting.stop_after}",
            "Ask for a later step.",
        )
    training.restore(found, drift)


def _load(store: Store, run: str, found_id: str) -> Checkpoint:
    """A checkpoint; where it is damaged or gone, the error offers the newest sound one of the run before it."""
    try:
        return checkpoints.load(store, found_id)
    except (StoreError, TrainingError) as error:
        for entry in reversed(list_checkpoints(store, run)):
            if entry.checkpoint_id != found_id and is_sound(store, entry.checkpoint_id):
                remedy = f"The one of step {entry.step} is sound: --resume {entry.checkpoint_id}"
                raise type(error)(error.subject, error.found, error.expected, remedy) from error
        raise


def _run(
    training: Training, sitting: Sitting, following: Following, journal: Journal, saver: Saver, stop: list[int]
) -> str:
    is_due = False
    for batch in training.reading.batches(training.config.batch_rows, sitting.num_workers, training.position):
        metrics = training.step(batch)
        while training.notes:
            journal.say(training.notes.pop(0))
        if sitting.evaluation.is_due(training.num_steps) and (training.is_sharded or training.ranks.rank == 0):
            journal.say(f"evaluating held-out rows after step {training.num_steps}")
            metrics |= training.evaluate(sitting.evaluation.num_rows)
        turn = training.turn(following)
        journal.step(training.num_steps, {**metrics, **turn.metrics}, batch.input_ids_BT.size)
        journal.say_all(turn.words)
        _judge_excursion(training, sitting)
        is_last = training.num_steps >= sitting.stop_after or training.ranks.any_of(bool(stop))
        is_due = is_due or is_last or turn.adoption is not None or training.num_steps % sitting.save_every == 0
        if not is_due or training.is_inside_excursion:
            continue
        saved = training.checkpoint(sitting) if training.is_sharded or training.ranks.rank == 0 else None
        if saved and training.ranks.rank == 0:
            saver.save(saved)
            if turn.adoption:  # no row of another snapshot is read before it is on record
                saver.wait()
        is_due = False
        if is_last:
            break
    saved_id = saver.finish(training.num_steps) if training.ranks.rank == 0 else ""
    if training.num_steps < sitting.stop_after:
        journal.say(f"stopped by a signal; resumable at step {training.num_steps}")
    return saved_id


def _judge_excursion(training: Training, sitting: Sitting) -> None:
    """Raise TrainingError where skipped steps are too many, or the last one of the sitting is skipped."""
    flags = training.history.skipped
    num_skipped = next((place for place, flag in enumerate(reversed(flags)) if not flag), len(flags))
    is_last = training.num_steps >= sitting.stop_after
    if num_skipped > training.config.max_skipped_steps or (num_skipped and is_last):
        raise TrainingError(
            f"step {training.num_steps}",
            f"its loss is {training.history.losses[-1]}, and {num_skipped} steps in a row changed nothing"
            + (f"; the first tensor that was not finite: {training.not_finite}" if training.not_finite else ""),
            f"a finite loss, at most {training.config.spike_factor:g} times the recent median",
            _EXCURSION,
        )


@contextmanager
def _stop_request() -> Iterator[list[int]]:
    """A list that a SIGTERM makes true: the step in hand is finished and saved first."""
    received: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)


def _first_words(training: Training, sitting: Sitting, found_id: str) -> str:
    model = f"{count_parameters(training.model):,} parameters, {training.loader.num_rows:,} rows"
    where = f"resumed at step {training.num_steps} from {found_id[:12]}" if found_id else "from the start"
    if training.forks and training.forks[-1]["step"] == training.num_steps:
        fields = training.forks[-1]["fields"].items()
        where += "; the numbers fork here: " + ", ".join(f"{name} {before} -> {now}" for name, (before, now) in fields)
    ranks = f", {training.ranks.count} ranks" if training.ranks.count > 1 else ""
    ranks += ", parameters sharded" if training.is_sharded else ""
    return f"run {sitting.run_name} on {training.device}{ranks}: {model}, {where}"


def _metrics(loss: StepLoss, norm: Tensor, rate: float, is_skipped: bool) -> dict[str, Any]:
    return {
        "loss": float(loss.loss),
        "cross_entropy": float(loss.cross_entropy_sum) / max(1, loss.num_trained_tokens),
        "num_trained_tokens": loss.num_trained_tokens,
        **{name: float(value) for name, value in loss.terms.items()},
        **loss.expert_shares,
        "gradient_norm": float(norm),
        "learning_rate": rate,
        **({"skipped": True} if is_skipped else {}),
    }


_EXCURSION = (
    "Nothing since they began was saved. Resume the last checkpoint to a later step, with a lower learning rate in a new "
    "run, or look at the batch."
)
