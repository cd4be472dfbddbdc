"""Asset `training` of a corpus: runs `python -m trainer train` on a snapshot as a child process, and shows its losses."""

import json
import time
from collections.abc import Callable
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any, Literal

import dagster as dg
from pydantic import AfterValidator, Field, create_model, model_validator

from assets.forms import NamedIn, form, overrides_of, params_from, without_unset
from assets.instance import tag_corpus
from assets.keys import TRAIN_POOL, live_key, training_key
from assets.reporting import sparkline, table
from assets.resources import StoreResource, refusals, store_root
from assets.trainer_process import TrainerStoppedError, run_trainer, trainer_command
from pipeline.build.run_stage import BuildCallback
from pipeline.core.command_line import LAST_STEP
from pipeline.core.errors import ParamsError
from pipeline.core.params import Params
from pipeline.core.settings.overrides import at, layered, refuse_conflicts, setting, settings_of, values_of
from pipeline.core.settings.recipe_files import names_file
from pipeline.pins.corpora import Corpus, CorpusTraining
from trainer.config.choices import Precision
from trainer.config.mix import divide_mix
from trainer.config.training_config import TRAINING_RECIPES, TrainingConfig, training_recipe

SECONDS_BETWEEN_EVENTS = 15.0
"""A run of many steps writes an event this often: thousands of them make the UI slow."""
MAX_STARTS_AGAIN = 5
"""A trainer that was killed is started again this often and resumes. After an error, or by Terminate, it is not."""


def _known_recipe(name: str) -> str:
    """Return the name or the file of a training recipe. Raises ValueError for a name that is not registered by now."""
    if not names_file(name) and name not in TRAINING_RECIPES:
        raise ValueError(f"one of {', '.join(TRAINING_RECIPES.names)}, or a file")
    return name


