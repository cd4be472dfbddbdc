"""Determinism of a run: environment variables before torch is imported, switches and seeds after.

Promised is: the same machine type, library versions and thread count give the same bits.
"""

import ctypes
import os
import random
import signal
import sys
from collections.abc import MutableMapping
from pathlib import Path

from pipeline.core.errors import TrainingError
from trainer.compile import cache

ENVIRONMENT_VARIABLES = {"PYTHONHASHSEED": "0", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
"""Read by Python at its start and by torch at its import; later changes do nothing."""


def ensure_variables(arguments: list[str], variables: MutableMapping[str, str] = os.environ) -> None:
    """Re-execute `python -m trainer` once with the environment variables it needs. Returns only if they are set already."""
    missing = {name: value for name, value in ENVIRONMENT_VARIABLES.items() if variables.get(name) != value}
    added, warning = cache.variables_of(arguments, variables)
    missing |= added
    if warning:
        print(warning, file=sys.stderr, flush=True)
    if missing:
        signal.pthread_sigmask(
            signal.SIG_BLOCK, {signal.SIGINT}
        )  # an interrupt waits until `trainer.__main__` takes it
        os.execve(sys.executable, [sys.executable, "-m", "trainer", *arguments], {**variables, **missing})


def choose_device(device: str) -> tuple[str, str]:
    """Return the device that `auto` stands for, and why; any other as it is."""
    if device != "auto":
        return device, ""
    import torch

    return ("cuda", "auto: torch sees a GPU") if torch.cuda.is_available() else ("cpu", "auto: torch sees no GPU")


def refuse_device(device: str) -> None:
    """Raise TrainingError for a device that is not known, or one that the driver does not have. Loads no torch."""
    if device not in ("auto", "cpu"):
        _require_gpu(device, "the driver", _num_gpus_of_driver())


def require_device(device: str) -> None:
    """Raise TrainingError unless torch can use the device: `cpu`, `cuda`, or `cuda:` and a number."""
    import torch

    if device != "cpu":
        _require_gpu(device, "torch", torch.cuda.device_count() if torch.cuda.is_available() else 0)


def _require_gpu(device: str, who: str, num_gpus: int) -> None:
    kind, _, number = device.partition(":")
    if kind != "cuda" or not (number or "0").isdecimal():
        raise TrainingError(f"device {device!r}", "it is not known", "auto, cpu, cuda or cuda:N", "Name one of these.")
    if int(number or "0") >= num_gpus:
        found = f"{who} sees {num_gpus} GPUs here"
        raise TrainingError(f"device {device}", found, "one that is here", "Train with --device cpu.")


def _num_gpus_of_driver() -> int:
    """Return how many GPUs the driver shows to this process; 0 where there is no driver."""
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        has_failed = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    except (OSError, AttributeError):
        return 0
    return 0 if has_failed else count.value


def broken_promises(is_strict: bool = True) -> list[str]:
    """Return why bitwise equality is not promised for this process; empty where it is.

    The variables with which the process was started count: Python and torch ignore what is set later.
    """
    found = _initial_variables()
    loose = [] if is_strict else ["`deterministic` is off in the recipe"]
    return loose + [
        f"{name} was {found.get(name, 'not set')} when this process began; {value} was expected. Start by `python -m trainer`."
        for name, value in ENVIRONMENT_VARIABLES.items()
        if found.get(name) != value
    ]


def _initial_variables() -> dict[str, str]:
    try:
        content = Path("/proc/self/environ").read_bytes().decode(errors="replace")
    except OSError:
        return dict(os.environ) if "torch" not in sys.modules else {}
    return dict(entry.split("=", 1) for entry in content.split("\0") if "=" in entry)


def make_deterministic(seed: int, num_threads: int, is_strict: bool = True) -> None:
    """Set strict deterministic algorithms, the number of threads and the four global seeds, which are a fallback only.

    If `is_strict` is False, torch may choose the fastest algorithms; all else is set alike.
    """
    import numpy as np
    import torch

    # What use_deterministic_algorithms(True) does, without loading the compiler for it, which takes a second.
    torch.set_deterministic_debug_mode("error" if is_strict else "default")
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.backends.cudnn.deterministic = is_strict
    torch.backends.cudnn.benchmark = not is_strict
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    torch.set_num_threads(num_threads)
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)
