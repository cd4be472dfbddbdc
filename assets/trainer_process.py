"""The trainer as a child process: its lines as they come, its result at the end. Imports neither dagster nor torch."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pipeline.core.errors import TrainingError


class TrainerStoppedError(TrainingError):
    """The child was stopped from outside, by a signal: what it saved is good, and it can go on from there."""


def trainer_command(command: str, store: Path, *arguments: str) -> list[str]:
    """The command line of `python -m trainer`, with its answer as JSON."""
    return [sys.executable, "-m", "trainer", command, "--store", str(store), "--json", *arguments]


def run_trainer(command: Sequence[str], said: Callable[[str], None]) -> dict[str, Any]:
    """Run the trainer, pass on each line it says, and return its result.

    Raises TrainingError with its refusal or last words, TrainerStoppedError where a signal ended it before its last step.
    Whatever ends this process's wait (an interrupt, say) ends the child too: it saves the step in hand first.
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
            raise
    found: dict[str, Any] = json.loads(answer) if answer.strip() else {}
    if child.returncode != 0:
        raise _refusal(child.returncode, found, last)
    if found.get("finished") is False:
        raise TrainerStoppedError("the trainer", f"a signal stopped it: {last}", "its last step", _AGAIN)
    return found


def _refusal(code: int, found: dict[str, Any], last: str) -> TrainingError:
    if "message" in found:
        return TrainingError("the trainer refused", found["message"])
    if code < 0:
        return TrainerStoppedError("the trainer", f"it ended with signal {-code}: {last}", "exit code 0", _AGAIN)
    return TrainingError("the trainer", f"it ended with exit code {code}: {last}", "exit code 0", _AGAIN)


_AGAIN = "Launch again to resume at its last checkpoint."
