"""Training sessions in fresh processes: the command line is run, killed or refused, and its answer read.

Processes share what is stored, and nothing else.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.core.child_process import ChildResult, run_child
from pipeline.store.store import Store
from trainer.train.determinism import ENVIRONMENT_VARIABLES

SAME = ("certificate", "losses", "parameters_sha256", "optimizer_sha256", "checkpoint_id")
"""Fields of a result that are equal where two trainings are the same."""
SAVE_EVERY = 4
_TIMEOUT_SECONDS = 300


class SessionFailed(Exception):  # noqa: N818  # a result, not an error of the program
    """Raised where a session ends otherwise than it should."""


@dataclass
class ChildSessions:
    """Sessions of trainings on one snapshot; `folder` gets their results and logs."""

    store: Store
    snapshot_id: str
    folder: Path
    num_steps: int

    def command(self, run: str, *more: str, steps: int | None = None, launcher: Sequence[str] = ()) -> list[str]:
        """Return the command line of a training session."""
        line = [sys.executable, *launcher, "-m", *(["--"] if launcher else []), "trainer", "train"]
        line += ["--store", self.store.storage.address, "--json"]
        line += ["--snapshot", self.snapshot_id, "--run", run, "--out", str(self.folder / run)]
        line += [] if "--device" in more else ["--device", "cpu"]
        return [*line, "--save-every", str(SAVE_EVERY), "--stop-after", str(steps or self.num_steps), *more]

    def train(self, run: str, *more: str, steps: int | None = None, launcher: Sequence[str] = ()) -> dict[str, Any]:
        """Train in a fresh process and return the result."""
        return self.answer(self.command(run, *more, steps=steps, launcher=launcher))  # type: ignore[no-any-return]

    def answer(self, line: Sequence[str]) -> Any:
        """Run a fresh process and return what it prints as JSON."""
        done = self.process(line)
        if done.exit_code:
            raise SessionFailed(f"exit {done.exit_code}: {done.last_line[:200]}")
        return json.loads(done.stdout)

    def refused(self, run: str, *more: str) -> str:
        """Return the message with which a training session is refused."""
        done = self.process(self.command(run, *more))
        if done.exit_code != 1 or "Traceback" in done.stderr:
            raise SessionFailed(f"exit {done.exit_code} where a refusal was expected")
        return str(json.loads(done.stdout)["message"])

    def kill(self, run: str, is_time: Callable[[], bool], *more: str) -> None:
        """Start a training session and kill it as soon as `is_time` returns True."""
        line = self.command(run, *more)
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._log_of(run).open("wb") as log:
            child = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=log, env=_variables())
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while child.poll() is None and not is_time() and time.monotonic() < deadline:
            time.sleep(0.0005)
        if child.poll() is not None:
            raise SessionFailed(f"run {run} ended with {child.returncode} before it was killed: {self.log(run)[-200:]}")
        os.kill(child.pid, signal.SIGKILL)
        child.wait()

    def log(self, run: str) -> str:
        """Return what the session to be killed has logged so far."""
        return self._log_of(run).read_text(errors="replace")

    def has_steps(self, run: str, number: int) -> bool:
        """Return whether the session to be killed has logged so many steps."""
        return f"] {number}/" in self.log(run)

    def _log_of(self, run: str) -> Path:
        return self.folder / f"{run}.log"

    def process(self, line: Sequence[str]) -> ChildResult:
        """Run a fresh process to its end."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        done = run_child(line, _TIMEOUT_SECONDS, env=_variables(), **pipes)
        if done.exit_code is None:
            raise SessionFailed(f"no end within {_TIMEOUT_SECONDS} s: {done.last_line[:200]}")
        return done


def _variables() -> dict[str, str]:
    # Waiting threads sleep: with several ranks, and a process that watches, spinning takes cores from computation.
    return {**os.environ, **ENVIRONMENT_VARIABLES, "OMP_WAIT_POLICY": "passive"}
