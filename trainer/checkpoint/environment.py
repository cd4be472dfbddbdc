"""The environment of a run: machine, library versions and kernels, on which the numbers depend besides data and configuration.

A checkpoint and result.json hold it, a resume compares it, and `trainer doctor` prints it.
"""

import hashlib
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch

import kernels

NUMERIC_VARIABLES = ("MKL_CBWR", "MKL_DYNAMIC", "MKL_ENABLE_INSTRUCTIONS", "OMP_DYNAMIC", "ONEDNN_MAX_CPU_ISA")
"""Variables by which libraries choose other instructions or threads. Those that are set are part of the environment."""


def describe_environment(
    device: str, num_threads: int, compiled: str | None = None, attention: str | None = None
) -> dict[str, Any]:
    """Describe the environment of this process. `compiled` names the compilation, `attention` the backend on a GPU."""
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
        **{name: os.environ[name] for name in NUMERIC_VARIABLES if name in os.environ},
        **({} if device == "cpu" else _describe_gpu(device)),
        **({} if device == "cpu" or attention is None else {"attention": attention}),
    }


def _describe_gpu(device: str) -> dict[str, Any]:
    import triton

    from kernels.framework.configurations import configuration_manifest
    from kernels.measure.measurements import driver_version

    major, minor = torch.cuda.get_device_capability(device)
    return {
        "triton": triton.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "cublas": next((each.version for each in metadata.distributions() if _is_cublas(each)), None),
        "nccl": ".".join(map(str, torch.cuda.nccl.version())) if torch.distributed.is_nccl_available() else None,
        "driver": driver_version(),
        "architecture": f"sm_{major}{minor}",
        "kernels": _digest_kernels(),
        "launches": configuration_manifest(),
    }


def _is_cublas(distribution: metadata.Distribution) -> bool:
    return (distribution.metadata["Name"] or "").startswith("nvidia-cublas")


def _digest_kernels() -> str:
    """Return the digest of our kernels' source, which holds tile sizes, warps, stages and dtypes."""
    hasher = hashlib.sha256()
    root = Path(kernels.__path__[0])
    for path in sorted(root.rglob("*.py")):
        hasher.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return hasher.hexdigest()


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
