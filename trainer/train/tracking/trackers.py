"""TRACKERS: other programs that record the metrics of a training, each by its own library, imported where it is requested.

Offline unless `--track-online` asks for more: what a tracker records is below the output folder of the run, and nothing leaves the
machine. A tracker reads what metrics.jsonl gets; it changes no number, and one that fails while training costs its records alone:
what it could not take waits for the next step, and after three steps in a row it is left out.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import time
from typing import Any

from pipeline.core.errors import ParamsError, TrainingError
from pipeline.core.registry import Registry
from trainer.train.tracking.event_file import EventFile, Records, numbers_of


@dataclass(frozen=True)
class TrackedRun:
    """A run as a tracker begins to record it, after `first_step` steps."""

    name: str
    folder: Path
    identity: Mapping[str, Any]
    first_step: int
    is_online: bool = False


@dataclass(frozen=True)
class Tracker:
    """A tracker: the module that it needs, the extra that brings it, and the function that opens its records of a run."""

    name: str
    module: str
    extra: str
    begin: Callable[[TrackedRun], Records]


def require_trackers(names: tuple[str, ...], has_telemetry: bool) -> None:
    """Raise ParamsError for a name of none, TrainingError for a library that is not installed: before any work begins."""
    for name in names:
        tracker = TRACKERS[name]
        if not has_telemetry:
            raise ParamsError(f"--track {name}", "--telemetry is off", "on", "Leave one of the two out.")
        if find_spec(tracker.module) is None:
            remedy = f"Install it by `python -m pip install 'sluice[{tracker.extra}]'`, or leave --track {name} out."
            raise TrainingError(f"--track {name}", f"{tracker.module} is not installed", "its library", remedy)


def begin_tracking(names: tuple[str, ...], run: TrackedRun) -> dict[str, Records]:
    """Open the records of each tracker. Raises TrainingError where one cannot begin: its library says why."""
    opened: dict[str, Records] = {}
    for name in names:
        try:
            opened[name] = TRACKERS[name].begin(run)
        except Exception as error:
            for records in opened.values():
                records.close()
            found = f"it cannot begin ({type(error).__name__}: {error})"
            raise TrainingError(f"--track {name}", found, "records below the output folder", _WITHOUT) from error
    return opened


class WandbRecords:
    """Records of Weights & Biases; offline they are in `wandb/` of the output folder, which `wandb sync` would send."""

    def __init__(self, run: TrackedRun) -> None:
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # crash reports of its own, to its makers
        for name in ("CACHE", "CONFIG", "DATA"):
            os.environ.setdefault(f"WANDB_{name}_DIR", str(run.folder.resolve() / "wandb"))
        (run.folder / "wandb").mkdir(parents=True, exist_ok=True)
        import wandb

        from pipeline.core.params import flat  # here, since the command line loads the trackers at its start

        settings = wandb.Settings(
            mode="online" if run.is_online else "offline",
            silent=True,
            console="off",
            disable_git=True,
            disable_code=True,
            x_disable_stats=True,
            x_disable_machine_info=True,
        )
        self._run = wandb.init(
            project="sluice",
            name=run.name,
            id=run.name,
            resume="allow",
            dir=str(run.folder),
            config=flat(run.identity),
            settings=settings,
        )

    def add(self, metrics: Mapping[str, Any]) -> None:
        self._run.log(numbers_of(metrics), step=int(metrics["step"]))

    def close(self) -> None:
        self._run.finish(exit_code=0)


class MlflowRecords:
    """Records of MLflow; offline they are in `mlflow.db` of the output folder. A resumed run continues its own."""

    def __init__(self, run: TrackedRun) -> None:
        os.environ |= {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}  # its use, to its makers
        for name, most in _MLFLOW_WAITS.items():
            os.environ.setdefault(name, most)
        from mlflow.tracking import MlflowClient

        from pipeline.core.params import flat

        run.folder.mkdir(parents=True, exist_ok=True)
        place = None if run.is_online else f"sqlite:///{run.folder.resolve() / 'mlflow.db'}"
        self._client = MlflowClient(tracking_uri=place)
        known = self._client.get_experiment_by_name("sluice")
        artifacts = None if run.is_online else (run.folder.resolve() / "mlflow").as_uri()
        experiment = known.experiment_id if known else self._client.create_experiment("sluice", artifacts)
        before = self._client.search_runs([experiment], f"tags.mlflow.runName = '{run.name}'", max_results=1)
        is_resumed = bool(before) and run.first_step > 0
        found = before[0] if is_resumed else self._client.create_run(experiment, run_name=run.name)
        self._run_id = found.info.run_id
        self._client.update_run(self._run_id, status="RUNNING")
        for name, value in flat(run.identity).items() if not is_resumed else ():
            self._client.log_param(self._run_id, name, value)

    def add(self, metrics: Mapping[str, Any]) -> None:
        from mlflow.entities import Metric

        when, step = int(time() * 1000), int(metrics["step"])
        rows = [Metric(name, value, when, step) for name, value in numbers_of(metrics).items()]
        self._client.log_batch(self._run_id, metrics=rows)

    def close(self) -> None:
        self._client.set_terminated(self._run_id)


def _begin_event_file(run: TrackedRun) -> Records:
    return EventFile(run.folder / "tensorboard", run.first_step)


TRACKERS: Registry[Tracker] = Registry(
    "tracker",
    Tracker("wandb", "wandb", "wandb", WandbRecords),
    Tracker("mlflow", "mlflow", "mlflow", MlflowRecords),
    Tracker("tensorboard", "tensorboardX", "tensorboard", _begin_event_file),
)
_MLFLOW_WAITS = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2", "MLFLOW_HTTP_REQUEST_TIMEOUT": "20"}
"""Retries and seconds of a request: a step waits for it, and by itself MLflow tries for minutes."""
_WITHOUT = "Correct its settings, or leave --track out: metrics.jsonl has every metric."
