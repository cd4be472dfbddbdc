"""`make demo`: the whole pipeline once, end to end, as Dagster jobs, with bars on the terminal; the UI then shows the runs.

collect -> normalize -> enrich -> tokenize -> verify -> promote -> train -> stop and resume -> a completion
"""

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupted import ends the process without a traceback

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
from pipeline.cli.console import StageBars, UpdatingLine, person, verdict_table, waterfall_table
from pipeline.core.command_line import INTERRUPTED, Parser
from pipeline.core.errors import FetchError, SluiceError
from pipeline.store.store import Store
from pipeline.store.store_layout import refuse_other_format

STEPS, STOP_AT = 20, 10
NUM_WORKERS = 2
_REPOSITORY_TAG = {".dagster/repository": "__repository__@sluice"}


def main() -> int:
    """Run the demo and return its exit code."""
    parser = Parser(prog="python -m assets.demo", description="Run the whole pipeline once, end to end.")
    parser.add_argument("--recipe", default="quick", choices=sorted(RECIPES.names))
    recipe = RECIPES[parser.parse_or_exit(sys.argv[1:]).recipe]
    os.chdir(ROOT)  # the instance file's paths count from here
    os.environ.setdefault("DAGSTER_HOME", str(ROOT))
    # In a step Dagster captures the descriptors 1 and 2, so the bars write to a copy made before.
    console = person(os.fdopen(os.dup(2), "w", buffering=1))
    started = time.monotonic()
    try:
        done = Demo(recipe, console).run()
    except SluiceError as error:
        console.print(f"error: {error}", style="red", markup=False)
        return 1
    except KeyboardInterrupt:
        console.print(INTERRUPTED, style="red")
        return 130
    if done:
        console.print(f"\ndone in {time.monotonic() - started:.0f} s")
        _print_next(recipe, console)
    return 0 if done else 1


