"""Part functions that write down when they begin and end, and have a fault the first time: killed, or left without disk.

A build sends their names to its workers in place of those of the stages (`faulty_build.py`). The fault comes when
the work is done and nothing of it is stored.
"""

import os
import resource
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pipeline.contracts.part import PartJob, PartOutput
from pipeline.core.declared import load_declared

FOLDER, FAULT, FAULTY = "SLUICE_CAMPAIGN_FOLDER", "SLUICE_CAMPAIGN_FAULT", "SLUICE_CAMPAIGN_FAULTY"
"""Variables: a folder for the log and for marks of what had a fault; `kill` or `disk`, if any; the only function that has it."""
LOG = "parts.log"
_DOT, _COLON = "___", "____"
_FEW_BYTES = 200


def faulty_name(function: str) -> str:
    """Return the name under which a worker finds a part function here."""
    return f"{__name__}:{function.replace(':', _COLON).replace('.', _DOT)}"


def __getattr__(name: str) -> Callable[[PartJob], PartOutput]:
    if _COLON not in name:
        raise AttributeError(name)
    module, _, function = name.partition(_COLON)
    found: Callable[[PartJob], PartOutput] = load_declared(name, "function", f"{module.replace(_DOT, '.')}:{function}")

    def faulty(job: PartJob) -> PartOutput:
        _note("begins", function, job)
        output = found(job)
        _note("ends", function, job)
        if os.environ.get(FAULT) and os.environ.get(FAULTY) in (None, "", function) and _is_first(function):
            _inject(os.environ[FAULT])
        return output

    return faulty


def _note(what: str, function: str, job: PartJob) -> None:
    line = f"{what}\t{function}\t{job.name}\t{time.time():.3f}\t{os.getpid()}\n"
    handle = os.open(Path(os.environ[FOLDER]) / LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, line.encode())
    os.close(handle)


def _is_first(function: str) -> bool:
    with suppress(FileExistsError):
        (Path(os.environ[FOLDER]) / f"faulty-{function}").touch(exist_ok=False)
        return True
    return False


def _inject(how: str) -> None:
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FEW_BYTES, most))  # its files end there, as on a disk that is full
