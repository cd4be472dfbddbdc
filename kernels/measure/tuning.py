"""Tuning: times all candidate numbers of warps and stages on a GPU over the real cases, and writes the table of the fastest.

One row for each launch, candidate, dtype and size, appended to a file of JSON lines as soon as it is measured, so that an
interrupted run continues at the first missing row. A candidate counts only if its outputs and gradients are within the
operation's tolerance of those of the committed configuration, whose own parity `python -m kernels parity` checks.
A kernel is timed within its whole operation, forward and backward, with every other launch as committed.
"""

import json
import math
import time
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path

import torch
from torch import Tensor

from kernels.framework.backend import dtype_name
from kernels.framework.configurations import ANY_GPU, TABLE, Configuration, Key, architecture_of, read_measured, trial
from kernels.framework.spec import Argument, KernelSpec
from kernels.measure.benchmark import milliseconds
from kernels.measure.measurements import Measurement, Row, measure_missing, read_rows, timing_environment
from kernels.measure.parity import leaves, relative_error, run_with_gradients

MOST_WARPS, STAGE_COUNTS = 16, (1, 2, 3)
LEAST_GAIN = 0.02  # a smaller difference is noise, and the committed entry stays


def candidates(kernel: str, shape_class: str) -> list[Configuration]:
    """Return the entry for any GPU first, then half and twice its warps, each with one to three stages."""
    first = TABLE[kernel, shape_class, ANY_GPU]
    warps = {max(1, first.num_warps // 2), first.num_warps, min(MOST_WARPS, 2 * first.num_warps)}
    others = {Configuration(each, stages) for each in warps for stages in STAGE_COUNTS} - {first}
    return [first, *sorted(others, key=lambda each: (each.num_warps, each.num_stages))]


def run_tuning(specs: list[KernelSpec], output: Path, budget_seconds: float, seed: int) -> Iterator[Row]:
    """Measure the rows that are missing in `output` until the budget is spent; append and yield each.

    At the end of each operation also yields a row {"finished": name}, which is not written.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    here = {**timing_environment(), "sm": architecture_of(device)}
    done, start = read_rows(output, here), time.monotonic()
    for spec in specs:
        left = budget_seconds - (time.monotonic() - start)
        if not (yield from measure_missing(_measurements(spec, device, seed, here), output, done, left)):
            return
        yield {"finished": spec.name}


def _measurements(spec: KernelSpec, device: torch.device, seed: int, here: Row) -> Iterator[Measurement]:
    """Yield each candidate of each launch of an operation's samples, one launch changed at a time."""
    for dtype, case in product(spec.dtypes, spec.real_cases if device.type == "cuda" else spec.cases[:1]):
        arguments = spec.sample_inputs(torch.Generator(device).manual_seed(seed), dtype, case)
        with trial({}) as requests:
            expected = run_with_gradients(spec.op, leaves(arguments))
            launches = sorted(requests)
        sample = {"case": case.label, "dtype": dtype_name(dtype), **here}
        for kernel, shape_class in launches:
            for entry in candidates(kernel, shape_class):
                row = {"kernel": kernel, "shape_class": shape_class, **sample}
                row |= {"num_warps": entry.num_warps, "num_stages": entry.num_stages}
                yield Measurement(row, partial(_measure, spec, arguments, expected, {(kernel, shape_class): entry}))


def _measure(
    spec: KernelSpec,
    arguments: tuple[Argument, ...],
    expected: dict[str, Tensor],
    entries: dict[tuple[str, str], Configuration],
    seconds_left: float,
) -> Row:
    """Return milliseconds of forward with backward of a candidate on one sample, or why the candidate does not count."""

    def run() -> dict[str, Tensor]:
        return run_with_gradients(spec.op, leaves(arguments))

    try:
        with trial(entries):
            wrong = _wrong_output(spec, run(), expected)
            device = next(iter(expected.values())).device.type
            return {"failed": wrong} if wrong else {"forward_backward_ms": milliseconds(run, device)}
    except Exception as error:  # more registers or shared memory than there are: a candidate, not the run
        return {"failed": f"{type(error).__name__}: {str(error)[:200]}"}


def _wrong_output(spec: KernelSpec, actual: dict[str, Tensor], expected: dict[str, Tensor]) -> str | None:
    for name, tensor in expected.items():
        eps = torch.finfo(tensor.dtype).eps if tensor.is_floating_point() else 1.0
        error_eps = relative_error(actual.get(name), tensor.double() if eps < 1 else tensor) / eps
        if not error_eps <= spec.tolerance_of(name):
            return f"{name} is {error_eps:.1f} eps from the committed configuration's"
    return None


def write_tuning_table(path: Path, rows: list[Row], operations: list[str]) -> list[Row]:
    """Replace the entries of these operations and architectures in the table `path` by those of the rows; return all entries.

    Sorted and without a clock: the same rows give the same bytes.
    """
    measured: dict[Key, list[Row]] = {}
    for row in rows:
        if row["kernel"].split(".")[0] in operations:
            measured.setdefault((row["kernel"], row["shape_class"], row["sm"]), []).append(row)
    table = read_measured(path) | {key: _fastest(own) for key, own in measured.items()}
    origins = json.loads(path.read_text(encoding="utf-8"))["measured_on"] if path.exists() else {}
    for (_, _, sm), own in measured.items():
        names = ("gpu", "cuda", "driver", "torch", "triton")
        origins[f"sm{sm}"] = {name: own[-1][name] for name in names if name in own[-1]}
    entries: list[Row] = [
        dict(zip(("kernel", "shape_class", "sm"), key, strict=True))
        | {"num_warps": entry.num_warps, "num_stages": entry.num_stages}
        for key, entry in sorted(table.items())
    ]
    whole = {"measured_on": origins, "configurations": entries}
    path.write_text(json.dumps(whole, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return entries


def _fastest(rows: list[Row]) -> Configuration:
    """Return the candidate with the least mean logarithm of time over all samples, of those that failed on none."""
    samples = {(row["dtype"], row["case"]) for row in rows}
    first, *others = candidates(rows[0]["kernel"], rows[0]["shape_class"])
    times: dict[Configuration, dict[tuple[str, str], float]] = {entry: {} for entry in (first, *others)}
    for row in rows:
        entry = Configuration(row["num_warps"], row["num_stages"])
        if entry in times and "failed" not in row:
            times[entry][row["dtype"], row["case"]] = row["forward_backward_ms"]["median"]
    costs = {
        entry: sum(map(math.log, found.values())) / len(samples)
        for entry, found in times.items()
        if found.keys() == samples
    }
    best = min(costs, key=costs.__getitem__, default=first)
    is_worth_it = first not in costs or costs[best] < costs[first] + math.log1p(-LEAST_GAIN)
    return best if is_worth_it else first