class TrainingParams(Params):
    """Arguments of one training session. The same values resume where the last session stopped."""

    recipe: Annotated[str, AfterValidator(_known_recipe), NamedIn(lambda: TRAINING_RECIPES.names)] = "tiny"
    """Training recipe: the model, its optimizer and its batches."""
    stop_after: int = Field(default=20, ge=1, le=LAST_STEP)
    """Step at which this session ends, counted from the start of the run. A run that is at it or past it is unchanged."""
    save_every: int = Field(default=10, ge=1)
    """Steps between checkpoints."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """`auto` is a GPU where there is one, else the CPU. A run stays on the kind of device that it began on."""
    precision: Precision | None = None
    """Type of matrix products; the recipe's unless given."""
    evaluate_every: int | None = Field(default=None, ge=1, le=LAST_STEP)
    """Steps between evaluations on held-out rows; never unless given."""
    evaluate_rows: int = Field(default=32, ge=1, le=LAST_STEP)
    """Held-out rows of an evaluation, the same each time: spread over all in proportion to source, lane and license."""
    keep_last: int | None = Field(default=None, ge=1, le=LAST_STEP)
    """Newest checkpoints to keep. All are kept unless one of these three is given."""
    keep_every: int | None = Field(default=None, ge=1, le=LAST_STEP)
    """Checkpoints to keep at multiples of as many steps."""
    keep_best: int | None = Field(default=None, ge=1, le=LAST_STEP)
    """Checkpoints of least recent loss to keep."""
    snapshot: str = Field(default="live", min_length=1)
    """`live`, `candidate`, or a snapshot id."""
    follow: str = Field(default="", pattern="^(|live|candidate|[0-9a-f]{64})$")
    """`live` or `candidate`: at the end of an epoch, continue with the snapshot that it then names. A checkpoint id repeats
    its run. Empty: only one snapshot is read."""
    mix: tuple[str, ...] = ()
    """Several snapshots as NAME=WEIGHT, in place of the one: a corpus (its live), CORPUS/candidate, or a snapshot id; or shares of
    the live one's tokens, such as `build_aware=0.7,syntax_only=0.3`."""
    only: tuple[str, ...] = ()
    """Rows to draw alone, such as `license=permissive`, `source=mine,zlib` or `lane=build_aware`."""
    init_from: str = ""
    """Weights that a new run begins with: of a checkpoint (an id, or RUN@STEP), or a folder of an export. Empty: they are drawn."""
    track: tuple[str, ...] = ()
    """Libraries that record the metrics too, offline: `wandb`, `mlflow`, `tensorboard`."""
    seed: int = Field(default=42, ge=0, lt=2**63)
    """Seed of initial weights, data order and infilling."""
    recipe_file: str = ""
    """Path of a TOML file of a training recipe in place of `recipe`; that if empty."""
    set: tuple[str, ...] = ()
    """Fields of the recipe to set, each as FIELD=VALUE, such as `optimizer.peak_learning_rate=3e-4`; `none` sets one to nothing."""
    overrides: overrides_of(TrainingConfig) = Field(default_factory=overrides_of(TrainingConfig))  # type: ignore[valid-type]  # derived
    """Fields of the recipe to set otherwise."""

    @model_validator(mode="after")
    def _refuse_bad_fields(self) -> "TrainingParams":
        """Raise ParamsError for what no training could begin with, as a launch is judged before a stage or a trainer begins."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            if "\0" in "".join(map(str, value if isinstance(value, tuple) else (value,))):
                raise ParamsError(
                    f"field `{name}`", "it holds a NUL character", "text without one", "Launch without it."
                )
        layers = [setting(text, "set") for text in self.settings()]
        own = [] if self.precision is None else [at(("dtype",), str(self.precision), "precision")]
        refuse_conflicts([*layers, *own])
        training_recipe(self.recipe_file or self.recipe, *layers, *own)
        return self

    def settings(self) -> tuple[str, ...]:
        """Return what is set otherwise than the recipe, each field as FIELD=VALUE.

        Of one field the form has precedence over `set`, and that over what is declared, which is the default of `set`.
        Raises ParamsError for what is no setting.
        """
        chosen = settings_of(without_unset(values_of(self.overrides)))
        declared = type(self).model_fields["set"].default
        return tuple(layered(layered(declared, self.set, "set"), chosen, "set"))


def params_of(corpus: Corpus) -> type[TrainingParams]:
    """Derive the Params of trainings on a declared corpus: what it declares are the defaults."""
    declared = corpus.training
    if declared == CorpusTraining():
        return TrainingParams
    names = tuple(dict.fromkeys((*TRAINING_RECIPES.names, declared.recipe)))
    fields: dict[str, tuple[Any, Any]] = {
        "recipe": (Annotated[str, AfterValidator(_known_recipe), NamedIn(lambda: names)], declared.recipe),
        "set": (tuple[str, ...], tuple(settings_of(declared.set))),
    }
    described: dict[str, Any] = {
        name: (kind, Field(value, description=TrainingParams.model_fields[name].description))
        for name, (kind, value) in fields.items()
    }
    return create_model("TrainingParams", __base__=TrainingParams, __doc__=TrainingParams.__doc__, **described)


def training(declared: Corpus, callback: BuildCallback) -> dg.AssetsDefinition:
    """Train a model on the live snapshot, resuming exactly where it stopped, and register the checkpoint.

    Losses, parameters and optimizer state are bitwise the same however often a run is stopped; a killed trainer is started
    again. Launch with a later `stop_after` to continue. By hand: `python -m trainer train --store store --out FOLDER`.
    """
    corpus, kind = declared.name, params_of(declared)
    config_type: Any = form(kind)
    key = training_key(corpus)

    @dg.asset(
        key=key,
        deps=[live_key(corpus)],
        description=cleandoc(training.__doc__ or ""),
        kinds={"pytorch"},
        pool=TRAIN_POOL,
    )
    def train(context: dg.AssetExecutionContext, config: config_type, store: StoreResource) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster reads the bare name
        with refusals(corpus, "training", "Its checkpoints are kept."):
            params = params_from(config, kind)
            tag_corpus(context.instance, context.run.run_id, corpus)
            out = store_root() / "runs" / context.run.run_id
            result = _run(command_of(corpus, params, out), _line_logger(context, callback, out / "metrics.jsonl"))
            return dg.MaterializeResult(
                asset_key=key,
                data_version=dg.DataVersion(result["checkpoint_id"]),
                metadata=training_metadata(result, corpus, out),
            )

    return train


def _run(command: list[str], said: Callable[[str], None]) -> dict[str, Any]:
    try:
        return run_trainer(command, said)
    except TrainerStoppedError as error:
        raise dg.RetryRequested(max_retries=MAX_STARTS_AGAIN, seconds_to_wait=1.0) from error


def command_of(corpus: str, params: TrainingParams, out: Path) -> list[str]:
    """Build the child's command line. It resumes the newest checkpoint of the run, if there is one."""
    names_snapshots = bool(divide_mix(params.mix).snapshots)
    options = {
        **({} if names_snapshots else {"corpus": corpus}),
        **({"follow": params.follow} if params.follow else {} if names_snapshots else {"snapshot": params.snapshot}),
        "recipe": params.recipe_file or params.recipe,
        "init-from": params.init_from or None,
        "stop-after": params.stop_after,
        "save-every": params.save_every,
        "seed": params.seed,
        "device": params.device,
        "dtype": params.precision,
        "evaluate-every": params.evaluate_every,
        "evaluate-rows": params.evaluate_rows,
        "keep-last": params.keep_last,
        "keep-every": params.keep_every,
        "keep-best": params.keep_best,
        "out": out,
        "resume": "latest",
    }
    given = {name: value for name, value in options.items() if value is not None}
    arguments = [word for name, value in given.items() for word in (f"--{name}", str(value))]
    repeated = {"mix": params.mix, "set": params.settings(), "track": params.track, "only": params.only}
    arguments += [word for name, values in repeated.items() for value in values for word in (f"--{name}", value)]
    return trainer_command("train", store_root(), *arguments)


