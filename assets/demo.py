"""`make demo`: the whole pipeline once, end to end, as Dagster jobs, with bars on the terminal; the UI shows the runs afterwards.

collect -> normalize -> enrich -> tokenize -> verify -> promote -> train -> stop and resume -> a completion
"""

import argparse
import json
import os
import sys
import time
from typing import Any

from rich.console import Console

from assets.trainer_process import run_trainer, trainer_command
from pipeline.build.build import ProgressEvent
from pipeline.build.recipes import RECIPES, ROOT, Recipe
from pipeline.build.run_stage import BuildCallback, StageResult
from pipeline.cli.console import StageBars, UpdatingLine, person, verdict_table, waterfall
from pipeline.core.errors import FetchError, SluiceError
from pipeline.store.store import Store

STEPS, STOP_AT = 20, 10
_RUN = "demo-resumed"
_REPOSITORY_TAG = {".dagster/repository": "__repository__@sluice"}


class DemoCallback(BuildCallback):
    """Draws the bars and keeps the results for the tables at the end."""

    def __init__(self, console: Console) -> None:
        self.bars = StageBars(console)
        self.line = UpdatingLine(console)
        self.results: list[StageResult] = []

    def progress(self, progress: ProgressEvent) -> None:
        self.bars.progress(progress)

    def finished(self, result: StageResult, seconds: float) -> None:
        self.results.append(result)
        self.bars.finished(result, seconds)

    def said(self, text: str) -> None:
        """Show a line of the trainer: steps overwrite each other, other lines stay."""
        if text.startswith("train ["):
            self.line.update(text)
        else:
            self.line.say(text)


