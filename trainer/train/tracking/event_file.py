"""EventFile: the records of a training for TensorBoard, written by tensorboardX's own messages."""

import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol


class Records(Protocol):
    """Open records of one session, of an event file or of another tracker."""

    def add(self, metrics: Mapping[str, Any]) -> None:
        """Add the metrics of one step, `step` among them."""

    def close(self) -> None:
        """Finish the records."""


class EventFile:
    """TensorBoard's event file of one session: length, checksum, event, checksum for each record.

    It is named by the step that it begins after, so that a resumed run replaces the steps that it repeats. Raises ImportError if
    tensorboardX is not installed. Its SummaryWriter is not used: a full disk would end its thread, and training would wait for it.
    """

    def __init__(self, folder: Path, first_step: int) -> None:
        from tensorboardX.proto.event_pb2 import Event, SessionLog

        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.glob("events.out.tfevents.*"):
            if int(path.name.rpartition(".")[2]) >= first_step:
                path.unlink()
        self._file = (folder / f"events.out.tfevents.{first_step:010d}").open("wb")
        self._write(Event(wall_time=time.time(), file_version="brain.Event:2"))
        if first_step:  # TensorBoard drops what was recorded at and after this step: it was run again
            start = SessionLog(status=SessionLog.START)
            self._write(Event(wall_time=time.time(), step=first_step + 1, session_log=start))

    def add(self, metrics: Mapping[str, Any]) -> None:
        """Add the numbers of one step, which is one of them."""
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=name, simple_value=value) for name, value in numbers_of(metrics).items()]
        self._write(Event(wall_time=time.time(), step=metrics["step"], summary=Summary(value=values)))

    def close(self) -> None:
        """Finish the file."""
        self._file.close()

    def _write(self, event: Any) -> None:
        from tensorboardX.record_writer import masked_crc32c

        content = event.SerializeToString()
        for part in (struct.pack("<Q", len(content)), content):
            self._file.write(part + struct.pack("<I", masked_crc32c(part)))
        self._file.flush()


def numbers_of(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return the metrics of a step that are numbers, without the step."""
    numbers = {name: float(value) for name, value in metrics.items() if isinstance(value, int | float)}
    return {name: value for name, value in numbers.items() if name != "step"}
