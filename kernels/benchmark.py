"""How long each operation takes on the GPU at hand, beside its reference, the compiled reference and public kernels.

One row for each operation, dtype, size and implementation, appended to a file of JSON lines as soon as it is measured, so
that a run that was cut short goes on at the first row that is missing. A row names the GPU, driver, torch and Triton.
"""

import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from kernels.backend import HAS_TRITON, triton
from kernels.parity import leaves, run_with_gradients
from kernels.spec import KernelSpec, Operation, ShapeCase

NUM_REPEATS = 20


def surroundings() -> dict[str, str]:
    """What a timing depends on besides the code."""
    versions = {"torch": torch.__version__, "triton": triton.__version__ if HAS_TRITON else "not installed"}
    if not torch.cuda.is_available():
        return {"gpu": "none: Triton's interpreter, timings mean nothing", **versions}
    return {"gpu": torch.cuda.get_device_name(), "cuda": str(torch.version.cuda), "driver": _driver(), **versions}


def run_benchmark(
    specs: list[KernelSpec], output: Path, budget_seconds: float, seed: int
) -> Iterator[dict[str, object]]:
    """Measure the rows that `output` lacks until the budget is spent; append and yield each."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    here = surroundings()
    done = {_key(json.loads(line)) for line in output.read_text().splitlines()} if output.exists() else set()
    start = time.monotonic()
    for row, operation, arguments in _rows(specs, device, seed):
        row = {**row, **here}
        if _key(row) in done:
            continue
        if time.monotonic() - start > budget_seconds:
            return
        row |= _timings(operation, arguments, device)
        with output.open("a") as file:
            file.write(json.dumps(row, sort_keys=True) + "\n")
        yield row


def _key(row: dict[str, object]) -> tuple[object, ...]:
    return tuple(row.get(name) for name in ("kernel", "dtype", "case", "implementation", "gpu", "torch", "triton"))


def _rows(specs: list[KernelSpec], device: str, seed: int) -> Iterator[tuple[dict[str, object], Callable, Callable]]:
    """Each row's names, its implementation (made when it runs) and its arguments (drawn when it runs)."""
    for spec in specs:
        for dtype in spec.dtypes:
            for case in spec.real_cases if device == "cuda" else spec.cases[:1]:
                for name, make in _implementations(spec).items():
                    row = {"kernel": spec.name, "dtype": str(dtype).removeprefix("torch."), "case": case.label}

                    def draw(spec: KernelSpec = spec, dtype: torch.dtype = dtype, case: ShapeCase = case) -> tuple:
                        generator = torch.Generator(device).manual_seed(seed)
                        return leaves(spec.sample_inputs(generator, dtype, case))

                    yield {**row, "implementation": name}, make, draw


def _implementations(spec: KernelSpec) -> dict[str, Callable[[], Operation]]:
    return {
        "kernel": lambda: spec.op,
        "reference": lambda: spec.reference,
        "compiled reference": lambda: torch.compile(spec.reference),
        **spec.peers,
    }


def _timings(make: Callable[[], Operation], draw: Callable[[], tuple], device: str) -> dict[str, object]:
    """Milliseconds of forward and of forward with backward: median and least. A failure is a row too."""
    try:
        operation, arguments = make(), draw()
        return {
            "forward_ms": milliseconds(lambda: operation(*arguments), device),
            "forward_backward_ms": milliseconds(lambda: run_with_gradients(operation, arguments), device),
        }
    except ModuleNotFoundError as error:
        return {"failed": f"not installed: {error.name}"}
    except Exception as error:  # a peer that is missing or fails must not end the run
        return {"failed": f"{type(error).__name__}: {str(error)[:200]}"}


def milliseconds(call: Callable[[], object], device: str) -> dict[str, float]:
    """Median and least milliseconds of a call on the GPU; on a CPU of one call, which means nothing."""
    if device == "cpu":
        start = time.perf_counter()
        call()
        return {"median": 1e3 * (time.perf_counter() - start)}
    for _ in range(3):
        call()
    times = []
    for _ in range(NUM_REPEATS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return {"median": statistics.median(times), "least": min(times)}


def _driver() -> str:
    try:
        return Path("/sys/module/nvidia/version").read_text().strip()
    except OSError:
        return "unknown"
