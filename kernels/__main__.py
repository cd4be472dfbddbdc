"""Commands: `python -m kernels parity` compares every kernel with its reference, on a GPU or in Triton's interpreter.

`python -m kernels benchmark` times each on a GPU, and its reference, row by row.

`python -m kernels tune` times the launch configurations on the GPU and writes the table `kernels/framework/configurations.json`.
"""

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupted import ends the process without a traceback

import argparse
import dataclasses
import difflib
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from kernels.framework.spec import KernelSpec
    from kernels.measure.parity import ParityResult

SEED = 42
_TAKEN_BY = {
    "interpret": ("benchmark",),
    "dry_run": ("tune",),
    "table": ("tune",),
    "processes": ("parity",),
    "output": ("benchmark", "tune"),
    "budget": ("benchmark", "tune"),
}
"""Options that not all commands take -> those that do."""


def main() -> int:
    """Run the command that the arguments name; see `--help`, which loads no torch."""
    parser = _parser()
    arguments, refuse = parser.parse_args(), parser.error
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        # Triton reads this when it decorates a kernel, hence before the imports below and in other functions.
        os.environ["TRITON_INTERPRET"] = "1"
    from kernels.framework.spec import all_specs

    specs = [spec for spec in all_specs() if arguments.only in (None, spec.name)]
    if not specs:
        known = [spec.name for spec in all_specs()]
        near = " or ".join(difflib.get_close_matches(arguments.only[:100], known, 2))
        refuse(f"no kernel named {arguments.only!r}; expected {near or 'one of ' + ', '.join(known)}")
    is_tuning = arguments.command == "tune"
    if arguments.command == "parity":
        return _report_parity(specs, device, arguments)
    arguments.output = arguments.output or Path("tuning.jsonl" if is_tuning else "kernels.jsonl")
    remedy = "--dry-run" if is_tuning else "--interpret"
    if device == "cpu" and not (arguments.dry_run if is_tuning else arguments.interpret):
        why = "torch sees no CUDA device; timings need one"
        parser.refuse(f"{arguments.command}: {why}. {remedy} runs the rows without a GPU.", 1)
    try:
        flaw = _flaw_of_output(arguments.output, device, "shape_class" if is_tuning else "implementation")
        flaw = flaw or (_flaw_of_table(arguments.table, arguments.output, device) if arguments.table else "")
    except (OSError, RuntimeError) as error:  # of a circle of links, or of what this user may not see
        flaw = f"{arguments.output}: {error}; name another file"
    if flaw:
        refuse(flaw)
    return _report_tuning(specs, arguments) if is_tuning else _report_benchmark(specs, arguments)


def _flaw_of_output(output: Path, device: str, field: str) -> str:
    """Return why rows with a field of one command must not be appended to a file, or nothing."""
    from kernels.measure.measurements import COMMITTED, can_be_file, first_bad_line

    option, place = f"--output {output}", output.resolve()
    if not can_be_file(place):
        kind = "a folder" if place.is_dir() else "no file that can be read again" if place.exists() else "below a file"
        return f"{option}: it is {kind}; expected a file, or a new name"
    if device == "cpu" and COMMITTED.resolve() in place.parents:
        return f"{option}: it is among the measurements of GPUs; name a file elsewhere"
    if any((folder / "format").is_file() and (folder / "objects").is_dir() for folder in place.parents):
        return f"{option}: it is within a store; name a file elsewhere"
    if number := first_bad_line(output, ("kernel", field)):
        return f"{option}: line {number} is no row; expected rows that this command wrote; name another file"
    return ""


def _flaw_of_table(table: Path, output: Path, device: str) -> str:
    """Return why configurations must not be written to a file, or nothing."""
    from kernels.framework.configurations import MEASURED_PATH, is_table

    if device == "cpu" and table.resolve() == MEASURED_PATH:
        return f"--table {table}: the committed table holds measurements of a GPU; name another file"
    if table.resolve() == output.resolve():
        return f"--table {table}: its rows go there by --output; name another file"
    if not is_table(table):
        return f"--table {table}: it holds no table of configurations; name another file, or a new one in a folder"
    return ""


