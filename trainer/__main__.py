"""The command line: `python -m trainer train|compare|checkpoints|presets|doctor|accept|smoke|sample|...`.

Needs none of the pipeline's libraries. Machine-readable output goes to stdout with `--json`, people's to stderr. For the exit
codes see `pipeline.core.command_line`; 1 is also the answer to a comparison that finds a difference.
"""

import argparse
import importlib
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.core.command_line import Parser, amount, run_command, whole_number
from trainer.train.determinism import ensure_environment


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. A user's mistake is one line on stderr, never a traceback."""

    def run(options: argparse.Namespace) -> tuple[int, dict[str, Any]]:
        answer = options.handler(options)
        code = int(answer.get("exit_code", 0) or answer.get("passed") is False) if isinstance(answer, dict) else 0
        return code, answer

    if os.environ.get("RANK", "0") != "0":  # of several ranks, one answers
        arguments = [argument for argument in arguments if argument != "--json"]
    return run_command(_parser(), arguments, run, lambda text: print(text, file=sys.stderr))


_seed = whole_number(0, 2**63 - 1)
_steps = whole_number(1, 10_000_000)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m trainer", description="Exactly repeatable training on a snapshot.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_train(commands)
    _add_checkpoint_commands(commands)
    _add_machine_commands(commands)
    smoke = _command(commands, "smoke", _smoke, "one step of the smallest model on a snapshot; nothing is kept")
    smoke.add_argument("--snapshot", required=True, help="a snapshot id")
    _add_model_commands(commands)
    for name, handler, text in (
        ("verify-loader", _verify_loader, "the reproducibility bar, each reading in a fresh process"),
        ("observe", _observe, "what one process reads and computes; `verify-loader` compares such answers"),
    ):
        look = _command(commands, name, handler, text)
        look.add_argument("--corpus", default="quick", help="the corpus whose refs `live` and `candidate` are")
        look.add_argument("--snapshot", default="live", help="live, candidate or a snapshot id")
        look.add_argument("--rows", type=_steps, default=1000, help="rows to read")
        look.add_argument(
            "--steps", type=whole_number(0, 10_000_000), default=100, help="optimizer steps; 0 leaves the model out"
        )
        look.add_argument("--batch-rows", type=_steps, default=8, help="rows read at a time")
        look.add_argument("--workers", type=whole_number(0, 256), default=0, help="loader processes")
        look.add_argument("--recipe", default="tiny", help="training recipe")
        look.add_argument("--seed", type=_seed, default=42)
        look.add_argument("--state", help="loader state, as JSON, where reading begins")
    return parser


def _add_train(commands: Any) -> None:
    train = _command(commands, "train", _train, "train to a step, saving on the way")
    train.add_argument("--corpus", default="quick", help="the corpus whose refs `live` and `candidate` are")
    train.add_argument("--snapshot", help="live, which is meant unless given, candidate or a snapshot id")
    train.add_argument(
        "--follow",
        metavar="REF",
        help="live or candidate: when the epoch turns, go on with the snapshot that the ref names then; "
        "or a checkpoint id, whose adoptions are repeated",
    )
    train.add_argument(
        "--mix",
        action="append",
        default=[],
        metavar="NAME=WEIGHT",
        help="read several snapshots: a corpus (its live), CORPUS/candidate or a snapshot id, and the weight of its rows",
    )
    train.add_argument("--recipe", default="tiny", help="training recipe")
    train.add_argument(
        "--stop-after", type=_steps, default=20, help="step at which this sitting ends, from the start of the run"
    )
    train.add_argument("--save-every", type=_steps, default=10, help="steps between checkpoints")
    train.add_argument("--out", type=Path, required=True, help="folder for metrics.jsonl and result.json")
    train.add_argument("--seed", type=_seed, default=42)
    train.add_argument(
        "--resume", help="`latest`, which starts anew where the run has no checkpoint, or a checkpoint id"
    )
    train.add_argument("--run", help="name of the run; made from its configuration unless given")
    _add_machinery(train)


