"""Jobs: build, promote, train and the scheduled nightly of each corpus, each with a launchpad that opens with what matters."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from assets.forms import filled
from assets.keys import build_key, job_name, live_key, op_name, stage_key, training_key
from assets.training import TrainingParams, params_of
from pipeline.core.settings.overrides import settings_of
from pipeline.pins.corpora import Corpus
from pipeline.stages.stages import STAGES

# Otherwise a run writes 50 kB of debug lines to the terminal; the event log has them in any case.
CONSOLE = dg.LoggerDefinition(
    dg.colored_console_logger.logger_fn,
    config_schema={"log_level": dg.Field(str, default_value="WARNING"), "name": dg.Field(str, default_value="dagster")},
)


def jobs(corpora: Sequence[Corpus]) -> list[Any]:
    """Build the jobs of all corpora."""
    return [job for corpus in corpora for job in _jobs_of(corpus, corpora)]


def schedules(corpora: Sequence[Corpus]) -> list[dg.ScheduleDefinition]:
    """Build the schedule of each corpus that has one, which runs while a daemon does."""
    return [
        dg.ScheduleDefinition(
            name=job_name("nightly", corpus.name, corpora),
            job_name=job_name("nightly", corpus.name, corpora),
            cron_schedule=corpus.nightly,
            execution_timezone="UTC",
            default_status=dg.DefaultScheduleStatus.RUNNING,
            description=f"Builds the corpus {corpus.name} and promotes it, by `{corpus.nightly}` in UTC, while a daemon runs.",
        )
        for corpus in corpora
        if corpus.nightly
    ]


def build_config(
    corpus: Corpus, workers: int = 2, offline: bool = False, overrides: dict[str, dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Return the run config of a build of `corpus`. `overrides` are what stages have otherwise than the recipe, by stage."""
    build: dict[str, Any] = {name: str(getattr(corpus, name) or "") for name in ("recipe", "pins", "decisions")}
    build |= {"set": settings_of(corpus.set)} if corpus.set else {}
    config = {"resources": {build_key(corpus.name): {"config": {**build, "workers": workers, "offline": offline}}}}
    ops = {op_name(stage_key(corpus.name, stage)): {"config": given} for stage, given in (overrides or {}).items()}
    return {**({"ops": ops} if ops else {}), **config}


def promote_config(corpus: str, **arguments: str) -> dict[str, Any]:
    """Return the run config of a promotion of the candidate of `corpus`."""
    values = {"to": "candidate", "reason": "", **arguments}
    return {"ops": {op_name(live_key(corpus)): {"config": values}}}


def train_config(corpus: str, params: TrainingParams) -> dict[str, Any]:
    """Return the run config of a training session on `corpus`."""
    return {"ops": {op_name(training_key(corpus)): {"config": _values(params)}}}


OPENED_WITH = ("recipe", "stop_after", "save_every", "device", "seed")
"""Fields with which the launchpad of a training opens; the others are in its schema."""


def _jobs_of(corpus: Corpus, corpora: Sequence[Corpus]) -> list[Any]:
    name = corpus.name
    stages = dg.AssetSelection.assets(*(stage_key(name, stage) for stage in STAGES.names))
    live = dg.AssetSelection.assets(live_key(name))
    built, promoted, trained = build_config(corpus), promote_config(name), train_config(name, params_of(corpus)())
    opened = (*OPENED_WITH, *(("set",) if corpus.training.set else ()))
    for each in trained["ops"].values():
        each["config"] = {field: each["config"][field] for field in opened}
    texts = {
        "build": f"Run the stages {', '.join(STAGES.names)} of corpus {name} and end at the candidate snapshot. "
        "What did not change is not made again, and a second build of the same corpus waits for the first.",
        "promote": f"Judge the candidate of corpus {name} again and make it live; with an older id in `to`, roll back.",
        "train": f"Train on the live snapshot of corpus {name} up to step `stop_after`, or resume the same run where it stopped.",
        "nightly": f"Build and promote corpus {name}. If a gate fails, or the candidate is what "
        "a person rolled back from, the live snapshot of the night before stays.",
    }
    parts: dict[str, tuple[dg.AssetSelection, dict[str, Any]]] = {
        "build": (stages, built),
        "promote": (live, promoted),
        "train": (dg.AssetSelection.assets(training_key(name)), trained),
        "nightly": (stages | live, {**promoted, **built, "ops": promoted["ops"]}),
    }
    return [
        dg.define_asset_job(
            job_name(kind, name, corpora),
            selection,
            config=config,
            description=texts[kind],
            tags={"corpus": name},
            executor_def=dg.in_process_executor,
        )
        for kind, (selection, config) in parts.items()
    ]


def _values(params: Any) -> dict[str, Any]:
    run_config: dict[str, Any] = dg.RunConfig(ops={"op": filled(params)}).to_config_dict()  # type: ignore[no-untyped-call]
    values: dict[str, Any] = run_config["ops"]["op"]["config"]
    return values
