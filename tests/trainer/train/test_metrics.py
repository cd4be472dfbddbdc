"""Metrics: one line a step, an event file that TensorBoard can read; a missing library or a full disk stops no training."""

import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.core.errors import LockedError
from trainer.train.metrics import EventFile, MetricsWriter, hold_folder


def crc_by_bits(content: bytes) -> int:
    """The definition: division of polynomials, one bit after the other."""
    remainder = 0xFFFFFFFF
    for byte in content:
        for bit in range(8):
            low = (remainder ^ (byte >> bit)) & 1
            remainder = (remainder >> 1) ^ (0x82F63B78 if low else 0)
    return remainder ^ 0xFFFFFFFF


def records(path: Path) -> Iterator[bytes]:
    content = path.read_bytes()
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        event = content[12 : 12 + length]
        for part, at in ((content[:8], 8), (event, 12 + length)):
            value = crc_by_bits(part)
            masked = (((value >> 15) | (value << 17)) + 0xA282EAD8) & 0xFFFFFFFF
            assert struct.unpack("<I", content[at : at + 4]) == (masked,)
        yield event
        content = content[16 + length :]


def test_the_checksum_is_the_published_one() -> None:
    assert crc_by_bits(b"123456789") == 0xE3069283


def test_each_step_is_one_event_with_its_scalars(tmp_path: Path) -> None:
    file = EventFile(tmp_path, 0)
    file.add({"step": 300, "loss": 2.5, "word": "left out"})
    file.close()
    head, event = records(tmp_path / "events.out.tfevents.0000000000")

    assert head[9:] == b"\x1a\x0dbrain.Event:2"
    assert event[:1] == b"\x09"
    assert event[9:12] == b"\x10\xac\x02", "field 2, step 300 as a varint"
    assert event[12:] == b"\x2a\x0d\x0a\x0b\x0a\x04loss\x15" + struct.pack("<f", 2.5)


def test_a_resumed_run_replaces_what_it_runs_again(tmp_path: Path) -> None:
    for first_step in (0, 8, 4):
        EventFile(tmp_path, first_step).close()
    *_, start = records(tmp_path / "events.out.tfevents.0000000004")

    assert sorted(path.name[-2:] for path in tmp_path.iterdir()) == ["00", "04"]
    assert start[9:] == b"\x10\x05\x3a\x02\x08\x01", "a session starts at step 5"


def test_an_event_is_on_disk_when_its_step_ends(tmp_path: Path) -> None:
    writer = MetricsWriter(tmp_path, 0, 2)
    writer.write_step(1, {"loss": 2.5, "skipped": True}, 8)

    assert json.loads((tmp_path / "metrics.jsonl").read_text())["loss"] == 2.5
    assert len(list(records(tmp_path / "tensorboard" / "events.out.tfevents.0000000000"))) == 2


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
