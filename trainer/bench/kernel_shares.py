"""Shares of kernels in one training step, by torch's profiler: where the time of a row of `python -m trainer bench` goes."""

from collections.abc import Callable
from typing import Any

from torch.profiler import ProfilerActivity, profile

NUM_KERNELS = 15


def measure_kernel_shares(step: Callable[[], object], device: str) -> list[dict[str, Any]]:
    """Run a step once more and return the kernels of most time, first the slowest: name, launches, milliseconds and share of all.

    On a CPU they are torch's operations, each without those that it calls.
    """
    is_gpu = device == "cuda"
    with profile(activities=[ProfilerActivity.CUDA if is_gpu else ProfilerActivity.CPU]) as profiled:
        step()
    events = profiled.key_averages()
    milliseconds = {
        event.key: (event.self_device_time_total if is_gpu else event.self_cpu_time_total) / 1e3 for event in events
    }
    launches = {event.key: event.count for event in events}
    total = sum(milliseconds.values()) or 1.0
    slowest = sorted(milliseconds, key=lambda name: (-milliseconds[name], name))[:NUM_KERNELS]
    return [
        {
            "kernel": name[:120],
            "launches": launches[name],
            "milliseconds": round(milliseconds[name], 3),
            "share": round(milliseconds[name] / total, 4),
        }
        for name in slowest
    ]
