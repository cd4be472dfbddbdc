"""Fork server: a process with the modules of a program loaded forks a run of it a request, so that no kill costs their import.

Only runs that are to be killed are forked. The one that ends the work is a fresh `python -m` of the program.

python -m tests.tools.fork_server PROGRAM      reads requests on stdin, answers each with the run's process id, then its exit code
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
_LOADED = {"trainer": "trainer.train.loop", "pipeline": "pipeline.cli.main"}
"""Module of a program that imports what a run needs."""


class ForkServer:
    """Client of the server of a program, `trainer` or `pipeline`, which it starts and ends as a context manager."""

    def __init__(self, program: str) -> None:
        self.program = program

    def __enter__(self) -> "ForkServer":
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.tools.fork_server", self.program],
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

    def kill(
        self, arguments: Sequence[str], log: Path, is_time: Callable[[], bool], with_children: bool = False
    ) -> bool:
        """Fork a run, kill it once `is_time()` holds, and return whether that was before its end. `log` receives its stderr."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        log.write_text("")
        self._process.stdin.write(json.dumps([list(arguments), str(log)]) + "\n")
        number, is_killed = int(self._process.stdout.readline()), False
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while not select.select([self._process.stdout], [], [], _POLL_SECONDS)[0]:
            if not is_killed and (is_time() or time.monotonic() > deadline):
                (os.killpg if with_children else os.kill)(number, signal.SIGKILL)
                is_killed = True
        code = int(self._process.stdout.readline())
        if code not in (0, -signal.SIGKILL):
            raise AssertionError(f"the run ended with {code}: {log.read_text()[-400:]}")
        return code != 0


def main(program: str) -> int:
    """Serve requests until stdin ends."""
    importlib.import_module(_LOADED[program])
    run = importlib.import_module(f"{program}.__main__").main
    for line in sys.stdin:
        arguments, log = json.loads(line)
        number = os.fork()
        if number == 0:
            os.setsid()
            handle = os.open(log, os.O_WRONLY | os.O_APPEND)
            os.dup2(handle, 2)
            os.dup2(os.open(os.devnull, os.O_RDWR), 1)
            os._exit(run(arguments))
        print(number, flush=True)
        _, status = os.waitpid(number, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
