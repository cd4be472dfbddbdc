"""Event file of scalars for TensorBoard, written without it: a list of records, each a small protocol buffer.

record = length (8 bytes) | masked CRC-32C of the length | event | masked CRC-32C of the event        (TFRecord)
event  = 1: wall time (double), 2: step (varint), 3: file version (string) or 5: summary of scalars
"""

import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_POLYNOMIAL = 0x82F63B78
_MASK = 0xA282EAD8


class EventFile:
    """One event file, named by the step that it begins after, so that a resumed run replaces the steps that it repeats."""

    def __init__(self, folder: Path, first_step: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.glob("events.out.tfevents.*"):
            if int(path.name.rpartition(".")[2]) >= first_step:
                path.unlink()
        self._file = (folder / f"events.out.tfevents.{first_step:010d}").open("wb")
        self._write(_double(1, time.time()) + _bytes(3, b"brain.Event:2"))
        if first_step:
            # TensorBoard drops what was recorded at and after this step: it was run again.
            self._write(_double(1, time.time()) + _integer(2, first_step + 1) + _bytes(7, _integer(1, 1)))

    def add(self, step: int, values: Mapping[str, Any]) -> None:
        """Add the numbers of one step."""
        scalars = [
            _bytes(1, _bytes(1, name.encode()) + _float(2, float(value)))
            for name, value in values.items()
            if isinstance(value, int | float)
        ]
        self._write(_double(1, time.time()) + _integer(2, step) + _bytes(5, b"".join(scalars)))

    def close(self) -> None:
        """Finish the file."""
        self._file.close()

    def _write(self, event: bytes) -> None:
        length = struct.pack("<Q", len(event))
        self._file.write(length + _checksum(length) + event + _checksum(event))
        self._file.flush()


def crc32c(content: bytes) -> int:
    """Return the CRC-32C (Castagnoli), as RFC 3720 defines it."""
    remainder = 0xFFFFFFFF
    for byte in content:
        remainder = (remainder >> 8) ^ _TABLE[(remainder ^ byte) & 0xFF]
    return remainder ^ 0xFFFFFFFF


def _checksum(content: bytes) -> bytes:
    value = crc32c(content)
    return struct.pack("<I", (((value >> 15) | (value << 17)) + _MASK) & 0xFFFFFFFF)


def _table_entry(byte: int) -> int:
    for _ in range(8):
        byte = (byte >> 1) ^ (_POLYNOMIAL if byte & 1 else 0)
    return byte


_TABLE = [_table_entry(byte) for byte in range(256)]


def _varint(value: int) -> bytes:
    content = bytearray()
    while value > 0x7F:
        content.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*content, value])


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _double(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", value)


def _float(number: int, value: float) -> bytes:
    return _varint(number << 3 | 5) + struct.pack("<f", value)


def _bytes(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content
