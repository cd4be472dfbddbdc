"""The command line: `python -m trainer train|smoke|sample|verify-loader|observe`. Needs none of the pipeline's libraries.

Machine-readable output goes to stdout with `--json`, people's to stderr. Exit codes: 0 done, 1 refused, 2 wrong usage.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.errors import SluiceError
from trainer.determinism import ensure_environment


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. A user's mistake is one line on stderr, never a traceback."""
    options = _parser().parse_args(arguments)
    try:
        answer = options.handler(options)
    except SluiceError as error:
        print(f"error {type(error).__name__}: {error}", file=sys.stderr)
        if options.json:
            print(json.dumps({"error": type(error).__name__, "message": str(error)}))
        return 1
    except OSError as error:
        print(f"error: {error.filename or options.store}: {error.strerror or error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(answer))
    return int(isinstance(answer, dict) and answer.get("passed") is False)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trainer", description="Exactly repeatable training on a snapshot.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    train = _command(commands, "train", _train, "train to a step, saving on the way")
    train.add_argument("--corpus", default="quick", help="the corpus whose refs `live` and `candidate` are")
    train.add_argument("--snapshot", default="live", help="live, candidate or a snapshot id")
    train.add_argument("--recipe", default="tiny", help="training recipe")
    train.add_argument(
        "--stop-after", type=_positive, default=20, help="step at which this sitting ends, from the start of the run"
    )
    train.add_argument("--save-every", type=_positive, default=10, help="steps between checkpoints")
    train.add_argument("--out", type=Path, required=True, help="folder for metrics.jsonl and result.json")
    train.add_argument("--seed", type=int, default=42)
    train.add_argument(
        "--resume", help="`latest`, which starts anew where the run has no checkpoint, or a checkpoint id"
    )
    train.add_argument("--run", help="name of the run; made from its configuration unless given")
    train.add_argument(
        "--workers", type=int, default=0, help="loader processes; the batches are the same for any number"
    )
    train.add_argument("--device", default="cpu")
    smoke = _command(commands, "smoke", _smoke, "one step of the smallest model on a snapshot; nothing is kept")
    smoke.add_argument("--snapshot", required=True, help="a snapshot id")
    sample = _command(commands, "sample", _sample, "complete a prompt with a checkpoint")
    sample.add_argument("--checkpoint", required=True, help="a checkpoint id")
    sample.add_argument("--prompt", default="#include <vector>\n\n")
    sample.add_argument("--tokens", type=_positive, default=48, help="most tokens to draw")
    sample.add_argument("--seed", type=int, default=42)
    sample.add_argument("--temperature", type=float, default=0.7, help="0 takes the likeliest token")
    for name, handler, text in (
        ("verify-loader", _verify_loader, "the reproducibility bar, each reading in a fresh process"),
        ("observe", _observe, "what one process reads and computes; `verify-loader` compares such answers"),
    ):
        look = _command(commands, name, handler, text)
        look.add_argument("--corpus", default="quick", help="the corpus whose refs `live` and `candidate` are")
        look.add_argument("--snapshot", default="live", help="live, candidate or a snapshot id")
        look.add_argument("--rows", type=_positive, default=1000, help="rows to read")
        look.add_argument("--steps", type=int, default=100, help="optimiser steps; 0 leaves the model out")
        look.add_argument("--batch-rows", type=_positive, default=8, help="rows read at a time")
        look.add_argument("--workers", type=int, default=0, help="loader processes")
        look.add_argument("--recipe", default="tiny", help="training recipe")
        look.add_argument("--seed", type=int, default=42)
        look.add_argument("--state", help="loader state, as JSON, where reading begins")
    return parser


def _command(commands: Any, name: str, handler: Any, help_text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help_text, description=help_text)
    parser.add_argument("--store", type=Path, required=True, help="where the store lies")
    parser.add_argument("--json", action="store_true", help="print one JSON value on stdout")
    parser.set_defaults(handler=handler)
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value


# Torch is imported by these, once the environment is right.


def _train(options: argparse.Namespace) -> dict[str, Any]:
    from pipeline.snapshot import resolve
    from pipeline.store import Store
    from trainer.loop import Sitting, train
    from trainer.recipes import recipe_named

    store = Store(options.store)
    sitting = Sitting(
        snapshot_id=resolve(store, options.corpus, options.snapshot),
        recipe=options.recipe,
        config=recipe_named(options.recipe),
        seed=options.seed,
        stop_after=options.stop_after,
        save_every=options.save_every,
        out=options.out,
        run=options.run,
        resume=options.resume,
        num_workers=options.workers,
        device=options.device,
    )
    return train(store, sitting)


def _smoke(options: argparse.Namespace) -> dict[str, Any]:
    from pipeline.snapshot import open_snapshot
    from pipeline.store import Store
    from trainer.loop import Sitting, Training
    from trainer.recipes import recipe_named

    snapshot = open_snapshot(Store(options.store), options.snapshot)
    with tempfile.TemporaryDirectory() as folder:
        sitting = Sitting(options.snapshot, "tiny", recipe_named("tiny"), 42, 1, 1, Path(folder))
        training = Training(snapshot, sitting)
        metrics = training.step(training.loader.batch_at(0, training.config.batch_rows))
    return {"losses": [metrics["loss"]], "snapshot_id": options.snapshot}


def _sample(options: argparse.Namespace) -> dict[str, Any]:
    from pipeline.store import Store
    from trainer.sampling import sample

    text = sample(
        Store(options.store), options.checkpoint, options.prompt, options.tokens, options.seed, options.temperature
    )
    if not options.json:
        print(options.prompt + text)
    return {"prompt": options.prompt, "completion": text}


def _verify_loader(options: argparse.Namespace) -> dict[str, Any]:
    from trainer.verification import verify_loader

    checks = verify_loader(options.store, _snapshot_id(options), _sight(options))
    for check in checks:
        verdict = "equal" if check.passed else f"{check.num_differing} DIFFER"
        print(f"{verdict:>12}  of {check.num_compared:>6,}  {check.name}", file=sys.stderr)
        if check.first_difference:
            print(f"{'':>12}  {check.first_difference}", file=sys.stderr)
    return {"passed": all(check.passed for check in checks), "checks": [check.as_json() for check in checks]}


def _observe(options: argparse.Namespace) -> dict[str, Any]:
    from pipeline.snapshot import open_snapshot
    from pipeline.store import Store
    from trainer.observation import observe

    return observe(open_snapshot(Store(options.store), _snapshot_id(options)), _sight(options))


def _snapshot_id(options: argparse.Namespace) -> str:
    from pipeline.snapshot import resolve
    from pipeline.store import Store

    return resolve(Store(options.store), options.corpus, options.snapshot)


def _sight(options: argparse.Namespace) -> Any:
    from trainer.observation import Sight

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
