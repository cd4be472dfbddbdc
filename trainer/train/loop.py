"""The training loop: one session of a run, from its last checkpoint to a step, saving on the way."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.core.errors import TrainingError
from pipeline.core.params import flat
from pipeline.store.store import Store
from trainer.checkpoint.initial_weights import WeightsSource, open_weights
from trainer.checkpoint.saver import Saver
from trainer.compile.cache import record_run
from trainer.data.row_selection import shares_by_step
from trainer.distributed.hosts import own_scratch, require_same_code
from trainer.distributed.ranks import Ranks
from trainer.model.parameter_count import count_parameters
from trainer.train.build_model import DevicePlacement
from trainer.train.determinism import broken_promises
from trainer.train.follow_ref import RefFollower, open_follower
from trainer.train.metrics import MetricsWriter, hold_folder
from trainer.train.result import build_result
from trainer.train.resume import (
    find_checkpoint,
    mark_origin,
    restore_checkpoint,
    resumed_place,
    with_first_snapshot,
    with_initial_weights,
)
from trainer.train.session import TrainSession
from trainer.train.tracking.trackers import TrackedRun, begin_tracking, require_trackers
from trainer.train.training_state import Training


def train(store: Store, session: TrainSession) -> dict[str, Any]:
    """Run a session and return its result, which is also written to `out/result.json`.

    Raises TrainingError where the requested checkpoint is past `stop_after` or of another configuration, or after too
    many loss spikes in a row: those steps are not saved. Raises LockedError where another process trains this run.
    """
    require_trackers(session.trackers, session.has_telemetry)
    weights = open_weights(store, session.init_from) if session.init_from else None
    session = with_initial_weights(store, session, weights) if weights else session
    with ExitStack() as stack:
        ranks = stack.enter_context(Ranks.joined(session.device))
        require_same_code(ranks)
        stop = stack.enter_context(_stop_request())
        run, who = f"runs/{session.run_name}", f"training {session.run_name}"
        scratch = ranks.first(lambda: stack.enter_context(store.writer(run, who)).relative_to(store.root))
        own = own_scratch(store, scratch, ranks) if session.is_sharded else store.root / scratch
        return _run_session(store, _begin(store, session, ranks, weights), own, stop)


class _Begun(NamedTuple):
    """A session, with its training as it begins and the id of the checkpoint that it resumes, or ""."""

    session: TrainSession
    training: Training
    found_id: str


def _begin(store: Store, session: TrainSession, ranks: Ranks, weights: WeightsSource | None) -> _Begun:
    names = ("run_name", "is_sharded", "stop_after", "save_every", "resume", "evaluation", "allowed_drift")
    ranks.require_agreement(
        flat({"identity": session.inputs.identity, **{name: getattr(session, name) for name in names}})
    )
    found_id = ranks.first(lambda: find_checkpoint(store, session))
    session = with_first_snapshot(store, session, found_id)
    if session.follow and session.inputs.config.epoch_caps:
        found, remedy = "the run follows a ref, and a snapshot that it adopts is counted anew", "Leave --follow out."
        raise TrainingError("epoch_caps", found, "the snapshots with which the run begins", remedy)
    placement = DevicePlacement(ranks.device_of(session.device), ranks, session.is_sharded)
    training = Training(store, session.inputs, placement, with_held_out=session.evaluation.every is not None)
    ranks.require_agreement(training.environment())
    if found_id:
        restore_checkpoint(training, session, store, found_id)
    elif weights:
        training.begin_with(weights)
    return _Begun(_until_spent(session, training), training, found_id)


def _until_spent(session: TrainSession, training: Training) -> TrainSession:
    """Return a session that ends at the latest with the last row. Raises TrainingError where that is before the first step."""
    last = training.last_step
    if last == 0:
        found = f"all that have a weight have reached their caps after {training.loader.end} rows"
        expected = f"a batch of {training.config.batch_rows}"
        raise TrainingError("sources", found, expected, "Raise a cap or a weight, or leave one source without.")
    if last is None or last >= session.stop_after:
        return session
    text = (
        f"all sources have reached their caps after step {last}: the run ends there, before step {session.stop_after}"
    )
    training.messages.append(text)
    return replace(session, stop_after=last)


def _run_session(store: Store, begun: _Begun, scratch: Path, stop: list[int]) -> dict[str, Any]:
    session, training, found_id = begun
    ranks = training.ranks
    follower = open_follower(store, session.follow, resumed_place(session, training, found_id), ranks)
    training.messages += [follower.sentence] if follower.sentence else []
    with hold_folder(session.out, f"training {session.run_name}") if ranks.rank == 0 else nullcontext():
        tracked = TrackedRun(
            session.run_name, session.out, session.inputs.identity, training.num_steps, session.is_tracked_online
        )
        metrics = MetricsWriter(
            session.out,
            training.num_steps,
            session.stop_after,
            session.has_telemetry,
            is_silent=ranks.rank > 0,
            tracked=begin_tracking(session.trackers, tracked) if ranks.rank == 0 else {},
        )
        if ranks.rank == 0:
            mark_origin(store, session, found_id)
        saver = Saver(store, scratch, session.run_name, session.keep, metrics.log, training.writers)
        return _Loop(session, training, follower, saver, metrics, stop).run(found_id)


@dataclass
class _Loop:
    """The loop of one session, with the parts that it drives."""

    session: TrainSession
    training: Training
    follower: RefFollower
    saver: Saver
    metrics: MetricsWriter
    stop: list[int]

    def run(self, found_id: str) -> dict[str, Any]:
        """Train from a checkpoint, or from the start, and return the result of the session."""
        training, metrics = self.training, self.metrics
        metrics.log(self._first_message(found_id), *self._changed_shares(), *training.messages)
        training.messages.clear()
        for reason in broken_promises(training.config.deterministic):
            metrics.log(f"warning: bitwise equality is not promised: {reason}")
        if training.compilation:
            metrics.log(training.compilation.sentence)
        is_unchanged = bool(found_id) and training.num_steps >= self.session.stop_after
        saved_id = found_id if is_unchanged else training.ranks.broadcast(self._train_until_stop())
        result = build_result(training, self.session, saved_id, is_unchanged)
        result["tokens_per_second"] = metrics.tokens_per_second
        if training.ranks.rank == 0:
            self.saver.certify(training.num_steps, saved_id)
        metrics.finish(result)
        if training.compilation and training.ranks.rank == 0:
            record_run(training.run_data.packing["vocabulary_sha256"])
        return result

    def _train_until_stop(self) -> str:
        """Return the id of the last checkpoint, or "" on a rank that saves none."""
        training, session, is_due = self.training, self.session, False
        for batch in training.run_data.batches(training.config.batch_rows, session.num_workers, training.position):
            values = training.step(batch)
            for messages in (training.run_data.messages, training.messages):
                self.metrics.log(*messages)
                messages.clear()
            values |= self._evaluate()
            end = training.end_epoch(self.follower)
            self.metrics.write_step(training.num_steps, values | end.metrics, batch.input_ids_BT.size)
            self.metrics.log(*end.messages, *(self._changed_shares() if end.adoption else []))
            training.refuse_skipped_steps(is_final=training.num_steps >= session.stop_after)
            is_last = training.num_steps >= session.stop_after or training.ranks.any_of(bool(self.stop))
            is_due = is_due or is_last or end.adoption is not None or training.num_steps % session.save_every == 0
            if not is_due or training.num_skipped_steps:
                continue
            # No row of an adopted snapshot is read before the adoption is on record.
            self._save(is_awaited=end.adoption is not None)
            is_due = False
            if is_last:
                break
        saved_id = self.saver.finish(training.num_steps) if self._has_state else ""
        if training.num_steps < session.stop_after:
            self.metrics.log(f"stopped by a signal; resumable at step {training.num_steps}")
        return saved_id

    def _evaluate(self) -> dict[str, float]:
        training, evaluation = self.training, self.session.evaluation
        if not evaluation.is_due(training.num_steps) or not self._has_state:
            return {}
        self.metrics.log(f"evaluating held-out rows after step {training.num_steps}")
        return training.evaluate(evaluation.num_rows)

    def _save(self, is_awaited: bool) -> None:
        if self._has_state:
            self.saver.save(self.training.checkpoint())
            if is_awaited:
                self.saver.wait()

    @property
    def _has_state(self) -> bool:
        """Return whether this rank takes part in saving and evaluating: every rank of a sharded training, else the first."""
        return self.session.is_sharded or self.training.ranks.rank == 0

    def _changed_shares(self) -> list[str]:
        """Return the shares that the snapshot which is read has, where changes of the mixture move them."""
        training = self.training
        return [each.sentence for each in shares_by_step(training.loader)] if training.config.mixture_changes else []

    def _first_message(self, found_id: str) -> str:
        training, session = self.training, self.session
        model = f"{count_parameters(training.model):,} parameters, {training.loader.num_rows:,} rows"
        initial = session.inputs.initial
        start = f"with the weights of checkpoint {initial.checkpoint_id[:12]}" if initial else "from the start"
        start = f"resumed at step {training.num_steps} from {found_id[:12]}" if found_id else start
        if found_id and training.num_steps >= session.stop_after:
            start += f", at or past step {session.stop_after}: unchanged"
        if training.forks and training.forks[-1]["step"] == training.num_steps:
            fields = training.forks[-1]["fields"].items()
            start += "; the numbers fork here: "
            start += ", ".join(f"{name} {before} -> {now}" for name, (before, now) in fields)
        ranks = f", {training.ranks.count} ranks" if training.ranks.count > 1 else ""
        ranks += ", parameters sharded" if session.is_sharded else ""
        why = f" ({session.device_reason})" if session.device_reason else ""
        fetched = f"; {found}" if (found := self.saver.store.storage.fetched) else ""
        return f"run {session.run_name} on {training.device}{why}{ranks}: {model}, {start}{fetched}"


@contextmanager
def _stop_request() -> Iterator[list[int]]:
    """Yield a list that a SIGTERM adds to: the current step is finished and saved first."""
    received: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)