class _KernelsParser(argparse.ArgumentParser):
    """An argument parser whose errors are one sentence that names the next command, and JSON with `--json`."""

    def error(self, message: str) -> NoReturn:
        end = "" if message.endswith("?") else "."
        self.refuse(f"{self.prog}: {message}{end} `{self.prog} --help` describes its arguments.", 2)

    def refuse(self, message: str, code: int) -> NoReturn:
        """End the process with a message on stderr, and with `--json` on stdout as the other command lines have it."""
        if "--json" in sys.argv[1:]:
            print(json.dumps({"error": "UsageError" if code == 2 else "DeviceError", "message": message}), flush=True)
        self.exit(code, f"error: {message}\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse what is not known, and an option of another command."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            near = _near(unknown[0].partition("=")[0], self._option_string_actions)
            self.error(f"found {' '.join(unknown)[:1000]!r}; expected one command and options{near}")
        for name, commands in _TAKEN_BY.items():
            if getattr(options, name) != self.get_default(name) and options.command not in commands:
                self.error(
                    f"found --{name.replace('_', '-')} with {options.command}; expected it with {' or '.join(commands)}"
                )
        return options, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            found = f"found {str(value)[:1000]!r}; expected one of {', '.join(action.choices)}"
            raise argparse.ArgumentError(action, f"{found}{_near(value, action.choices)}")


def _near(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name[:100], list(known), 2)
    return f". Did you mean {' or '.join(near)}?" if near else ""


def _seconds(text: str) -> float:
    """Parse an argument: a number of seconds above zero."""
    if not (text.replace(".", "", 1).isdecimal() and float(text) > 0):
        raise argparse.ArgumentTypeError(f"found {text!r}; expected seconds, a number above 0")
    return float(text)


def _count(text: str) -> int:
    """Parse an argument: a number of processes."""
    if not (text.isdecimal() and 1 <= int(text) <= 64):
        raise argparse.ArgumentTypeError(f"found {text!r}; expected processes, 1 to 64")
    return int(text)


def _parser() -> _KernelsParser:
    parser = _KernelsParser(prog="python -m kernels", description=__doc__)
    parser.add_argument("command", nargs="?", choices=["benchmark", "parity", "tune"], default="benchmark")
    parser.add_argument("--only", help="one kernel, by its name")
    parser.add_argument(
        "--json", action="store_true", help="print JSON on stdout: one line per row, or one list of comparisons"
    )
    parser.add_argument(
        "--output",
        type=Path,
        help="file to append rows to (default: kernels.jsonl, or tuning.jsonl)",
    )
    parser.add_argument(
        "--processes",
        type=_count,
        default=1,
        help="processes that compare at the same time, as most of it is compiling; they share the memory of the GPU",
    )
    parser.add_argument("--budget", type=_seconds, default=480.0, help="seconds after which no further row is measured")
    parser.add_argument("--interpret", action="store_true", help="benchmark without a GPU: tiny sizes, untimed")
    parser.add_argument("--dry-run", action="store_true", help="tune without a GPU: tiny sizes; no table but --table")
    parser.add_argument("--table", type=Path, help="where tune writes (default: the committed table)")
    return parser


def _report_tuning(specs: "list[KernelSpec]", arguments: argparse.Namespace) -> int:
    """Print each row as it is measured, then write the table of the operations that were finished."""
    from kernels.framework.configurations import MEASURED_PATH
    from kernels.measure.measurements import read_rows, timing_environment
    from kernels.measure.tuning import run_tuning, write_tuning_table

    finished: list[str] = []
    for row in run_tuning(specs, arguments.output, arguments.budget, SEED):
        if "finished" in row:
            finished.append(str(row["finished"]))
            continue
        line = " ".join(str(row[name]) for name in ("kernel", "shape_class", "dtype", "case"))
        line += (
            f" warps {row['num_warps']} stages {row['num_stages']}: {row.get('failed') or row['forward_backward_ms']}"
        )
        print(json.dumps(row, sort_keys=True) if arguments.json else line, flush=True)
    table = arguments.table or (None if arguments.dry_run else MEASURED_PATH)
    if table and finished:
        entries = write_tuning_table(table, read_rows(arguments.output, timing_environment()), finished)
        print(f"tune: {len(entries)} entries in {table}", file=sys.stderr)
    missing = [spec.name for spec in specs if spec.name not in finished]
    if missing:
        print(f"tune: budget spent before {', '.join(missing)}; the same command continues there", file=sys.stderr)
    return 0


def _report_benchmark(specs: "list[KernelSpec]", arguments: argparse.Namespace) -> int:
    """Print each row as it is measured; the exit status is 1 if one of our own implementations failed."""
    from kernels.measure.benchmark import has_failed, rows_here, run_benchmark

    for row in run_benchmark(specs, arguments.output, arguments.budget, SEED):
        line = f"{row['kernel']} {row['dtype']} {row['case']} {row['implementation']}: "
        line += str(row.get("failed") or row.get("forward_backward_ms"))
        print(json.dumps(row, sort_keys=True) if arguments.json else line, flush=True)
    return int(any(map(has_failed, rows_here(arguments.output))))


def _report_parity(specs: "list[KernelSpec]", device: str, arguments: argparse.Namespace) -> int:
    """Print the comparisons; the exit status is 1 if any of them is out of tolerance or could not be made."""
    from kernels.measure.parity import compare_everywhere, compare_in_processes

    if arguments.processes > 1:
        results = list(compare_in_processes([spec.name for spec in specs], device, SEED, arguments.processes))
    else:
        results = [result for spec in specs for result in compare_everywhere(spec, device, SEED)]
    print(_as_json(results) if arguments.json else _as_table(results))
    return 0 if all(result.passed for result in results) else 1


def _as_json(results: "list[ParityResult]") -> str:
    return json.dumps([{**dataclasses.asdict(result), "passed": result.passed} for result in results])


def _as_table(results: "list[ParityResult]") -> str:
    lines = [f"{'kernel':<16}{'dtype':<10}{'shape':<20}{'output':<14}{'error/eps':>10}{'limit':>8}"]
    for result in results:
        verdict = "" if result.passed else f"  FAILED {result.failure}".rstrip()
        verdict += f"  for lack of memory, instead of {result.bounded_from}" if result.bounded_from else ""
        lines.append(
            f"{result.kernel:<16}{result.dtype:<10}{result.case:<20}{result.output:<14}"
            f"{result.error_eps:>10.2f}{result.tolerance_eps:>8.1f}{verdict}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
