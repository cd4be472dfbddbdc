"""Injected faults: a kill or an error at one call by which a process changes the disk. Calls are found by counting them.

Damage of a file that was written is one bit that is flipped.
"""

import io
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WRITES = ("fsync", "replace", "rename", "mkdir")
REMOVALS = ("unlink", "rmdir")
Fault = Callable[[], None]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail(number: int) -> Fault:
    def raise_error() -> None:
        raise OSError(number, os.strerror(number))

    return raise_error


@contextmanager
def inject(number: int, fault: Fault, calls: tuple[str, ...] = WRITES) -> Iterator[list[int]]:
    """Inject a fault at call `number` of those that change the disk, counted from 1. Yields how many there were."""
    count = [0]

    def watched(function: Callable[..., Any], applies: Callable[..., bool] = lambda *_: True) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if applies(*arguments, *named.values()):
                count[0] += 1
                if count[0] == number:
                    fault()
            return function(*arguments, **named)

        return call

    real = {name: getattr(os, name) for name in calls}
    opened = io.open
    try:
        for name, function in real.items():
            setattr(os, name, watched(function))
        io.open = watched(opened, lambda path, mode="r", *_: isinstance(path, Path) and set(mode) & set("wa"))  # type: ignore[assignment]
        yield count
    finally:
        io.open = opened  # type: ignore[assignment]
        for name, function in real.items():
            setattr(os, name, function)


def flip(path: Path) -> None:
    """Flip one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def in_child(work: Callable[[], object]) -> int:
    """Do it in a forked process; its exit code, or minus the signal that killed it."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
