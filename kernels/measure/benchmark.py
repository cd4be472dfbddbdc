"""Benchmark: time of each operation on a GPU, compared with its reference, the compiled reference and public kernels.

One row for each operation, dtype, size and implementation, appended to a file of JSON lines as soon as it is measured, so
that an interrupted run continues at the first missing row. A row names the GPU, driver, torch and Triton. Without a GPU the
same rows come from Triton's interpreter, at the smallest size of each operation: they are marked as dry.
"""

import math
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path

import torch

from kernels.framework.backend import dtype_name
from kernels.framework.spec import Argument, KernelSpec, Operation, ShapeCase
from kernels.measure.measurements import Measurement, Row, measure_missing, read_rows, timing_environment
from kernels.measure.parity import incoming_gradients, leaves, run_with_gradients

NUM_REPEATS, NUM_LEAST_REPEATS, REPEATING_SECONDS = 20, 5, 5.0
AHEAD_CYCLES = 30_000_000
"""Of a GPU that waits, about 15 ms: longer than Python takes for the launches of a call."""
ROW_SECONDS = 180.0
"""Limit of one row. A compiler that unrolls a long loop takes hours, if it ends."""


class RowTimeoutError(BaseException):
    """A row exceeded its time. Not an Exception: a compiler at work would take that for a failure of its own."""


def run_benchmark(specs: list[KernelSpec], output: Path, budget_seconds: float, seed: int) -> Iterator[Row]:
    """Measure the rows that are missing in `output`, or that failed, until the budget is spent; append and yield each."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    done = [row for row in rows_here(output) if not has_failed(row)]
    return measure_missing(_measurements(specs, device, seed), output, done, budget_seconds)


def rows_here(output: Path) -> list[Row]:
    """Return the rows of the file for this GPU and these versions; of a row that was measured again, the last."""
    key = ("kernel", "dtype", "case", "implementation")
    return list({tuple(map(row.get, key)): row for row in read_rows(output, timing_environment())}.values())


def has_failed(row: Row) -> bool:
    """Return whether one of our own operations failed. A peer may be missing, and a size may exceed the memory."""
    failure = str(row.get("failed", ""))
    return row["implementation"] == "kernel" and bool(failure) and "out of memory" not in failure


def _measurements(specs: list[KernelSpec], device: str, seed: int) -> Iterator[Measurement]:
    def draw(spec: KernelSpec, dtype: torch.dtype, case: ShapeCase) -> tuple[Argument, ...]:
        return leaves(spec.sample_inputs(torch.Generator(device).manual_seed(seed), dtype, case))

    for spec in specs:
        for dtype, case in product(spec.dtypes, spec.real_cases if device == "cuda" else [smallest_case(spec)]):
            row = {"kernel": spec.name, "dtype": dtype_name(dtype), "case": case.label, **timing_environment()}
            for name, make in _implementations(spec, device).items():
                measure = partial(_timings_within, make, partial(draw, spec, dtype, case), device)
                yield Measurement({**row, "implementation": name}, measure)


def _timings_within(make: Callable, draw: Callable, device: str, seconds_left: float) -> Row | None:
    try:
        with _time_limit(min(seconds_left, ROW_SECONDS)):
            return _timings(make, draw, device)
    except RowTimeoutError:  # of the run, if it had less time left than a row may take
        return None if seconds_left < ROW_SECONDS else {"failed": f"no end within {ROW_SECONDS:.0f} s"}


def smallest_case(spec: KernelSpec) -> ShapeCase:
    """Return the case of the fewest elements: the interpreter takes a millisecond for each program."""
    return min(spec.cases, key=lambda case: math.prod(case.sizes))


def _implementations(spec: KernelSpec, device: str) -> dict[str, Callable[[], Operation]]:
    backend = "inductor" if device == "cuda" else "aot_eager"  # the same graphs, without code
    compiled = {"compiled reference": lambda: torch.compile(spec.reference, backend=backend)}
    return {
        "kernel": lambda: spec.op,
        "reference": lambda: spec.reference,
        **({} if spec.has_serial_reference else compiled),
        **spec.peers,
    }


def _timings(make: Callable[[], Operation], draw: Callable[[], tuple], device: str) -> Row:
    """Return milliseconds of forward and of forward with backward, and the memory of the latter. A failure is a row too.

    `forward_backward_ms` is of a call by itself, in which a GPU may wait for launches; `forward_backward_device_ms` is of one
    whose launches are ahead of the GPU, as they are in a training.
    """
    try:
        operation, arguments = make(), draw()
        result = operation(*arguments)
        incoming = incoming_gradients([result] if isinstance(result, torch.Tensor) else result)
        del result

        def both() -> dict[str, torch.Tensor]:
            for argument in arguments:
                if isinstance(argument, torch.Tensor):
                    argument.grad = None
            return run_with_gradients(operation, arguments, incoming)

        return {
            "forward_ms": milliseconds(lambda: operation(*arguments), device),
            "forward_backward_ms": milliseconds(both, device),
            "forward_backward_device_ms": milliseconds(both, device, is_ahead=True),
            "extra_bytes": extra_bytes(both) if device == "cuda" else None,
        }
    except ModuleNotFoundError as error:
        return {"failed": f"not installed: {error.name}"}
    except Exception as error:  # a peer that is missing or fails must not end the run
        return {"failed": f"{type(error).__name__}: {str(error)[:200]}"}


def milliseconds(call: Callable[[], object], device: str, is_ahead: bool = False) -> dict[str, float]:
    """Return median and least milliseconds of a call on the GPU; on a CPU those of one call, which mean nothing.

    With `is_ahead` the GPU is given something to wait for first, so that it waits for no launch of the call.
    """
    if device == "cpu":
        start = time.perf_counter()
        call()
        return {"median": 1e3 * (time.perf_counter() - start)}
    for _ in range(3):
        call()
    times, began = [], time.monotonic()
    while len(times) < NUM_REPEATS and (len(times) < NUM_LEAST_REPEATS or time.monotonic() - began < REPEATING_SECONDS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        if is_ahead:
            torch.cuda._sleep(AHEAD_CYCLES)
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return {"median": statistics.median(times), "least": min(times)}


def extra_bytes(call: Callable[[], dict[str, torch.Tensor]]) -> int:
    """Return the peak GPU memory of a forward and backward pass, beyond its inputs, outputs and gradients."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    kept = sum(tensor.nbytes for tensor in call().values())
    return torch.cuda.max_memory_allocated() - before - kept


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
