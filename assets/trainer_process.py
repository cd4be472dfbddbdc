"""Trainer process: runs the trainer as a child, passes on its log lines, returns its result. Imports neither dagster nor torch."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pipeline.core.errors import TrainingError


class TrainerStoppedError(TrainingError):
    """A signal stopped the child: its checkpoints are good, and it can resume from them."""


def trainer_command(command: str, store: Path, *arguments: str) -> list[str]:
    """Build a command line of `python -m trainer` with JSON output."""
    return [sys.executable, "-m", "trainer", command, "--store", str(store), "--json", *arguments]


def run_trainer(command: Sequence[str], said: Callable[[str], None]) -> dict[str, Any]:
    """Run the trainer, pass on each line that it logs, and return its result.

    Raises TrainingError with its error message or last line, TrainerStoppedError if a signal ended it before its last step.
    An interrupt of this process also ends the child, which saves the current step first.
    """
    last = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        try:
            for line in child.stderr:
                last = line.strip() or last
                said(line.rstrip())
            answer = child.stdout.read()
        except BaseException:
            child.terminate()
            child.stderr.read()  # while somebody reads, it can say that it saves: otherwise it ends before it has
            raise
    found: dict[str, Any] = json.loads(answer) if answer.strip() else {}
    if child.returncode != 0 or not found:
        raise _refusal(child.returncode, found, last)
    if found.get("finished") is False:
        raise TrainerStoppedError("the trainer", f"a signal stopped it: {last}", "its last step", _AGAIN)
    return found


def _refusal(code: int, found: dict[str, Any], last: str) -> TrainingError:
    if "defect" in found:
        return TrainingError("the trainer", f"it raised {found['defect']}", "", _REPORT)
    if "message" in found:
        return TrainingError("the trainer refused", found["message"])
    if code < 0:
        return TrainerStoppedError("the trainer", f"it ended with signal {-code}: {last}", "exit code 0", _AGAIN)
    return TrainingError("the trainer", f"it ended with exit code {code}: {last}", "exit code 0 and a result", _AGAIN)


_REPORT = "Its checkpoints are kept. Report it with the traceback in the log of the run, above this error."
_AGAIN = "Launch again to resume at its last checkpoint."
