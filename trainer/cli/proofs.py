"""The commands that prove or measure a trainer: `doctor`, `accept`, `bench`, `verify-loader` and `observe`."""

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pipeline.core.command_line import LAST_STEP, STEPS_ARGUMENT, amount, output_path, whole_number
from trainer.cli.arguments import (
    SEED_ARGUMENT,
    RecipeHelp,
    add_command,
    add_snapshot_arguments,
    open_store,
    report,
    snapshot_id,
)
from trainer.config.choices import CompileBackend

if TYPE_CHECKING:
    from trainer.proof.acceptance import GateOutcome


def add_commands(commands: Any) -> None:
    """Declare the commands of this group."""
    add_command(commands, "doctor", _doctor, "try what this machine can promise", needs_store=False)
    accept = add_command(commands, "accept", _accept, "run the acceptance gates, each in fresh processes")
    add_snapshot_arguments(accept, "tiny")
    accept.add_argument(
        "--only", action="append", default=[], metavar="GATE", help="run only this gate; may be repeated"
    )
    accept.add_argument("--short", action="store_true", help="fewer steps, and only the gates that are quick")
    _add_bench(commands)
    for name, handler, text in (
        ("verify-loader", _verify_loader, "prove that the loader repeats, reading in fresh processes"),
        ("observe", _observe, "print what one process reads and computes, as `verify-loader` compares it"),
    ):
        _add_trace(add_command(commands, name, handler, text))


def _add_bench(commands: Any) -> None:
    bench = add_command(commands, "bench", _bench, "measure training on a GPU")
    bench.add_argument("--only", metavar="ROW", help="measure only this row")
    add_snapshot_arguments(bench, "tiny", "candidate")
    bench.add_argument("--out", type=output_path, help="file of JSON lines; rows that it holds are not measured again")
    bench.add_argument("--budget", type=amount, default=540.0, help="seconds after which no further row is begun")
    bench.add_argument(
        "--dry-run", action="store_true", help="without a GPU: the smallest model, timings that mean nothing"
    )
    bench.add_argument("--measure", action="store_true", help="measure the row in this process")
    bench.add_argument("--backend", choices=[*map(str, CompileBackend)], help="in place of the row's")


def _add_trace(parser: argparse.ArgumentParser) -> None:
    add_snapshot_arguments(parser, "quick")
    parser.add_argument("--rows", type=STEPS_ARGUMENT, default=1000, help="rows to read")
    parser.add_argument(
        "--steps", type=whole_number(0, LAST_STEP), default=100, help="optimizer steps; 0 leaves the model out"
    )
    parser.add_argument("--batch-rows", type=STEPS_ARGUMENT, default=8, help="rows read at a time")
    parser.add_argument("--workers", type=whole_number(0, 256), default=0, help="loader processes")
    parser.add_argument("--recipe", default="tiny", help=RecipeHelp("training recipe"))
    parser.add_argument("--seed", type=SEED_ARGUMENT, default=42)
    parser.add_argument("--state", type=_json_object, help="loader state, as JSON, where reading begins")


def _json_object(text: str) -> str:
    """Parse an argument: the text of a JSON object."""
    try:
        is_object = isinstance(json.loads(text), dict)
    except ValueError:
        is_object = False
    if not is_object:
        raise argparse.ArgumentTypeError(f"found {text[:200]!r}; expected the state of a loader, a JSON object")
    return text


def _doctor(options: argparse.Namespace) -> dict[str, Any]:
    """Report what is set, what this machine can promise and what would break it. Exit code 1 where nothing is promised."""
    from trainer.proof import doctor

    found = doctor.diagnose()
    report(doctor.lines(found))
    return {**asdict(found), "exit_code": int(not found.is_promised)}


def _accept(options: argparse.Namespace) -> dict[str, Any]:
    from trainer.proof.acceptance import run_gates

    store = open_store(options)
    outcomes = run_gates(store, snapshot_id(options), options.only, options.short, on_outcome=_report_outcome)
    is_failed = not all(outcome.passed for outcome in outcomes)
    return {"gates": [asdict(outcome) for outcome in outcomes], "exit_code": int(is_failed)}


def _report_outcome(outcome: "GateOutcome") -> None:
    verdict = "green" if outcome.passed else "RED  "
    report([f"{verdict}  {outcome.name:<44} {outcome.seconds:5.0f} s  {outcome.detail}"])


def _bench(options: argparse.Namespace) -> Any:
    from trainer.bench.training_benchmark import bench

    open_store(options)
    return bench(options)


def _verify_loader(options: argparse.Namespace) -> dict[str, Any]:
    from trainer.proof.verify_loader import verify_loader

    subject = snapshot_id(options)
    checks = verify_loader(options.store, subject, _trace_options(options))
    for check in checks:
        verdict = "equal" if check.passed else f"{check.num_differing} DIFFER"
        report([f"{verdict:>12}  of {check.num_compared:>6,}  {check.name}"])
        report([f"{'':>12}  {check.first_difference}"] if check.first_difference else [])
    found = [asdict(check) | {"passed": check.passed} for check in checks]
    return {"passed": all(check.passed for check in checks), "checks": found, "snapshot_id": subject}


def _observe(options: argparse.Namespace) -> dict[str, Any]:
    from pipeline.store.snapshot import open_snapshot
    from trainer.proof.verify_loader import observe

    return observe(open_snapshot(open_store(options), snapshot_id(options)), _trace_options(options))


def _trace_options(options: argparse.Namespace) -> Any:
    from trainer.proof.verify_loader import TraceOptions

    return TraceOptions(
        num_rows=options.rows,
        num_steps=options.steps,
        batch_rows=options.batch_rows,
        num_workers=options.workers,
        seed=options.seed,
        recipe=options.recipe,
        state=options.state,
    )
