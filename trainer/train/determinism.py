"""The one place that makes a run repeatable: the environment before torch is imported, the switches after.

What is promised: the same machine type, library versions and thread count give the same bits.
"""

import hashlib
import os
import platform
import random
import sys
from collections.abc import MutableMapping
from importlib import metadata
from pathlib import Path
from typing import Any

import kernels
from pipeline.core.errors import TrainingError
from trainer.compile import cache

ENVIRONMENT = {"PYTHONHASHSEED": "0", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
"""Read by Python at its start and by torch at its import; later changes do nothing."""

NUMERIC = ("MKL_CBWR", "MKL_DYNAMIC", "MKL_ENABLE_INSTRUCTIONS", "OMP_DYNAMIC", "ONEDNN_MAX_CPU_ISA")
"""Variables by which libraries choose other instructions or threads. Where set, they are a part of the kernel manifest."""


def ensure_environment(arguments: list[str], environment: MutableMapping[str, str] = os.environ) -> None:
    """Re-execute `python -m trainer` once with the environment it needs. Returns only where it is right already."""
    missing = {name: value for name, value in ENVIRONMENT.items() if environment.get(name) != value}
    added, words = cache.environment(arguments, environment)
    missing |= added
    if words:
        print(words, file=sys.stderr, flush=True)
    if missing:
        os.execve(sys.executable, [sys.executable, "-m", "trainer", *arguments], {**environment, **missing})


def require_device(device: str) -> None:
    """Raise TrainingError unless torch can use the device here: `cpu`, `cuda`, or `cuda:` and a number."""
    import torch

    kind, _, number = device.partition(":")
    num_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device != "cpu" and not (kind == "cuda" and (number or "0").isdecimal()):
        raise TrainingError(f"device {device!r}", "it is not known", "cpu, cuda or cuda:N")
    if device != "cpu" and int(number or "0") >= num_gpus:
        raise TrainingError(f"device {device}", f"torch sees {num_gpus} GPUs here", "", "Train with --device cpu.")


def broken_promises(is_strict: bool = True) -> list[str]:
    """Why bitwise equality is not promised for this process; empty where it is.

    Judged by the environment that the process was started with: what is set later came too late for Python and torch.
    """
    found = _initial_environment()
    loose = [] if is_strict else ["`deterministic` is off in the recipe"]
    return loose + [
        f"{name} was {found.get(name, 'not set')} when this process began; {value} was expected. Start by `python -m trainer`."
        for name, value in ENVIRONMENT.items()
        if found.get(name) != value
    ]


def _initial_environment() -> dict[str, str]:
    try:
        content = Path("/proc/self/environ").read_bytes().decode(errors="replace")
    except OSError:
        return dict(os.environ) if "torch" not in sys.modules else {}
    return dict(entry.split("=", 1) for entry in content.split("\0") if "=" in entry)


def make_deterministic(seed: int, num_threads: int, is_strict: bool = True) -> None:
    """Strict deterministic algorithms, fixed threads, and the four global seeds, which are a fallback: what matters has its own.

    Where `is_strict` is False, torch may choose the fastest algorithms; all else stays.
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


def kernel_manifest(
    device: str, num_threads: int, compiled: str | None = None, attention: str | None = None
) -> dict[str, Any]:
    """Everything that the numbers depend on besides data, weights and configuration.

    `compiled` says what is, if anything; `attention` how it is computed, which a CPU has no choice in.
    """
    import numpy as np
    import torch

    return {
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": _processor(),
        "device": device if device == "cpu" else torch.cuda.get_device_name(device),
        "num_threads": num_threads,
        "capability": torch.backends.cpu.get_cpu_capability(),
        **({} if compiled is None else {"compiled": compiled}),
        **{name: os.environ[name] for name in NUMERIC if name in os.environ},
        **({} if device == "cpu" else _gpu_manifest(device)),
        **({} if device == "cpu" or attention is None else {"attention": attention}),
    }


def _gpu_manifest(device: str) -> dict[str, Any]:
    import torch
    import triton

    from kernels.framework.configurations import configuration_manifest
    from kernels.measure.rows import driver_version

    major, minor = torch.cuda.get_device_capability(device)
    return {
        "triton": triton.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "cublas": _cublas(),
        "nccl": ".".join(map(str, torch.cuda.nccl.version())) if torch.distributed.is_nccl_available() else None,
        "driver": driver_version(),
        "architecture": f"sm_{major}{minor}",
        "kernels": _kernels(),
        "launches": configuration_manifest(),
    }


def _cublas() -> str | None:
    found = (each for each in metadata.distributions() if (each.metadata["Name"] or "").startswith("nvidia-cublas"))
    return next((each.version for each in found), None)


def _kernels() -> str:
    """The digest of our kernels' source: tile sizes, warps, stages and dtypes all stand in it."""
    hasher = hashlib.sha256()
    root = Path(kernels.__path__[0])
    for path in sorted(root.rglob("*.py")):
        hasher.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return hasher.hexdigest()


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor()
