"""Fork server of trainers: a process with the trainer's modules loaded forks a training session a request, so that no kill
costs an import of torch.

Only sessions that are to be killed are forked. The one that ends a run is a fresh `python -m trainer`.

python -m tests.tools.fork_server      reads requests on stdin, answers each with the session's process id, then its exit code
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


class TrainerForkServer:
    """Client of the server, which it starts and ends as a context manager."""

    def __enter__(self) -> "TrainerForkServer":
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.tools.fork_server"],
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

    def kill(self, arguments: Sequence[str], log: Path, is_time: Callable[[], bool]) -> bool:
        """Fork a session, kill it once `is_time()` holds, and return whether that was before its end. `log` receives its stderr."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        log.write_text("")
        self._process.stdin.write(json.dumps([list(arguments), str(log)]) + "\n")
        number, is_killed = int(self._process.stdout.readline()), False
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while not select.select([self._process.stdout], [], [], _POLL_SECONDS)[0]:
            if not is_killed and (is_time() or time.monotonic() > deadline):
                os.kill(number, signal.SIGKILL)
                is_killed = True
        code = int(self._process.stdout.readline())
        if code not in (0, -signal.SIGKILL):
            raise AssertionError(f"the session ended with {code}: {log.read_text()[-400:]}")
        return code != 0


def main() -> int:
    """Serve requests until stdin ends."""
    importlib.import_module("trainer.train.loop")
    from trainer.__main__ import main as trainer_main

    for line in sys.stdin:
        arguments, log = json.loads(line)
        number = os.fork()
        if number == 0:
            handle = os.open(log, os.O_WRONLY | os.O_APPEND)
            os.dup2(handle, 2)
            os.dup2(os.open(os.devnull, os.O_RDWR), 1)
            os._exit(trainer_main(arguments))
        print(number, flush=True)
        _, status = os.waitpid(number, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