def main() -> int:
    """Run the demo and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m assets.demo", description="Run the whole pipeline once, end to end."
    )
    parser.add_argument("--recipe", default="quick", choices=sorted(RECIPES.names))
    recipe = RECIPES[parser.parse_args().recipe]
    os.chdir(ROOT)  # the instance file's paths count from here
    os.environ.setdefault("DAGSTER_HOME", str(ROOT))
    # In a step Dagster captures the descriptors 1 and 2, so the bars write to a copy made before.
    console = person(os.fdopen(os.dup(2), "w", buffering=1))
    started = time.monotonic()
    try:
        done = _run(recipe, console)
    except SluiceError as error:
        console.print(f"error: {error}", style="red", markup=False)
        return 1
    if done:
        console.print(f"\ndone in {time.monotonic() - started:.0f} s")
        _print_next(recipe, console)
    return 0 if done else 1


def _run(recipe: Recipe, console: Console) -> bool:
    # Imported here: workers of the pool import this module again and do not need Dagster.
    import dagster as dg

    from assets import definitions, jobs, training
    from assets.resources import store_root

    console.print(f"Sluice demo: corpus {recipe.name}, store {store_root()}\n")
    callback = DemoCallback(console)
    defs = definitions.definitions(callback)
    params = training.TrainingParams(corpus=recipe.name, stop_after=STEPS, save_every=STOP_AT)
    configs = {
        "build": jobs.build_config(recipe),
        "promote": jobs.promote_config(recipe.name),
        "train": jobs.train_config(params),
    }
    with dg.DagsterInstance.get() as instance:
        for name, config in configs.items():
            with callback.bars if name == "build" else callback.line:
                run_id, failure = _execute(defs, name, config, instance)
            if name == "build":
                _print_results(callback.results, console)
            if failure is not None:
                _print_failure(name, failure, callback.results, console)
                return False
            if name == "promote":
                console.print(f"promoted snapshot {Store(store_root()).ref(recipe.name, 'live')}\n")
    straight = json.loads((store_root() / "runs" / run_id / "result.json").read_text())
    return _stop_and_resume(recipe, straight, callback, console)


def _execute(defs: Any, name: str, config: dict[str, Any], instance: Any) -> tuple[str, str | None]:
    """Run a job in this process, visible in the UI; return the run id, and None or the error."""
    quiet = {"console": {"config": {"log_level": "CRITICAL"}}}
    job = defs.resolve_job_def(name)
    done = job.execute_in_process(
        instance=instance, run_config={**config, "loggers": quiet}, raise_on_error=False, tags=_REPOSITORY_TAG
    )
    if done.success:
        return done.run_id, None
    events = [event for event in done.all_events if event.is_failure]
    return done.run_id, next((text for event in events if (text := _failure_text(event))), f"run {done.run_id} failed")


def _failure_text(event: Any) -> str:
    data = event.event_specific_data
    described = getattr(getattr(data, "user_failure_data", None), "description", None)
    error = getattr(data, "error", None)
    while error is not None and error.cause is not None:
        error = error.cause
    return described or (error.message.strip() if error is not None else "")


def _print_results(results: list[StageResult], console: Console) -> None:
    console.print()
    console.print(waterfall(results))
    console.print(verdict_table(verdict for result in results for verdict in result.verdicts))


def _print_failure(name: str, failure: str, results: list[StageResult], console: Console) -> None:
    """Print the error: of a blocked stage each source and gate that failed."""
    blocked = next((result for result in results if result.blocked), None) if name == "build" else None
    console.print(f"\nthe job {name} failed{'' if blocked else ': ' + failure}", style="red", markup=False)
    errors = blocked.failures if blocked else {}
    verdicts = [verdict for verdict in blocked.verdicts if not verdict.passed] if blocked else []
    for text in [*(str(error) for _, error in sorted(errors.items())), *(verdict.sentence for verdict in verdicts)]:
        console.print(f"  {text}", style="red", markup=False)
    if any(isinstance(error, FetchError) for error in errors.values()):
        console.print("Without a package index, `make demo RECIPE=tiny` does the same with the made corpus.")


def _stop_and_resume(recipe: Recipe, straight: dict[str, Any], callback: DemoCallback, console: Console) -> bool:
    """Train the same run again under another name, stop it, resume it in a fresh process, and compare every bit."""
    from assets.resources import store_root

    unchanged = "  (unchanged)" if straight["unchanged"] else ""
    losses = f"loss {straight['losses'][0]:.4f} to {straight['final_loss']:.4f}"
    console.print(f"trained {straight['steps']} steps: {losses}{unchanged}\n")
    run = f"{_RUN}-{recipe.name}"
    if Store(store_root()).ref(f"runs/{run}", "latest") != straight["checkpoint_id"]:
        _trained(callback, [*_train_arguments(recipe, STOP_AT), "--run", run])
    resumed = _trained(callback, [*_train_arguments(recipe, STEPS), "--run", run])
    names = ("losses", "parameters_sha256", "optimizer_sha256")
    different = [name for name in names if straight[name] != resumed[name]]
    if different:
        console.print(
            f"stopped and resumed, but {', '.join(different)} differ: training is not reproducible on this machine",
            style="red",
        )
        return False
    console.print(f"stopped at step {STOP_AT}, resumed to {STEPS}: losses and parameters bit-identical")
    prompt = "#include <vector>\n\nint main() {\n"
    arguments = ("--checkpoint", straight["checkpoint_id"], "--prompt", prompt)
    sampled = run_trainer(trainer_command("sample", store_root(), *arguments), callback.said)
    console.print("\na completion by the small model, after 20 steps of training:", style="bold")
    console.print(prompt + sampled["completion"], markup=False)
    return True


def _train_arguments(recipe: Recipe, stop_after: int) -> list[str]:
    from assets.resources import store_root

    out = store_root() / "runs" / f"demo-{recipe.name}"
    arguments = ["--corpus", recipe.name, "--snapshot", "live", "--recipe", "tiny", "--stop-after", str(stop_after)]
    return [*arguments, "--save-every", str(STOP_AT), "--out", str(out), "--resume", "latest"]


def _trained(callback: DemoCallback, arguments: list[str]) -> dict[str, Any]:
    """Run one training session, with its steps on one line that is overwritten."""
    from assets.resources import store_root

    with callback.line:
        return run_trainer(trainer_command("train", store_root(), *arguments), callback.said)


def _print_next(recipe: Recipe, console: Console) -> None:
    console.print(
        f"""
What next
  make dev                                          the UI at http://localhost:3000, with these runs in it
  .venv/bin/python -m pipeline report --corpus {recipe.name}            a page: the fate of every file, and why
  .venv/bin/python -m pipeline why SOURCE PATH --corpus {recipe.name}   where a file went, and on what evidence
Your own folder of code, in five lines:
  .venv/bin/python -m pipeline pin mine path/to/code --license MIT > mine.toml
  .venv/bin/python -m pipeline build --corpus mine --pins mine.toml --promote
  .venv/bin/python -m trainer train --store store --corpus mine --stop-after 100 --out store/runs/mine
  .venv/bin/python -m pipeline show --corpus mine
  .venv/bin/python -m pipeline why mine src/main.cpp --corpus mine""",
        markup=False,
    )


if __name__ == "__main__":
    sys.exit(main())
