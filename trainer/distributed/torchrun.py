"""Torchrun, torch's own, for a command of `python -m trainer` on the ranks of one or several hosts: what fails is a sentence.

    python -m trainer.distributed.torchrun OPTIONS OF TORCHRUN -- train ...

Starting, meeting and ending the ranks is torch's alone. It is given the command, and its errors are said in words.
"""

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from pipeline.core.errors import TrainingError

_LOG_LEVEL = "TORCH_CPP_LOG_LEVEL"
_USAGE = "python -m trainer.distributed.torchrun --nnodes 2 --nproc-per-node 1 --rdzv-endpoint HOST:PORT -- train ..."


def main(arguments: Sequence[str]) -> int:
    """Start the ranks of this host, wait for their end, and return the exit code. An error is one line on stderr."""
    if "--" not in arguments:
        print(f"error UsageError: no `--` before the command of the ranks; expected {_USAGE}", file=sys.stderr)
        return 2
    place = list(arguments).index("--")
    try:
        start(arguments[:place], arguments[place + 1 :])
    except TrainingError as error:
        print(f"error TrainingError: {error}", file=sys.stderr)
        return 1
    return 0


def start(options: Sequence[str], command: Sequence[str]) -> None:
    """Run a command on the ranks of this host. Raises TrainingError where the hosts do not meet or a rank fails."""
    level = os.environ.get(_LOG_LEVEL)
    os.environ.setdefault(_LOG_LEVEL, "FATAL")  # of this process alone: it prints the frames of torch beside an error
    from torch.distributed import DistError
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.elastic.rendezvous.api import RendezvousConnectionError, RendezvousError
    from torch.distributed.run import get_args_parser, run

    from trainer.distributed.meeting import BACKEND, register_meeting

    if level is None:
        del os.environ[_LOG_LEVEL]
    parsed = get_args_parser().parse_args([*options, "-m", "--", "trainer", *command])
    place = parsed.rdzv_endpoint or f"{parsed.master_addr}:{parsed.master_port}"
    if parsed.rdzv_backend == "c10d":
        register_meeting()
        parsed.rdzv_backend = BACKEND
    try:
        run(parsed)
    except ChildFailedError as error:
        raise TrainingError("ranks", _ends(error.failures), "", _READ) from None
    except RendezvousConnectionError as error:
        found = f"no answer came from there, or none of a torchrun ({_reason(error)})"
        raise TrainingError(f"meeting place {place}", found, "the address of one of the hosts", _ADDRESS) from None
    except (RendezvousError, DistError, TimeoutError) as error:
        found = f"not all hosts came in time ({_reason(error)})"
        raise TrainingError(f"meeting place {place}", found, f"{parsed.nnodes}, as --nnodes says", _ADDRESS) from None
    except SignalException as error:
        found = f"signal {signal.Signals(error.sigval).name} ended them"
        raise TrainingError("ranks", found, "", "Start all again with --resume latest.") from None
    except ValueError as error:
        raise TrainingError("torchrun", _reason(error), "options as it has them", f"Correct it: {_USAGE}") from None


def _ends(failures: Any) -> str:
    """Return how the ranks of this host ended, those that failed."""
    ends = sorted((rank, failure.exitcode) for rank, failure in failures.items())
    return "; ".join(f"rank {rank} ended with {code}" for rank, code in ends)


def _reason(error: BaseException) -> str:
    """Return the innermost reason of an error on one line, or its name."""
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(error).split())[:200] or repr(error)


_READ = "The rank that ended first says why. Then start all again with --resume latest, on as many hosts as there are."
_ADDRESS = (
    "Start the same command on every host, with the same --rdzv-endpoint, --rdzv-id and --nnodes; "
    "`--rdzv-conf join_timeout=SECONDS` is how long they wait."
)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
