"""Saving in the background: a step waits only for the copy into host memory."""

import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from pipeline.core.errors import StoreError, TrainingError
from pipeline.store.store import Store
from trainer.checkpoint import checkpoint as checkpoints
from trainer.checkpoint.checkpoint import Checkpoint
from trainer.checkpoint.retention import RetentionPolicy, prune


class Saver:
    """Writer of the checkpoints of one run, one at a time, and moves `latest` after each.

    If the disk is slower than the training, one checkpoint waits, and a newer one replaces it. If a save fails, a warning is logged
    and training continues: `latest` keeps pointing to the last good checkpoint.
    """

    def __init__(
        self, store: Store, scratch: Path, run: str, keep: RetentionPolicy, log: Callable[[str], None]
    ) -> None:
        self.store = store
        self.scratch = scratch
        self.run = run
        self.keep = keep
        self.log = log
        self.saved_step = 0
        self._thread = ThreadPoolExecutor(1, "saver")
        self._lock = threading.Lock()
        self._waiting: Checkpoint | None = None
        self._pending: list[Future[None]] = []

    def save(self, checkpoint: Checkpoint) -> None:
        """Queue a checkpoint whose tensors no longer change, and return at once.

        Raises the TrainingError of an earlier save: values that are not finite.
        """
        with self._lock:
            replaced, self._waiting = self._waiting, checkpoint
        if replaced is not None:
            self.log(f"warning: step {replaced.step} was not saved: the step before is still being written")
            return
        while self._pending and self._pending[0].done():
            self._pending.pop(0).result()
        self._pending.append(self._thread.submit(self._write_waiting))

    def wait(self) -> None:
        """Wait until nothing is being written."""
        while self._pending:
            self._pending.pop(0).result()

    def finish(self, step: int) -> str:
        """Return the id of the checkpoint after `step`, the last that was queued. Raises TrainingError if it was not saved."""
        self.wait()
        latest = self.store.ref(f"runs/{self.run}", "latest")
        if latest is None or self.saved_step != step:
            remedy = (
                f"The last good one is {latest}. Make room, then resume." if latest else "Make room, then start again."
            )
            raise TrainingError(f"run {self.run}", f"the checkpoint of step {step} could not be saved", "", remedy)
        return latest

    def certify(self, step: int, checkpoint_id: str) -> None:
        """Set the ref of the last checkpoint of a session, which keeps it from being pruned."""
        run, name = f"runs/{self.run}", f"certified-{step}"
        self.store.move_ref(run, name, self.store.ref_text(run, name), checkpoint_id, "a session ended here")

    def _write_waiting(self) -> None:
        with self._lock:
            checkpoint, self._waiting = self._waiting, None
        assert checkpoint is not None, "only a checkpoint that found none waiting is submitted"
        run = f"runs/{self.run}"
        before = self.store.ref_text(run, "latest")
        try:
            saved_id = checkpoints.save(self.store, self.scratch, checkpoint, before)
            self.store.move_ref(run, "latest", before, saved_id, f"step {checkpoint.step}")
            self.saved_step = checkpoint.step
            if self.keep.is_limited:
                prune(self.store, self.run, self.keep)
        except (OSError, StoreError) as error:
            shutil.rmtree(self.scratch / f"step-{checkpoint.step}", ignore_errors=True)
            message = f"warning: step {checkpoint.step} was not saved ({error}); training continues"
            self.log(f"{message}, the last good one is {before}" if before else message)
