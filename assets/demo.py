"""`make demo`: the whole road once, through Dagster's own job execution, with bars on the terminal and runs in the UI afterwards.

collect -> normalize -> enrich -> tokenize -> verify -> promote -> train -> stop and resume -> a completion
"""

import argparse
import json
import os
import subprocess
import sys
import time
from contextlib import nullcontext
from typing import Any

from rich.console import Console

from pipeline.console import StageBars, person, verdict_table, waterfall
from pipeline.errors import SluiceError
from pipeline.progress import Progress
from pipeline.recipes import RECIPES, ROOT, Recipe, recipe_named
from pipeline.stages import StageResult
from pipeline.store import Store

STEPS, STOP_AT = 20, 10
_RUN = "demo-resumed"
_REPOSITORY_TAG = {".dagster/repository": "__repository__@sluice"}


class DemoWatcher:
    """Draws the bars and keeps the results for the tables at the end."""

    def __init__(self, bars: StageBars) -> None:
        self.bars = bars
        self.results: list[StageResult] = []

    def progress(self, progress: Progress) -> None:
        self.bars.progress(progress)

    def finished(self, result: StageResult, seconds: float) -> None:
        self.results.append(result)
        self.bars.finished(result, seconds)


def main() -> int:
    """Run the demo and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m assets.demo", description="The whole road, once.")
    parser.add_argument("--recipe", default="quick", choices=sorted(RECIPES))
    recipe = recipe_named(parser.parse_args().recipe)
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
    # Imported here: workers of the pool re-import this module, and need no Dagster.
    import dagster as dg

    from assets import definitions, jobs, training
    from assets.resources import store_root

    console.print(f"Sluice demo: corpus {recipe.name}, store {store_root()}\n")
    bars = StageBars(console)
    watcher = DemoWatcher(bars)
    defs = definitions.definitions(watcher)
    params = training.TrainingParams(corpus=recipe.name, stop_after=STEPS, save_every=STOP_AT)
    configs = {
        "build": jobs.build_config(recipe),
        "promote": jobs.promote_config(recipe.name),
        "train": jobs.train_config(params),
    }
    with dg.DagsterInstance.get() as instance:
        for name, config in configs.items():
            with bars if name == "build" else nullcontext():
                failure = _execute(defs, name, config, instance)
            if name == "build":
                _print_results(watcher.results, console)
            if failure is not None:
                _print_failure(name, failure, console)
                return False
    store = Store(store_root())
    console.print(f"promoted snapshot {store.ref(recipe.name, 'live')}\n")
    straight = _trained(_trainer("train", *_train_arguments(recipe, STEPS), "--resume", "latest"))
    return _stop_and_resume(recipe, straight, store, console)


def _execute(defs: Any, name: str, config: dict[str, Any], instance: Any) -> str | None:
    """Run a job in this process, visible in the UI; returns None or what went wrong."""
    quiet = {"console": {"config": {"log_level": "CRITICAL"}}}
    job = defs.resolve_job_def(name)
    done = job.execute_in_process(
        instance=instance, run_config={**config, "loggers": quiet}, raise_on_error=False, tags=_REPOSITORY_TAG
    )
    if done.success:
        return None
    events = [event for event in done.all_events if event.is_failure]
    return next((text for event in events if (text := _failure_text(event))), f"run {done.run_id} failed")


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


def _print_failure(name: str, failure: str, console: Console) -> None:
    console.print(f"\nthe job {name} failed: {failure}", style="red", markup=False)
    if "FetchError" in failure or "num_failed_sources" in failure:
        console.print("Without a package index, `make demo RECIPE=tiny` goes the same road over the made corpus.")


def _stop_and_resume(recipe: Recipe, straight: dict[str, Any], store: Store, console: Console) -> bool:
    """Train the same run again under another name, stop it, resume it in a fresh process, and compare every bit."""
    console.print(
        f"trained {straight['steps']} steps: loss {straight['losses'][0]:.4f} to {straight['final_loss']:.4f}", end=""
    )
    console.print("  (unchanged)" if straight["unchanged"] else "")
    run = f"{_RUN}-{recipe.name}"
    if not _is_at(store, run, straight):
        _trainer("train", *_train_arguments(recipe, STOP_AT), "--run", run, "--resume", "latest")
    resumed = _trained(_trainer("train", *_train_arguments(recipe, STEPS), "--run", run, "--resume", "latest"))
    names = ("losses", "parameters_sha256", "optimizer_sha256")
    different = [name for name in names if straight[name] != resumed[name]]
    if different:
        console.print(
            f"stopped and resumed, but {', '.join(different)} differ: this machine is not repeatable", style="red"
        )
        return False
    console.print(f"stopped at step {STOP_AT}, resumed to {STEPS}: losses and parameters bit-identical")
    prompt = "#include <vector>\n\nint main() {\n"
    sampled = _trained(_trainer("sample", "--checkpoint", straight["checkpoint_id"], "--prompt", prompt))
    console.print("\na completion by the little model, after 20 steps of training:", style="bold")
    console.print(prompt + sampled["completion"], markup=False)
    return True


def _is_at(store: Store, run: str, straight: dict[str, Any]) -> bool:
    """Whether the run of the second demo is where the first one left it."""
    return bool(store.ref(f"runs/{run}", "latest") == straight["checkpoint_id"])


def _train_arguments(recipe: Recipe, stop_after: int) -> list[str]:
    from assets.resources import store_root

    out = store_root() / "runs" / f"demo-{recipe.name}"
    arguments = ["--corpus", recipe.name, "--snapshot", "live", "--recipe", "tiny", "--stop-after", str(stop_after)]
    return [*arguments, "--save-every", str(STOP_AT), "--out", str(out)]


def _trainer(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    from assets.resources import store_root

    line = [sys.executable, "-m", "trainer", command, "--store", str(store_root()), "--json", *arguments]
    return subprocess.run(line, stdout=subprocess.PIPE, text=True, check=False)


def _trained(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(done.stdout) if done.stdout else {}
    if done.returncode != 0:
        raise SluiceError("trainer", f"exit {done.returncode}: {answer.get('message', 'see above')}", "exit 0")
    return answer


def _print_next(recipe: Recipe, console: Console) -> None:
    console.print(
        f"""
What next
  make dev                                          the UI at http://localhost:3000, with these runs in it
  .venv/bin/python -m pipeline report --corpus {recipe.name}            a page: what became of every file, and why
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
