"""The asset `training`: runs `python -m trainer train` on a snapshot as a child process, and shows its losses."""

import json
import time
from collections.abc import Callable
from inspect import cleandoc
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from assets.config import form, params_from
from assets.instance import tag_corpus
from assets.plots import sparkline
from assets.reporting import table
from assets.resources import StoreResource, refusals, store_root
from assets.snapshot import LIVE
from assets.trainer_process import TrainerStoppedError, run_trainer, trainer_command
from pipeline.build.watcher import Watcher
from pipeline.core.params import Params
from trainer.config.training import RECIPES

TRAINING = dg.AssetKey("training")
SECONDS_BETWEEN_EVENTS = 15.0
"""A run of many steps writes an event this often: thousands of them make the UI slow."""
AFTER_A_STOP = dg.RetryPolicy(max_retries=5, delay=1.0)
"""A trainer that was killed is started again, and resumes. What it refuses is not tried again."""


class TrainingParams(Params):
    """One sitting of a training. The same values go on where the last sitting stopped."""

    corpus: str = "quick"
    """The corpus that is trained on."""
    snapshot: str = "live"
    """`live`, `candidate`, or a snapshot id."""
    follow: str = Field(default="", pattern="^(|live|candidate|[0-9a-f]{64})$")
    """`live` or `candidate`: when the epoch turns, go on with the snapshot that it names then. A checkpoint id repeats its run.
    Empty: one snapshot is read."""
    mix: tuple[str, ...] = ()
    """Several snapshots as NAME=WEIGHT, in place of the one: a corpus (its live), CORPUS/candidate, or a snapshot id."""
    recipe: str = Field(default="tiny", pattern="|".join(sorted(RECIPES)))
    """Training recipe: the model, its optimizer and its batches."""
    stop_after: int = Field(default=20, ge=1, le=10_000_000)
    """Step at which this sitting ends, counted from the start of the run."""
    save_every: int = Field(default=10, ge=1)
    """Steps between checkpoints."""
    seed: int = Field(default=42, ge=0, lt=2**63)
    """Seed of initial weights, data order and infilling."""


def training(watcher: Watcher) -> dg.AssetsDefinition:
    """A model trained on the live snapshot: resumed exactly where it stopped, registered as a checkpoint.

    Losses, parameters and optimizer state are the same bit for bit, however often a run is stopped: a trainer that is killed is
    started again. Launch with a later `stop_after` to go on. By hand: `python -m trainer train --store store --out FOLDER`.
    """
    config_type: Any = form(TrainingParams)

    @dg.asset(key=TRAINING, deps=[LIVE], description=cleandoc(training.__doc__ or ""), retry_policy=AFTER_A_STOP)
    def train(context: dg.AssetExecutionContext, config: config_type, store: StoreResource) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster reads the bare name
        with refusals():
            params = params_from(config, TrainingParams)
            tag_corpus(context.instance, context.run.run_id, params.corpus)
            out = store_root() / "runs" / context.run.run_id
            result = _run(command_of(params, out), _teller(context, watcher, out / "metrics.jsonl"))
        return dg.MaterializeResult(
            asset_key=TRAINING,
            data_version=dg.DataVersion(result["checkpoint_id"]),
            metadata=training_metadata(result, params.corpus, out),
        )

    return train


def _run(command: list[str], said: Callable[[str], None]) -> dict[str, Any]:
    try:
        return run_trainer(command, said)
    except TrainerStoppedError as error:
        raise dg.Failure(description=str(error), allow_retries=True) from error


def command_of(params: TrainingParams, out: Path) -> list[str]:
    """The child's command line. It resumes the run's newest checkpoint, if there is one."""
    options = {
        "corpus": params.corpus,
        **({"follow": params.follow} if params.follow else {} if params.mix else {"snapshot": params.snapshot}),
        "recipe": params.recipe,
        "stop-after": params.stop_after,
        "save-every": params.save_every,
        "seed": params.seed,
        "out": out,
        "resume": "latest",
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    words += [word for member in params.mix for word in ("--mix", member)]
    return trainer_command("train", store_root(), *words)


def training_metadata(result: dict[str, Any], corpus: str, out: Path) -> dict[str, Any]:
    """What a person asks of a training: how far, how well, on what data; then what it takes to repeat it."""
    losses = result["losses"]
    every = max(1, len(losses) // 10)
    shown = [step for step in range(1, len(losses) + 1) if step % every == 0 or step in (1, len(losses))]
    circumstances = {**{f"seed of {name}": seed for name, seed in result["seeds"].items()}, **result["environment"]}
    return {
        "corpus": corpus,
        "steps": result["steps"],
        "final loss": round(result["final_loss"], 4),
        "loss": sparkline(losses),
        **_throughput(out / "metrics.jsonl"),
        "parameters": f"{result['num_parameters']:,}",
        "tokens per second": result["tokens_per_second"],
        "unchanged": result["unchanged"],
        "snapshot": dg.MetadataValue.asset(LIVE),
        "losses": table([{"step": step, "loss": round(losses[step - 1], 4)} for step in shown]),
        "seeds and versions": table([{"what": name, "value": str(value)} for name, value in circumstances.items()]),
        "metrics": dg.MetadataValue.path(str(out / "metrics.jsonl")),
        "snapshot_id": result["snapshot_id"],
        **({"mixture": result["mixture"]} if result["mixture"] else {}),
        **({"adoptions": table(result["adoptions"])} if result["adoptions"] else {}),
        "checkpoint_id": result["checkpoint_id"],
        "certificate": result["certificate"],
        "parameters_sha256": result["parameters_sha256"],
    }


def _throughput(metrics: Path) -> dict[str, Any]:
    """The curve of tokens a second over the steps of this run's folder; nothing where none was recorded."""
    lines = metrics.read_text(encoding="utf-8").splitlines() if metrics.exists() else []
    rates = [float(json.loads(line)["tokens_per_second"]) for line in lines]
    return {"throughput": sparkline(rates, "{:,.0f} tokens/s")} if rates else {}


def _teller(context: dg.AssetExecutionContext, watcher: Watcher, metrics: Path) -> Callable[[str], None]:
    """Passes on the trainer's lines: all to the watcher, now and then one to the run's log, with a point of the curves."""
    told = time.monotonic()

    def said(text: str) -> None:
        nonlocal told
        watcher.said(text)
        if text.startswith("train [") and time.monotonic() - told < SECONDS_BETWEEN_EVENTS:
            return
        told = time.monotonic()
        context.log.info(text)
        if text.startswith("train ["):
            step = json.loads(metrics.read_text().splitlines()[-1])
            names = ("step", "loss", "tokens_per_second")
            context.log_event(dg.AssetObservation(TRAINING, metadata={name: step[name] for name in names}))

    return said