def _add_machinery(train: argparse.ArgumentParser) -> None:
    train.add_argument(
        "--workers",
        type=whole_number(0, 256),
        default=0,
        help="loader processes; the batches are the same for any number",
    )
    train.add_argument("--device", default="cpu", help="cpu, cuda (under torchrun each rank's own) or cuda:N")
    train.add_argument(
        "--shard",
        action="store_true",
        help="spread parameters and optimizer state over torchrun's ranks; the same bits",
    )
    train.add_argument("--batch-rows", type=_steps, help="rows of one step, in place of the recipe's")
    train.add_argument("--micro-batch-rows", type=_steps, help="rows of one logical micro-batch")
    train.add_argument("--deterministic", choices=("on", "off"), help="in place of the recipe's")
    train.add_argument("--dtype", choices=("float32", "bfloat16"), help="of matrix products, in place of the recipe's")
    train.add_argument(
        "--attention", choices=("math", "flex", "varlen"), help="how it is computed; varlen in bfloat16 on a GPU"
    )
    train.add_argument(
        "--compile", choices=("off", "fullgraph", "budgeted"), help="fullgraph on a GPU, else the recipe's"
    )
    train.add_argument("--compile-backend", choices=("eager", "aot_eager", "inductor"), help="in place of the recipe's")
    train.add_argument("--structure", choices=("on", "off"), help="the structure embedding, in place of the recipe's")
    train.add_argument(
        "--allow-drift",
        action="append",
        default=[],
        metavar="FIELD",
        help="manifest[.NAME], snapshot_id, mixture or config.attention; recorded",
    )
    train.add_argument("--telemetry", choices=("on", "off"), default="on", help="metrics, TensorBoard file, progress")
    train.add_argument("--evaluate-every", type=_steps, metavar="N", help="look at held-out rows every N steps")
    train.add_argument("--evaluate-rows", type=_steps, default=32, metavar="N", help="how many of them")
    _add_keep(train)


def _add_model_commands(commands: Any) -> None:
    presets = _command(
        commands, "presets", "model_commands.presets", "the named models and how large they are", needs_store=False
    )
    presets.add_argument("--name", action="append", help="only this preset; may be repeated")
    presets.add_argument("--vocabulary-size", type=whole_number(2, 2**24), help="in place of the preset's usual one")
    exporting = _command(commands, "export", "model_commands.export", "a checkpoint as a folder for transformers")
    exporting.add_argument("--checkpoint", required=True, help="a checkpoint id")
    exporting.add_argument("--out", type=Path, required=True, help="the folder, which must not be there yet")
    evaluating = _command(commands, "evaluate", "model_commands.evaluate", "a checkpoint on held-out rows")
    evaluating.add_argument("--checkpoint", required=True, help="a checkpoint id")
    evaluating.add_argument("--rows", type=_steps, default=64, help="most rows of the held-out split to read")
    evaluating.add_argument("--middles", type=whole_number(0, 100_000), default=16, help="pieces to infill")
    evaluating.add_argument("--samples", type=whole_number(0, 100_000), default=4, help="completions to compile")
    evaluating.add_argument("--tokens", type=whole_number(1, 2**20), default=48, help="most tokens of a completion")
    evaluating.add_argument("--seed", type=_seed, default=42)
    sample = _command(commands, "sample", "model_commands.draw_samples", "complete a prompt with a checkpoint")
    sample.add_argument("--checkpoint", required=True, help="a checkpoint id")
    prompts = sample.add_mutually_exclusive_group()
    prompts.add_argument("--prompt", default="#include <vector>\n\n")
    prompts.add_argument("--prompt-ids", metavar="IDS", help="token ids, separated by commas, in place of a text")
    sample.add_argument("--tokens", type=whole_number(1, 2**20), default=48, help="most tokens to draw")
    sample.add_argument("--seed", type=_seed, default=42, help="of the first completion; the next has the next seed")
    sample.add_argument("--temperature", type=amount, default=0.7, help="0 takes the likeliest token")
    sample.add_argument("--top-k", type=whole_number(1, 2**24), help="draw among this many of the likeliest")
    sample.add_argument("--top-p", type=amount, help="draw among the likeliest that hold this much probability, 0-1")
    sample.add_argument("--best-of", type=whole_number(1, 256), default=1, help="draw so many, answer the likeliest")


