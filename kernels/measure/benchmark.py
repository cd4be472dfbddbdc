"""How long each operation takes on the GPU at hand, beside its reference, the compiled reference and public kernels.

One row for each operation, dtype, size and implementation, appended to a file of JSON lines as soon as it is measured, so
that a run that was cut short goes on at the first row that is missing. A row names the GPU, driver, torch and Triton. Without
a GPU the same rows come from Triton's interpreter, at the smallest size of each operation: they are marked as dry.
"""

import math
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from kernels.framework.spec import Argument, KernelSpec, Operation, ShapeCase
from kernels.measure.parity import leaves, run_with_gradients
from kernels.measure.rows import append, read_rows, surroundings

NUM_REPEATS, NUM_LEAST_REPEATS, REPEATING_SECONDS = 20, 5, 5.0
ROW_SECONDS = 180.0
"""What one row may take. A compiler that writes out a long loop ends in hours, if at all."""


class RowTimeoutError(BaseException):
    """A row did not end in its time. No Exception: a compiler that is at work would take one for a failure of its own."""


def run_benchmark(
    specs: list[KernelSpec], output: Path, budget_seconds: float, seed: int
) -> Iterator[dict[str, object]]:
    """Measure the rows that `output` lacks, or that failed, until the budget is spent; append and yield each."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    here = surroundings()
    done = {_key(row) for row in rows_here(output) if not has_failed(row)}
    start = time.monotonic()
    for row, operation, arguments in _rows(specs, device, seed):
        row = {**row, **here}
        if _key(row) in done:
            continue
        left = budget_seconds - (time.monotonic() - start)
        if left <= 0:
            return
        try:
            with _time_limit(min(left, ROW_SECONDS)):
                row |= _timings(operation, arguments, device)
        except RowTimeoutError:
            if left < ROW_SECONDS:  # the run's time is over and not the row's
                return
            row["failed"] = f"no end within {ROW_SECONDS:.0f} s"
        append(output, row)
        yield row


def rows_here(output: Path) -> list[dict[str, object]]:
    """What the file says of these surroundings; of a row that was measured again, the last."""
    return list({_key(row): row for row in read_rows(output, surroundings())}.values())


def has_failed(row: dict[str, object]) -> bool:
    """Whether it is one of our own operations that failed. A peer may be missing, and a size more than the memory holds."""
    words = str(row.get("failed", ""))
    return row["implementation"] == "kernel" and bool(words) and "out of memory" not in words


def _key(row: dict[str, object]) -> tuple[object, ...]:
    return tuple(row.get(name) for name in ("kernel", "dtype", "case", "implementation"))


def _rows(specs: list[KernelSpec], device: str, seed: int) -> Iterator[tuple[dict[str, object], Callable, Callable]]:
    """Each row's names, its implementation (made when it runs) and its arguments (drawn when it runs)."""
    for spec in specs:
        for dtype in spec.dtypes:
            for case in spec.real_cases if device == "cuda" else (smallest_case(spec),):
                for name, make in _implementations(spec, device).items():
                    row = {"kernel": spec.name, "dtype": str(dtype).removeprefix("torch."), "case": case.label}

                    def draw(spec: KernelSpec = spec, dtype: torch.dtype = dtype, case: ShapeCase = case) -> tuple:
                        generator = torch.Generator(device).manual_seed(seed)
                        return leaves(spec.sample_inputs(generator, dtype, case))

                    yield {**row, "implementation": name}, make, draw


def smallest_case(spec: KernelSpec) -> ShapeCase:
    """The case of the fewest elements: the interpreter takes a millisecond for each program."""
    return min(spec.cases, key=lambda case: math.prod(case.sizes))


def _implementations(spec: KernelSpec, device: str) -> dict[str, Callable[[], Operation]]:
    backend = "inductor" if device == "cuda" else "aot_eager"  # which makes the same graphs, and no code
    compiled = {"compiled reference": lambda: torch.compile(spec.reference, backend=backend)}
    return {
        "kernel": lambda: spec.op,
        "reference": lambda: spec.reference,
        **({} if spec.has_serial_reference else compiled),
        **spec.peers,
    }


def _timings(make: Callable[[], Operation], draw: Callable[[], tuple], device: str) -> dict[str, object]:
    """Milliseconds of forward and of forward with backward, and what the latter holds in memory. A failure is a row too."""
    try:
        operation, arguments = make(), draw()

        def both() -> dict[str, torch.Tensor]:
            return run_with_gradients(operation, _without_gradients(arguments))

        return {
            "forward_ms": milliseconds(lambda: operation(*arguments), device),
            "forward_backward_ms": milliseconds(both, device),
            "extra_bytes": extra_bytes(both) if device == "cuda" else None,
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
    times, began = [], time.monotonic()
    while len(times) < NUM_REPEATS and (len(times) < NUM_LEAST_REPEATS or time.monotonic() - began < REPEATING_SECONDS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return {"median": statistics.median(times), "least": min(times)}


def extra_bytes(call: Callable[[], dict[str, torch.Tensor]]) -> int:
    """Memory of the GPU that a forward and backward pass holds at its peak, beyond its inputs, outputs and gradients."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    kept = sum(tensor.nbytes for tensor in call().values())
    return torch.cuda.max_memory_allocated() - before - kept


def _without_gradients(arguments: tuple[Argument, ...]) -> tuple[Argument, ...]:
    for argument in arguments:
        if isinstance(argument, torch.Tensor):
            argument.grad = None
    return arguments


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise RowTimeoutError in the main thread when the time is over."""

    def end(number: int, frame: object) -> None:
        raise RowTimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
