"""Trackers record what metrics.jsonl has, below the output folder, and change no number. `make consumers` runs the libraries."""

import json
import socket
import sqlite3
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import ParamsError, TrainingError
from pipeline.store.store import Store
from tests.support.made.made_snapshot import commit_made
from trainer.config.training_config import training_recipe
from trainer.train.child_session import SAME
from trainer.train.loop import train
from trainer.train.session import RunInputs, TrainSession
from trainer.train.tracking.trackers import TRACKERS, TrackedRun, Tracker, require_trackers


class ListRecords:
    """Records in a list, which may fail at a step."""

    def __init__(self, run: TrackedRun, fails_at: int | None = None, num_failures: int = 99) -> None:
        self.run, self.fails_at, self.lines, self.is_closed = run, fails_at, list[dict[str, Any]](), False
        self.num_failures = num_failures

    def add(self, metrics: Mapping[str, Any]) -> None:
        if metrics["step"] == self.fails_at and self.num_failures:
            self.num_failures -= 1
            raise RuntimeError("the server is gone")
        self.lines.append(dict(metrics))

    def close(self) -> None:
        self.is_closed = True


def listed(opened: list[ListRecords], *failing: int) -> Tracker:
    def begin(run: TrackedRun) -> ListRecords:
        opened.append(ListRecords(run, *failing))
        return opened[-1]

    return Tracker("list", "json", "dev", begin)


@pytest.fixture
def trained(store: Store, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Train three steps on made rows; the output folder is named after the run."""

    def call(run: str, *trackers: str, stop_after: int = 3, **changes: Any) -> dict[str, Any]:
        inputs = RunInputs(commit_made(store), training_recipe("tiny"), 42)
        session = TrainSession(inputs, "tiny", stop_after, 9, tmp_path / run, run=run, trackers=trackers, **changes)
        return train(store, session)

    return call


@pytest.fixture
def no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection of this process to another machine."""
    connect = socket.socket.connect

    def refuse(self: socket.socket, address: Any) -> None:
        assert self.family == socket.AF_UNIX or address[0] in ("127.0.0.1", "localhost", "::1"), address
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", refuse)


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_a_tracker_gets_the_metrics_and_changes_no_number(trained: Any, tmp_path: Path) -> None:
    opened: list[ListRecords] = []
    plain = trained("plain")
    with TRACKERS.registered(listed(opened)):
        tracked = trained("tracked", "list", "tensorboard")
        resumed = trained("tracked", "list", stop_after=4, resume="latest")

    assert {name: tracked[name] for name in SAME} == {name: plain[name] for name in SAME}
    first, second = opened
    assert first.lines == lines_of(tmp_path / "tracked")[:3]
    assert (first.run.name, first.run.first_step, first.run.is_online, first.is_closed) == ("tracked", 0, False, True)
    assert (second.run.first_step, [line["step"] for line in second.lines]) == (3, [4])
    assert first.run.identity["config"] == resumed["config"]
    assert (tmp_path / "tracked" / "tensorboard" / "events.out.tfevents.0000000000").stat().st_size > 100


def test_a_tracker_that_fails_costs_its_records_and_no_step(trained: Any, capsys: pytest.CaptureFixture[str]) -> None:
    opened: list[ListRecords] = []
    with TRACKERS.registered(listed(opened, 2)):
        done = trained("failing", "list", stop_after=4)

    told = capsys.readouterr().err
    assert done["steps"] == 4
    assert told.count("warning: --track list failed (RuntimeError: the server is gone); training continues") == 1
    assert [line["step"] for line in opened[0].lines] == [1]


@pytest.mark.parametrize(("fails_at", "num_failures"), [(1, 2), (3, 1)])
def test_a_tracker_that_fails_for_a_while_gets_all_steps_later(
    fails_at: int, num_failures: int, trained: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[ListRecords] = []
    with TRACKERS.registered(listed(opened, fails_at, num_failures)):
        trained("failing", "list")

    assert "--track list" not in capsys.readouterr().err
    assert [line["step"] for line in opened[0].lines] == [1, 2, 3]
    assert opened[0].is_closed


def test_a_tracker_that_cannot_begin_is_refused_before_the_first_step(trained: Any, store: Store) -> None:
    def begin(run: TrackedRun) -> Any:
        raise OSError("no such server")

    with (
        TRACKERS.registered(Tracker("broken", "json", "dev", begin)),
        pytest.raises(TrainingError, match=r"--track broken: it cannot begin \(OSError: no such server\)"),
    ):
        trained("broken", "broken")
    assert store.ref("runs/broken", "latest") is None


def test_a_missing_library_is_a_sentence_with_the_extra_that_brings_it() -> None:
    for name in ("wandb", "mlflow", "tensorboard"):
        assert TRACKERS[name].extra in Path("pyproject.toml").read_text().partition("optional-dependencies]")[2]
    with (
        TRACKERS.registered(Tracker("absent", "no_such_module", "absent", ListRecords)),
        pytest.raises(TrainingError, match=r"no_such_module is not installed.*pip install 'sluice\[absent\]'"),
    ):
        require_trackers(("absent",), has_telemetry=True)
    with pytest.raises(ParamsError, match=r"tracker wandv: .* Did you mean wandb\?"):
        require_trackers(("wandv",), has_telemetry=True)
    with pytest.raises(ParamsError, match="--track tensorboard: --telemetry is off"):
        require_trackers(("tensorboard",), has_telemetry=False)


def test_no_library_is_loaded_that_was_not_asked_for(trained: Any) -> None:
    before = {name for name in ("wandb", "mlflow") if name in sys.modules}
    trained("plain")

    assert {name for name in ("wandb", "mlflow") if name in sys.modules} == before


@pytest.mark.usefixtures("no_connection")
def test_wandb_records_offline(trained: Any, tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed")
    plain, tracked = trained("plain"), trained("tracked", "wandb")
    trained("tracked", "wandb", stop_after=4, resume="latest")

    assert {name: tracked[name] for name in SAME} == {name: plain[name] for name in SAME}
    records = sorted((tmp_path / "tracked" / "wandb").glob("offline-run-*/run-tracked.wandb"))
    assert len(records) == 2
    assert b"learning_rate" in records[0].read_bytes()


@pytest.mark.usefixtures("no_connection")
def test_mlflow_records_in_one_file_and_a_resumed_run_continues_there(trained: Any, tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="mlflow is not installed")
    plain, tracked = trained("plain"), trained("tracked", "mlflow")
    trained("tracked", "mlflow", stop_after=4, resume="latest")

    assert {name: tracked[name] for name in SAME} == {name: plain[name] for name in SAME}
    with sqlite3.connect(tmp_path / "tracked" / "mlflow.db") as database:
        rows = database.execute("select step, value from metrics where key = 'loss' order by step").fetchall()
        runs = database.execute("select name, status from runs").fetchall()
    assert rows == [(line["step"], line["loss"]) for line in lines_of(tmp_path / "tracked")]
    assert runs == [("tracked", "FINISHED")]
