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
from pathlib import Path

import torch
from torch import Tensor

from kernels.framework.configurations import ANY_GPU, TABLE, Configuration, architecture_of, read_measured, trial
from kernels.framework.spec import Argument, KernelSpec
from kernels.measure.benchmark import milliseconds
from kernels.measure.parity import leaves, relative_error, run_with_gradients
from kernels.measure.rows import Measurement, Row, measure_missing, read_rows, timing_environment

MOST_WARPS, STAGES = 16, (1, 2, 3)
LEAST_GAIN = 0.02  # a smaller difference is noise, and the committed entry stays


def candidates(kernel: str, shape_class: str) -> list[Configuration]:
    """Return the entry for any GPU first, then half and twice its warps, each with one to three stages."""
    first = TABLE[kernel, shape_class, ANY_GPU]
    warps = {max(1, first.num_warps // 2), first.num_warps, min(MOST_WARPS, 2 * first.num_warps)}
    others = {Configuration(each, stages) for each in warps for stages in STAGES} - {first}
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


class _Candidate:
    """A candidate on one sample."""

    def __init__(
        self,
        spec: KernelSpec,
        arguments: tuple[Argument, ...],
        expected: dict[str, Tensor],
        entries: dict[tuple[str, str], Configuration],
    ) -> None:
        self.spec, self.arguments, self.expected, self.entries = spec, arguments, expected, entries

    def measure(self) -> Row:
        """Return milliseconds of forward with backward, or why the candidate does not count."""
        try:
            with trial(self.entries):
                wrong = self._wrong_output()
                if wrong:
                    return {"failed": wrong}
                call = lambda: run_with_gradients(self.spec.op, leaves(self.arguments))  # noqa: E731
                return {"forward_backward_ms": milliseconds(call, _device_of(self.arguments))}
        except Exception as error:  # more registers or shared memory than there are: a candidate, not the run
            return {"failed": f"{type(error).__name__}: {str(error)[:200]}"}

    def _wrong_output(self) -> str | None:
        actual = run_with_gradients(self.spec.op, leaves(self.arguments))
        for name, expected in self.expected.items():
            eps = torch.finfo(expected.dtype).eps if expected.is_floating_point() else 1.0
            error_eps = relative_error(actual.get(name), expected.double() if eps < 1 else expected) / eps
            if not error_eps <= self.spec.tolerance_of(name):
                return f"{name} is {error_eps:.1f} eps from the committed configuration's"
        return None


def _measurements(spec: KernelSpec, device: torch.device, seed: int, here: Row) -> Iterator[Measurement]:
    """Yield each candidate of each launch of an operation's samples, one launch changed at a time."""
    for dtype in spec.dtypes:
        for case in spec.real_cases if device.type == "cuda" else spec.cases[:1]:
            arguments = spec.sample_inputs(torch.Generator(device).manual_seed(seed), dtype, case)
            with trial({}) as requests:
                expected = run_with_gradients(spec.op, leaves(arguments))
                launches = sorted(requests)
            sample = {"case": case.label, "dtype": str(dtype).removeprefix("torch."), **here}
            for kernel, shape_class in launches:
                for entry in candidates(kernel, shape_class):
                    row = {"kernel": kernel, "shape_class": shape_class, **sample}
                    row |= {"num_warps": entry.num_warps, "num_stages": entry.num_stages}
                    candidate = _Candidate(spec, arguments, expected, {(kernel, shape_class): entry})
                    yield Measurement(row, lambda left, candidate=candidate: candidate.measure())  # type: ignore[misc]


def _device_of(arguments: tuple[Argument, ...]) -> str:
    return next(each.device.type for each in arguments if isinstance(each, Tensor))


def write_table(path: Path, rows: list[Row], operations: list[str]) -> list[Row]:
    """Replace the entries of these operations and architectures in the table `path` by those of the rows; return all entries.

    Sorted and without a clock: the same rows give the same bytes.
    """
    kept = {
        key: {"num_warps": each.num_warps, "num_stages": each.num_stages} for key, each in read_measured(path).items()
    }
    origins = json.loads(path.read_text())["measured_on"] if path.exists() else {}
    measured = {(str(row["kernel"]), str(row["shape_class"]), int(str(row["sm"]))): row for row in rows}
    for key, row in measured.items():
        if key[0].split(".")[0] in operations:
            best = _fastest([each for each in rows if _belongs(each, key)])
            kept[key] = {"num_warps": best.num_warps, "num_stages": best.num_stages}
            names = ("gpu", "cuda", "driver", "torch", "triton")
            origins[f"sm{key[2]}"] = {name: row[name] for name in names if name in row}
    entries: list[Row] = [
        {"kernel": kernel, "shape_class": shape, "sm": sm, **kept[kernel, shape, sm]}
        for kernel, shape, sm in sorted(kept)
    ]
    whole = {"measured_on": origins, "configurations": entries}
    path.write_text(json.dumps(whole, indent=1, sort_keys=True) + "\n")
    return entries


def _belongs(row: Row, key: tuple[str, str, int]) -> bool:
    return (row["kernel"], row["shape_class"], row["sm"]) == key


def _fastest(rows: list[Row]) -> Configuration:
    """Return the candidate with the least mean logarithm of time over all samples, of those that failed on none."""
    samples = {(row["dtype"], row["case"]) for row in rows}
    first = candidates(str(rows[0]["kernel"]), str(rows[0]["shape_class"]))[0]
    costs: dict[Configuration, float] = {}
    for entry in candidates(str(rows[0]["kernel"]), str(rows[0]["shape_class"])):
        own = [row for row in rows if (row["num_warps"], row["num_stages"]) == (entry.num_warps, entry.num_stages)]
        times = {(row["dtype"], row["case"]): _median(row) for row in own if "failed" not in row}
        if times.keys() == samples:
            costs[entry] = sum(map(math.log, times.values())) / len(samples)
    best = min(costs, key=lambda entry: costs[entry], default=first)
    is_worth_it = first not in costs or costs[best] < costs[first] + math.log1p(-LEAST_GAIN)
    return best if is_worth_it else first


def _median(row: Row) -> float:
    times = row["forward_backward_ms"]
    assert isinstance(times, dict)
    return float(times["median"])
