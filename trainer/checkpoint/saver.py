"""Saving in the background: a step waits only for the copy into host memory.

Sharded ranks have a saver each. They agree which checkpoints are written, and then write each of them together.
"""

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
from trainer.distributed.ranks import Ranks


class Saver:
    """Writer of the checkpoints of one run, one at a time, and moves `latest` after each.

    If the disk is slower than the training, one checkpoint waits, and a newer one replaces it. If a save fails, a warning is logged
    and training continues: `latest` keeps pointing to the last good checkpoint.
    """

    def __init__(
        self,
        store: Store,
        scratch: Path,
        run: str,
        keep: RetentionPolicy,
        log: Callable[[str], None],
        ranks: Ranks = Ranks(),  # noqa: B008  # frozen
    ) -> None:
        """Make the saver of a rank, whose files are below `scratch` until they are stored."""
        self.store = store
        self.scratch = scratch
        self.run = run
        self.keep = keep
        self.log = log
        self.ranks = ranks
        self.saved_step, self.saved_id = 0, ""
        self._beside = ranks.beside()
        self._thread = ThreadPoolExecutor(1, "saver")
        self._lock = threading.Lock()
        self._waiting: dict[int, Checkpoint] = {}
        self._last = 0
        self._pending: list[Future[None]] = []

    def save(self, checkpoint: Checkpoint) -> None:
        """Queue a checkpoint whose tensors no longer change, and return at once.

        Raises the TrainingError of an earlier save: values that are not finite.
        """
        if self.ranks.any_of(any(each.done() and each.exception() for each in self._pending)):
            self.wait()
        self._pending = [each for each in self._pending if not each.done()]
        with self._lock:  # no rank begins to write while they agree whether the last one waits on all of them
            is_replaced = not self.ranks.any_of(self._last not in self._waiting)
            if is_replaced:
                del self._waiting[self._last]
            replaced, self._last = self._last, checkpoint.step
            self._waiting[checkpoint.step] = checkpoint
        if is_replaced:
            self.log(f"warning: step {replaced} was not saved: the step before is still being written")
        self._pending.append(self._thread.submit(self._write, checkpoint.step))

    def wait(self) -> None:
        """Wait until nothing is being written."""
        while self._pending:
            self._pending.pop(0).result()

    def finish(self, step: int) -> str:
        """Return the id of the checkpoint after `step`, the last that was queued. Raises TrainingError if it was not saved."""
        self.wait()
        if self.saved_step != step:
            latest = self.store.ref(f"runs/{self.run}", "latest")
            remedy = (
                f"The last good one is {latest}. Make room, then resume." if latest else "Make room, then start again."
            )
            raise TrainingError(f"run {self.run}", f"the checkpoint of step {step} could not be saved", "", remedy)
        return self.saved_id

    def certify(self, step: int, checkpoint_id: str) -> None:
        """Set the ref of the last checkpoint of a session, which keeps it from being pruned."""
        run, name = f"runs/{self.run}", f"certified-{step}"
        self.store.move_ref(run, name, self.store.ref_text(run, name), checkpoint_id, "a session ended here")

    def _write(self, step: int) -> None:
        with self._lock:
            checkpoint = self._waiting.pop(step, None)
        if checkpoint is None:  # a newer one has replaced it
            return
        before: str | None = None
        try:
            before = self._beside.first(lambda: self.store.ref_text(f"runs/{self.run}", "latest"))
            saved_id = checkpoints.save(self.store, self.scratch, checkpoint, before, self._beside)
            self._beside.first(lambda: self._name(saved_id, before, step))
            self.saved_step, self.saved_id = step, saved_id
        except (OSError, StoreError) as error:
            shutil.rmtree(self.scratch / f"step-{step}", ignore_errors=True)
            message = f"warning: step {step} was not saved ({error}); training continues"
            self.log(f"{message}, the last good one is {before}" if before else message)

    def _name(self, saved_id: str, before: str | None, step: int) -> None:
        self.store.move_ref(f"runs/{self.run}", "latest", before, saved_id, f"step {step}")
        if self.keep.is_limited:
            prune(self.store, self.run, self.keep)
