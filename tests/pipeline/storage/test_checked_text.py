"""A one-line file of a store has a checksum over its place and its value, which whoever reads it compares."""

from pathlib import Path

import pytest

from pipeline.core.errors import DamagedError
from pipeline.storage.checked_text import checked_line, read_value, text_of, write_value


def read(root: Path, place: str) -> str | None:
    return read_value(root, place, "a file", "Make it again.")


@pytest.mark.parametrize("value", ["", "-", "a b c", "0" * 64, "ü"])
def test_what_is_written_is_read_and_what_is_missing_is_none(tmp_path: Path, value: str) -> None:
    write_value(tmp_path, "a/b", value)

    assert read(tmp_path, "a/b") == value
    assert read(tmp_path, "a/c") is None
    assert text_of(tmp_path / "a/c") is None


def test_every_flipped_bit_every_cut_and_every_byte_more_is_found(tmp_path: Path) -> None:
    write_value(tmp_path, "a", "value")
    whole = (tmp_path / "a").read_bytes()
    flipped = [
        whole[:index] + bytes([whole[index] ^ 1 << bit]) + whole[index + 1 :]
        for index in range(len(whole))
        for bit in range(8)
    ]
    for content in [*flipped, *(whole[:size] for size in range(len(whole))), whole + b"\n", b" " + whole]:
        (tmp_path / "a").write_bytes(content)
        with pytest.raises(DamagedError, match="a file"):
            read(tmp_path, "a")


def test_a_file_at_the_place_of_another_and_a_folder_are_found(tmp_path: Path) -> None:
    (tmp_path / "b").write_text(checked_line("a", "value"))
    (tmp_path / "c").mkdir()
    for place, found in (("b", "it holds 'value "), ("c", "Is a directory; expected a file of one line")):
        with pytest.raises(DamagedError, match=f"a file: {found}"):
            read(tmp_path, place)
