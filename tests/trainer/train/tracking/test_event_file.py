"""The event file is one that TensorBoard can read, and a resumed run replaces what it runs again."""

import struct
from collections.abc import Iterator
from pathlib import Path

from trainer.train.tracking.event_file import EventFile


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
