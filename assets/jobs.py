"""Jobs: build, promote, train and the scheduled nightly, each with a launchpad that opens filled."""

from typing import Any

import dagster as dg

from assets.forms import filled
from assets.live_snapshot import LIVE, PromotionParams
from assets.training import TRAINING, TrainingParams
from pipeline.build.recipes import QUICK, Recipe
from pipeline.stages.stages import STAGES

# Otherwise a run writes 50 kB of debug lines to the terminal; the event log has them in any case.
_QUIET = {"console": {"config": {"log_level": "WARNING"}}}


def jobs() -> list[Any]:
    """Build all jobs."""
    stages = dg.AssetSelection.assets(*STAGES.names)
    return [
        _job(
            "build",
            stages,
            build_config(QUICK),
            f"Run the stages {', '.join(STAGES.names)} and end at the candidate snapshot. What did not change is not made again, "
            "and a second build of the same corpus waits for the first.",
        ),
        _job(
            "promote",
            dg.AssetSelection.assets(LIVE),
            promote_config("quick"),
            "Judge every gate of the candidate again and make it live. With `to` set to an older id, roll back.",
        ),
        _job(
            "train",
            dg.AssetSelection.assets(TRAINING),
            train_config(TrainingParams()),
            "Train on the live snapshot up to step `stop_after`, or resume the same run where it stopped.",
        ),
        _job(
            "nightly",
            stages | dg.AssetSelection.assets(LIVE),
            {**build_config(QUICK), "ops": {**build_config(QUICK)["ops"], **promote_config("quick")["ops"]}},
            "Build and promote. If a gate fails, the live snapshot of the night before stays.",
        ),
    ]


def schedules() -> list[dg.ScheduleDefinition]:
    """Build the schedule of `nightly`, which runs while a daemon does."""
    return [
        dg.ScheduleDefinition(
            name="nightly",
            job_name="nightly",
            cron_schedule="0 3 * * *",
            default_status=dg.DefaultScheduleStatus.RUNNING,
            description="Builds the corpus quick and promotes it, every night at 03:00 UTC, while a daemon runs.",
        )
    ]


def build_config(
    recipe: Recipe, pins: str = "", corpus: str = "", workers: int = 2, offline: bool = False, decisions: str = ""
) -> dict[str, Any]:
    """Return the run config of a build of `recipe`."""
    ops = {name: {"config": _values(recipe.params.of_stage(name))} for name in STAGES.names}
    build = {"recipe": recipe.name, "corpus": corpus, "pins": pins, "decisions": decisions, "workers": workers}
    build |= {"offline": offline, "wait_seconds": 3600.0}
    return {"ops": ops, "resources": {"build": {"config": build}}, "loggers": _QUIET}


def promote_config(corpus: str) -> dict[str, Any]:
    """Return the run config of a promotion of the candidate of `corpus`."""
    return {"ops": {"snapshot__live": {"config": _values(PromotionParams(corpus=corpus))}}, "loggers": _QUIET}


def train_config(params: TrainingParams) -> dict[str, Any]:
    """Return the run config of a training session."""
    return {"ops": {"training": {"config": _values(params)}}, "loggers": _QUIET}


def _job(name: str, selection: dg.AssetSelection, config: dict[str, Any], description: str) -> Any:
    return dg.define_asset_job(
        name, selection, config=config, description=description, executor_def=dg.in_process_executor
    )


def _values(params: Any) -> dict[str, Any]:
    run_config: dict[str, Any] = dg.RunConfig(ops={"op": filled(params)}).to_config_dict()  # type: ignore[no-untyped-call]
    values: dict[str, Any] = run_config["ops"]["op"]["config"]
    return values