def training_metadata(result: dict[str, Any], corpus: str, out: Path) -> dict[str, Any]:
    """Build the metadata of a training session: steps, losses and data first, then what is needed to repeat it."""
    losses = result["losses"]
    every = max(1, len(losses) // 10)
    shown = [step for step in range(1, len(losses) + 1) if step % every == 0 or step in (1, len(losses))]
    environment = {**{f"seed of {name}": seed for name, seed in result["seeds"].items()}, **result["environment"]}
    return {
        "corpus": corpus,
        "steps": result["steps"],
        "device": result["environment"].get("device", "cpu"),
        "final loss": round(result["final_loss"], 4),
        "loss": sparkline(losses),
        **_throughput(out / "metrics.jsonl"),
        "parameters": f"{result['num_parameters']:,}",
        **({} if result["unchanged"] else {"tokens per second": result["tokens_per_second"]}),
        "unchanged": result["unchanged"],
        "snapshot": dg.MetadataValue.asset(live_key(corpus)),
        "losses": table([{"step": step, "loss": round(losses[step - 1], 4)} for step in shown]),
        "seeds and versions": table([{"what": name, "value": str(value)} for name, value in environment.items()]),
        "metrics": dg.MetadataValue.path(str(out / "metrics.jsonl")),
        "snapshot_id": result["snapshot_id"],
        **({"mixture": result["mixture"]} if result["mixture"] else {}),
        **({"adoptions": table(result["adoptions"])} if result["adoptions"] else {}),
        "checkpoint_id": result["checkpoint_id"],
        "certificate": result["certificate"],
        "parameters_sha256": result["parameters_sha256"],
    }


def _throughput(metrics: Path) -> dict[str, Any]:
    """Plot the tokens per second over the steps of this run's folder, if any were logged."""
    lines = metrics.read_text(encoding="utf-8").splitlines() if metrics.exists() else []
    rates = [float(json.loads(line)["tokens_per_second"]) for line in lines]
    return {"throughput": sparkline(rates, "{:,.0f} tokens/s")} if rates else {}


def _line_logger(context: dg.AssetExecutionContext, callback: BuildCallback, metrics: Path) -> Callable[[str], None]:
    """Return a function that passes each line of the trainer to the callback, and some to the run's log with their metrics."""
    logged = time.monotonic()

    def said(text: str) -> None:
        nonlocal logged
        callback.said(text)
        if text.startswith("train [") and time.monotonic() - logged < SECONDS_BETWEEN_EVENTS:
            return
        logged = time.monotonic()
        context.log.info(text)
        if text.startswith("train ["):
            step = json.loads(metrics.read_text(encoding="utf-8").splitlines()[-1])
            names = ("step", "loss", "tokens_per_second")
            context.log_event(dg.AssetObservation(context.asset_key, metadata={name: step[name] for name in names}))

    return said
