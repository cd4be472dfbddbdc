"""Child processes in a process group of their own: what a child has started is killed with it, at its deadline at the latest."""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ChildResult:
    """Exit code and captured output of a child. The exit code is None if it was killed at its deadline."""

    exit_code: int | None
    stdout: Any
    stderr: Any

    @property
    def last_line(self) -> str:
        """Last line of stderr, captured as text."""
        return str((self.stderr.strip().splitlines() or ["it printed nothing"])[-1])


def run_child(command: Sequence[str], seconds: float, **settings: Any) -> ChildResult:
    """Run a command for at most `seconds`. Nothing that it has started outlives the call.

    `settings` are those of `subprocess.Popen`.
    """
    with subprocess.Popen(command, start_new_session=True, **settings) as child:
        try:
            printed = child.communicate(timeout=seconds)
            return ChildResult(child.returncode, *printed)
        except subprocess.TimeoutExpired:
            kill_group(child)
            return ChildResult(None, *child.communicate())
        finally:
            kill_group(child)


def kill_group(child: "subprocess.Popen[Any]") -> None:
    """Kill the group of a child that was started with `start_new_session`, and wait for the child."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