def _add_keep(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep-last", type=_steps, metavar="N", help="keep the N newest checkpoints")
    parser.add_argument("--keep-every", type=_steps, metavar="K", help="keep those at multiples of K steps")
    parser.add_argument("--keep-best", type=_steps, metavar="N", help="keep the N of least recent loss")


def _add_checkpoint_commands(commands: Any) -> None:
    compare = _command(commands, "compare", "compare", "say where two trainings part", needs_store=False)
    compare.add_argument("first", help="a checkpoint id or a result.json")
    compare.add_argument("second", help="another")
    compare.add_argument(
        "--rerun", action="store_true", help="compute both again from their last common checkpoint, to the first tensor"
    )
    group = commands.add_parser("checkpoints", help="list, show, diff, export, import, prune")
    verbs = group.add_subparsers(required=True, metavar="VERB")
    listing = _command(verbs, "list", "list_all", "every checkpoint, by step")
    listing.add_argument("--run", help="only those that this run has written")
    _command(verbs, "show", "show", "what a checkpoint says of itself").add_argument("checkpoint")
    diff = _command(verbs, "diff", "diff", "two checkpoints, tensor by tensor")
    diff.add_argument("first")
    diff.add_argument("second")
    export = _command(verbs, "export", "export", "one tar whose sha256 never varies")
    export.add_argument("checkpoint")
    export.add_argument("file", type=Path)
    importing = _command(verbs, "import", "import_file", "verify an exported tar, then store it")
    importing.add_argument("file", type=Path)
    pruning = _command(verbs, "prune", "prune_run", "remove what a run has written and nothing needs")
    pruning.add_argument("--run", required=True)
    pruning.add_argument("--rehearse", action="store_true", help="say what would go, and remove nothing")
    _add_keep(pruning)


def _add_machine_commands(commands: Any) -> None:
    _command(commands, "doctor", "doctor", "what this machine can promise, tried here", needs_store=False)
    benching = _command(commands, "bench", "bench.bench", "what a GPU has to show of training", needs_store=False)
    benching.add_argument("--only", metavar="ROW", help="one row")
    benching.add_argument(
        "--corpus", default="tiny", help="of the store: the corpus of the row that trains on a snapshot"
    )
    benching.add_argument("--snapshot", default="candidate", help="live, candidate or a snapshot id")
    benching.add_argument("--out", type=Path, help="file of JSON lines; the rows that it has stay")
    benching.add_argument("--budget", type=amount, default=540.0, help="seconds after which no further row is begun")
    benching.add_argument(
        "--dry-run", action="store_true", help="without a GPU: the smallest model, timings that mean nothing"
    )
    benching.add_argument("--measure", action="store_true", help="measure the row in this process")
    benching.add_argument("--backend", choices=("eager", "aot_eager", "inductor"), help="in place of the row's")
    judging = _command(commands, "triage", "triage.triage", "what a log says of compilation", needs_store=False)
    judging.add_argument("--log", type=Path, help="what a run printed; without it the order of looking is walked")
    judging.add_argument("--metrics", type=Path, help="metrics.jsonl of that run: whether steps became slower")
    judging.add_argument("--compile", choices=("fullgraph", "budgeted"), default="fullgraph", help="its mode")
    judging.add_argument("--breaks", type=whole_number(0, 10_000), help="its budget of breaks")
    caches = commands.add_parser("cache", help="compiled code: status, sync")
    verbs = caches.add_subparsers(required=True, metavar="VERB")
    _command(
        verbs, "status", "compile_commands.cache_status", "place, size, free space, hash and hits", needs_store=False
    )
    sync = _command(verbs, "sync", "compile_commands.cache_sync", "copy a warm cache into the store")
    sync.add_argument("--from", dest="source", type=Path, required=True, help="a store, or its folder `compiled`")
    sync.add_argument("--corpus", default="quick", help="the corpus whose vocabulary the cache must be of")
    sync.add_argument("--snapshot", default="live", help="live, candidate or a snapshot id")
    accept = _command(commands, "accept", "accept", "the acceptance gates, each in fresh processes")
    accept.add_argument("--corpus", default="tiny", help="the corpus whose snapshot is trained on")
    accept.add_argument("--snapshot", default="live", help="live, candidate or a snapshot id")
    accept.add_argument("--only", action="append", default=[], metavar="GATE", help="this gate; may be repeated")
    accept.add_argument("--short", action="store_true", help="fewer steps, and only the gates that are quick")


def _command(
    commands: Any, name: str, handler: Any, help_text: str, needs_store: bool = True
) -> argparse.ArgumentParser:
    """Add a command. A handler given by name is a function of `trainer.cli.checkpoints` or of the module named, loaded late."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help_text, description=help_text)
    handler = _of_commands(handler) if isinstance(handler, str) else handler
    parser.add_argument("--store", type=Path, required=needs_store, help="where the store lies")
    parser.add_argument("--json", action="store_true", help="print one JSON value on stdout")
    parser.set_defaults(handler=handler)
    return parser


def _of_commands(name: str) -> Any:
    def handler(options: argparse.Namespace) -> Any:
        module, _, function = name.rpartition(".")
        return getattr(importlib.import_module(f"trainer.{module or 'commands'}"), function)(options)

    return handler


# Torch is imported by these, once the environment is right.


def _train(options: argparse.Namespace) -> dict[str, Any]:
    from pipeline.store.store import Store
    from trainer.checkpoint.retention import Keep
    from trainer.cli.snapshot_names import Asked, named
    from trainer.train.evaluation import Evaluation
    from trainer.train.loop import Sitting, train

    store = Store(options.store)
    names = named(store, Asked(options.corpus, options.snapshot, options.follow, tuple(options.mix)))
    sitting = Sitting(
        snapshot_id=names.snapshot_id,
        mixture=names.mixture,
        follow=names.follow,
        recipe=options.recipe,
        config=_config(options),
        seed=options.seed,
        stop_after=options.stop_after,
        save_every=options.save_every,
        out=options.out,
        run=options.run,
        resume=options.resume,
        num_workers=options.workers,
        device=options.device,
        keep=Keep(options.keep_last, options.keep_every, options.keep_best),
        allowed_drift=tuple(options.allow_drift),
        has_telemetry=options.telemetry == "on",
        evaluation=Evaluation(options.evaluate_every, options.evaluate_rows),
        is_sharded=options.shard,
    )
    return train(store, sitting)


def _config(options: argparse.Namespace) -> Any:
    from pipeline.core.errors import ParamsError
    from trainer.config.model import Precision
    from trainer.config.training import TrainingConfig, recipe_named
    from trainer.model.attention_backends import default_choice

    asked = {"batch_rows": options.batch_rows, "micro_batch_rows": options.micro_batch_rows}
    mode = options.compile or ("fullgraph" if options.device.startswith("cuda") else None)
    asked |= {"dtype": options.dtype, "compile": mode, "compile_backend": options.compile_backend}
    dtype = Precision(options.dtype or recipe_named(options.recipe).dtype)
    asked["attention"] = options.attention or default_choice(options.device, dtype)
    asked["deterministic"] = options.deterministic and options.deterministic == "on"
    given = {name: value for name, value in asked.items() if value is not None}
    told = {**recipe_named(options.recipe).model_dump(), **given}
    if options.structure:
        told["model"] = {**told["model"], "structure": {} if options.structure == "on" else None}
    try:
        return TrainingConfig.model_validate(told)
    except ValueError as error:
        found = "; ".join(str(problem["msg"]) for problem in getattr(error, "errors", list)())
        raise ParamsError(f"recipe {options.recipe}", found or str(error)) from error


def _smoke(options: argparse.Namespace) -> dict[str, Any]:
    from pipeline.store.snapshot import open_snapshot
    from pipeline.store.store import Store
    from trainer.config.training import recipe_named
    from trainer.train.loop import Sitting, Training

    snapshot = open_snapshot(Store(options.store), options.snapshot)
    with tempfile.TemporaryDirectory() as folder:
        sitting = Sitting(options.snapshot, "tiny", recipe_named("tiny"), 42, 1, 1, Path(folder))
        training = Training(snapshot, sitting)
        metrics = training.step(training.loader.batch_at(0, training.config.num_micro_batches))
    return {"losses": [metrics["loss"]], "snapshot_id": options.snapshot}


def _verify_loader(options: argparse.Namespace) -> dict[str, Any]:
    from trainer.proof.verify_loader import verify_loader

    checks = verify_loader(options.store, _snapshot_id(options), _sight(options))
    for check in checks:
        verdict = "equal" if check.passed else f"{check.num_differing} DIFFER"
        print(f"{verdict:>12}  of {check.num_compared:>6,}  {check.name}", file=sys.stderr)
        if check.first_difference:
            print(f"{'':>12}  {check.first_difference}", file=sys.stderr)
    return {"passed": all(check.passed for check in checks), "checks": [check.as_json() for check in checks]}


def _observe(options: argparse.Namespace) -> dict[str, Any]:
    from pipeline.store.snapshot import open_snapshot
    from pipeline.store.store import Store
    from trainer.proof.read_trace import observe

    return observe(open_snapshot(Store(options.store), _snapshot_id(options)), _sight(options))


def _snapshot_id(options: argparse.Namespace) -> str:
    from pipeline.store.snapshot import resolve
    from pipeline.store.store import Store

    return resolve(Store(options.store), options.corpus, options.snapshot)


def _sight(options: argparse.Namespace) -> Any:
    from trainer.proof.read_trace import Sight

    return Sight(
        num_rows=options.rows,
        num_steps=options.steps,
        batch_rows=options.batch_rows,
        num_workers=options.workers,
        seed=options.seed,
        recipe=options.recipe,
        state=options.state,
    )


if __name__ == "__main__":
    ensure_environment(sys.argv[1:])
    sys.exit(main(sys.argv[1:]))