class Demo(BuildCallback):
    """The demo of one recipe. As the callback of the assets it draws the bars and keeps the results for the tables at the end."""

    def __init__(self, recipe: Recipe, console: Console) -> None:
        # Imported here: workers of the pool import this module again and do not need Dagster.
        from assets.resources import store_root

        self.recipe, self.console, self.root = recipe, console, store_root()
        self.bars, self.line = StageBars(console, NUM_WORKERS), UpdatingLine(console)
        self.results: list[StageResult] = []

    def progress(self, progress: ProgressEvent) -> None:
        self.bars.progress(progress)

    def finished(self, result: StageResult, seconds: float) -> None:
        self.results.append(result)
        self.bars.finished(result, seconds)

    def said(self, text: str) -> None:
        """Show a line of the trainer: steps overwrite each other, other lines stay."""
        (self.line.update if text.startswith("train [") else self.line.say)(text)

    def run(self) -> bool:
        """Build, promote, train, resume and sample; return whether everything succeeded."""
        import dagster as dg

        from assets import definitions, jobs
        from assets.keys import job_name
        from assets.resources import declared_corpora
        from pipeline.pins.corpora import Corpus

        name = self.recipe.name
        refuse_other_format(self.root)  # before a job starts, which would fail of it
        self.console.print(f"Sluice demo: corpus {name}, store {self.root}\n")
        corpora = declared_corpora()
        if name not in {corpus.name for corpus in corpora}:
            corpora = (*corpora, Corpus(name=name, recipe=name))
        defs = definitions.definitions(self, corpora)
        configs = {
            "build": jobs.build_config(Corpus(name=name, recipe=name), NUM_WORKERS),
            "promote": jobs.promote_config(name),
            "train": jobs.train_config(name, self._training(STEPS)),
        }
        with dg.DagsterInstance.get() as instance:
            for job, config in configs.items():
                with self.bars if job == "build" else self.line:
                    run_id, failure = _execute(defs, job_name(job, name, corpora), config, instance)
                if job == "build":
                    self.console.print()
                    self.console.print(waterfall_table(self.results))
                    self.console.print(verdict_table(verdict for each in self.results for verdict in each.verdicts))
                if failure is not None:
                    self._print_failure(job, failure)
                    return False
                if job == "promote":
                    self.console.print(f"promoted snapshot {Store(self.root).ref(name, 'live')}\n")
        return self._stop_and_resume(json.loads((self.root / "runs" / run_id / "result.json").read_text()))

    def _print_failure(self, job: str, failure: str) -> None:
        """Print the error: of a blocked stage each source and gate that failed."""
        blocked = next((result for result in self.results if result.blocked), None) if job == "build" else None
        lines = [f"\nthe job {job} failed" + ("" if blocked else f": {failure}")]
        if blocked:
            lines += [f"  {error}" for _, error in sorted(blocked.failures.items())]
            lines += [f"  {verdict.sentence}" for verdict in blocked.verdicts if not verdict.passed]
        self.console.print("\n".join(lines), style="red", markup=False)
        if blocked and any(isinstance(error, FetchError) for error in blocked.failures.values()):
            self.console.print("Without a package index, `make demo RECIPE=tiny` does the same with the made corpus.")

    def _stop_and_resume(self, straight: dict[str, Any]) -> bool:
        """Train the same run again under another name, stop it, resume it in a fresh process, and compare every bit."""
        steps = straight["steps"]  # more than STEPS, where somebody has trained this run further
        unchanged = "  (unchanged)" if straight["unchanged"] else ""
        losses = f"loss {straight['losses'][0]:.4f} to {straight['final_loss']:.4f}"
        self.console.print(f"trained {steps} steps: {losses}{unchanged}\n")
        run = f"demo-resumed-{self.recipe.name}"
        is_done = Store(self.root).ref(f"runs/{run}", "latest") == straight["checkpoint_id"]
        if not is_done:
            self._train(STOP_AT, run)
        resumed = self._train(steps, run)
        names = ("losses", "parameters_sha256", "optimizer_sha256")
        different = ", ".join(name for name in names if straight[name] != resumed[name])
        if different:
            found = f"stopped and resumed, but {different} differ: training is not reproducible on this machine"
            self.console.print(found, style="red")
            return False
        stopped = f"stopped at step {STOP_AT}, resumed to {steps}"
        stopped = f"unchanged: an earlier demo {stopped}" if is_done else stopped
        self.console.print(f"{stopped}: losses and parameters bit-identical")
        prompt = "#include <vector>\n\nint main() {\n"
        arguments = ("--checkpoint", straight["checkpoint_id"], "--prompt", prompt)
        sampled = run_trainer(trainer_command("sample", self.root, *arguments), self.said)
        self.console.print(f"\na completion by the small model, after {steps} steps of training:", style="bold")
        self.console.print(prompt + sampled["completion"], markup=False)
        return True

    def _train(self, stop_after: int, run: str) -> dict[str, Any]:
        """Run one training session, with its steps on one line that is overwritten."""
        from assets.training import command_of

        out = self.root / "runs" / f"demo-{self.recipe.name}"
        with self.line:
            return run_trainer(
                [*command_of(self.recipe.name, self._training(stop_after), out), "--run", run], self.said
            )

    def _training(self, stop_after: int) -> Any:
        from assets.training import TrainingParams

        return TrainingParams(stop_after=stop_after, save_every=STOP_AT)


def _execute(defs: Any, name: str, config: dict[str, Any], instance: Any) -> tuple[str, str | None]:
    """Run a job in this process, visible in the UI; return the run id, and None or the error."""
    quiet = {"console": {"config": {"log_level": "CRITICAL"}}}
    job = defs.resolve_job_def(name)
    done = job.execute_in_process(
        instance=instance, run_config={**config, "loggers": quiet}, raise_on_error=False, tags=_REPOSITORY_TAG
    )
    if done.success:
        return done.run_id, None
    from assets.instance import cause_of_failure

    texts = filter(None, (cause_of_failure(event.event_specific_data) for event in done.all_events if event.is_failure))
    return done.run_id, next(texts, f"run {done.run_id} failed")


def _print_next(recipe: Recipe, console: Console) -> None:
    console.print(
        f"""
What next
  make dev                                          the UI at http://localhost:3000, with these runs in it
  .venv/bin/python -m pipeline report --corpus {recipe.name}            a page: the outcome of every file, and why
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
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())
