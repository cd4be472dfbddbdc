"""Metrics: one line a step, and an event; a missing library or a full disk stops no training."""

import json
import os
import sys
from pathlib import Path

import pytest

from pipeline.core.errors import LockedError, TrainingError
from trainer.train.metrics import MetricsWriter, hold_folder


def test_an_event_is_on_disk_when_its_step_ends(tmp_path: Path) -> None:
    writer = MetricsWriter(tmp_path, 0, 2)
    writer.write_step(1, {"loss": 2.5, "skipped": True}, 8)

    assert json.loads((tmp_path / "metrics.jsonl").read_text())["loss"] == 2.5
    assert b"loss" in (tmp_path / "tensorboard" / "events.out.tfevents.0000000000").read_bytes()


def test_without_tensorboardx_one_line_reports_that_and_the_metrics_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX.proto.event_pb2", None)
    writer = MetricsWriter(tmp_path, 0, 2)
    writer.write_step(1, {"loss": 2.5}, 8)
    writer.finish({"steps": 1})

    assert [line for line in capsys.readouterr().err.splitlines() if "tensorboardX is not installed" in line]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metrics.jsonl", "result.json"]
    assert json.loads((tmp_path / "metrics.jsonl").read_text())["step"] == 1


def test_a_full_disk_costs_a_line_of_metrics_and_no_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = MetricsWriter(tmp_path, 0, 2)
    assert writer._events is not None
    writer._events._file = open("/dev/full", "wb")  # noqa: SIM115  # closed with the process
    writer.write_step(1, {"loss": 2.5}, 8)

    assert "the metrics of step 1 could not be written (No space left on device)" in capsys.readouterr().err


def test_a_silent_writer_and_one_without_telemetry_write_no_metrics(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, options in (("silent", {"is_silent": True}), ("quiet", {"has_telemetry": False})):
        (tmp_path / name).mkdir()
        writer = MetricsWriter(tmp_path / name, 0, 2, **options)
        writer.write_step(1, {"loss": 2.5}, 8)
        writer.log("a message")
        writer.finish({"steps": 1})

    assert capsys.readouterr().err == "a message\n"
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*")] == ["quiet/result.json"]


def test_a_folder_is_held_by_one_run(tmp_path: Path) -> None:
    with (
        hold_folder(tmp_path, "training one"),
        pytest.raises(LockedError, match="training one"),
        hold_folder(tmp_path, "training two"),
    ):
        raise AssertionError("both hold it")


@pytest.mark.parametrize("name", ["metrics.jsonl", "result.json"])
def test_a_pipe_in_place_of_metrics_is_refused_and_waited_for_by_nobody(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(TrainingError, match=f"its {name} is no file"), hold_folder(tmp_path, "training one"):
        raise AssertionError("it begins")


def test_the_metrics_of_a_run_are_not_replaced_by_those_of_another(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    for _ in range(2):  # a resume of the run itself
        with hold_folder(folder, "training base"):
            MetricsWriter(folder, 0, 2).write_step(1, {"loss": 2.5}, 8)
    with (
        pytest.raises(TrainingError, match=r"--out .*out: it has the metrics of training base; .*Name another folder"),
        hold_folder(folder, "training tiny-2f97"),
    ):
        raise AssertionError("it begins")
    with hold_folder(folder, "training base"):
        MetricsWriter(folder, 1, 2).finish({"run": "base"})
    (folder / ".lock").unlink()  # as in a copy of what a shell lists
    with pytest.raises(TrainingError, match="of training base"), hold_folder(folder, "training tiny-2f97"):
        raise AssertionError("it begins")
    (folder / "result.json").write_text("[]")
    with hold_folder(folder, "training tiny-2f97"):
        assert (folder / ".lock").read_text() == "training tiny-2f97", "whose they are is not known"
