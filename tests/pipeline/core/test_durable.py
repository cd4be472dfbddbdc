"""Durable writes: a file is replaced whole or not at all, a torn line is cut, and a lock names its holder."""

import os
from pathlib import Path

import pytest

from pipeline.core.durable import acquire, cut_torn_line, replace
from pipeline.core.errors import LockedError


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new" / "file"
    replace(path, b"old")

    def refuse(source: object, target: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="the disk is full"):
        replace(path, b"new")

    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("content", "left"), [(b"one\ntwo\nth", b"one\ntwo\n"), (b"one\n", b"one\n"), (b"torn", b""), (b"", b"")]
)
def test_a_torn_line_is_cut_and_whole_ones_stay(tmp_path: Path, content: bytes, left: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    with path.open("a+b") as file:
        cut_torn_line(file)

    assert path.read_bytes() == left


def test_a_lock_that_is_held_is_reported_once_and_refused_with_its_holder(tmp_path: Path) -> None:
    path, notices = tmp_path / "lock", list[str]()
    path.write_text("run one\n")
    with path.open() as first, path.open() as second:
        acquire(first.fileno(), path, "corpus tiny", 0.0, notices.append)
        with pytest.raises(LockedError, match="corpus tiny: it is being written by run one"):
            acquire(second.fileno(), path, "corpus tiny", 0.25, notices.append)

    assert notices == ["run one"]
