"""Answer of the trainer to a question about its checkpoints, which it alone can read: read in a process without torch."""

import json
import subprocess
import sys
from typing import Any

from pipeline.core.child_process import run_child
from pipeline.core.errors import MissingError, StageError
from pipeline.stages.verify.consumer import CONSUMER, consumer_root
from pipeline.store.store import Store

_TIMEOUT_SECONDS = 600.0


def trainer_answer(store: Store, command: str, *arguments: str) -> Any:
    """Run a command of the trainer on a store and return its answer.

    Raises MissingError with the sentence of a trainer that refuses the question, StageError for one that crashes or hangs.
    """
    line = [
        sys.executable,
        "-m",
        CONSUMER,
        command,
        *arguments,
        f"--store={store.root.absolute()}",
        "--json",
        "--quiet",
    ]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    done = run_child(line, _TIMEOUT_SECONDS, cwd=consumer_root(), **pipes)
    subject, remedy = f"trainer {command}", f"Run `python -m trainer {command}` alone."
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        found = f"no answer within {_TIMEOUT_SECONDS:g} s" if done.exit_code is None else f"it printed {done.last_line}"
        raise StageError(subject, found, "one JSON value", remedy) from None
    if done.exit_code != 0:
        raise MissingError(subject, str(answer["message"]))
    return answer
