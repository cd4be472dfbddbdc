"""Durable writes: a file is replaced whole or not at all, and a torn line is cut."""

import os
from pathlib import Path

import pytest

from pipeline.core.durable import cut_torn_line, replace


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
