"""A process that has the trainer's modules at hand and forks a sitting for each order: a kill costs no import of torch.

Only sittings that are to be killed are forked. What a run ends in is computed by `python -m trainer` as ever.

python -m tests.tools.nursery      reads orders on stdin, answers each with the sitting's process and then its exit code
"""

import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from trainer.train.determinism import ENVIRONMENT_VARIABLES

_POLL_SECONDS = 0.001
_TIMEOUT_SECONDS = 300


class Nursery:
    """The process, from the side of who kills. Used as a context manager."""

    def __enter__(self) -> "Nursery":
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.tools.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env={**os.environ, **ENVIRONMENT_VARIABLES, "OMP_WAIT_POLICY": "passive"},
        )
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def kill(self, arguments: Sequence[str], told: Path, is_time: Callable[[], bool]) -> bool:
        """Fork a sitting and kill it as soon as `is_time` says so; whether that came before its end. `told` gets its words."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        told.write_text("")
        self._process.stdin.write(json.dumps([list(arguments), str(told)]) + "\n")
        number, is_killed = int(self._process.stdout.readline()), False
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while not select.select([self._process.stdout], [], [], _POLL_SECONDS)[0]:
            if not is_killed and (is_time() or time.monotonic() > deadline):
                os.kill(number, signal.SIGKILL)
                is_killed = True
        code = int(self._process.stdout.readline())
        if code not in (0, -signal.SIGKILL):
            raise AssertionError(f"the sitting ended with {code}: {told.read_text()[-400:]}")
        return code != 0


def main() -> int:
    """Serve orders until stdin ends."""
    for name in ("torch._dynamo", "trainer.train.loop"):  # the first is loaded by torch's optimizers
        importlib.import_module(name)
    from trainer.__main__ import main as trainer_main

    for line in sys.stdin:
        arguments, told = json.loads(line)
        number = os.fork()
        if number == 0:
            handle = os.open(told, os.O_WRONLY | os.O_APPEND)
            os.dup2(handle, 2)
            os.dup2(os.open(os.devnull, os.O_RDWR), 1)
            os._exit(trainer_main(arguments))
        print(number, flush=True)
        _, status = os.waitpid(number, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
