"""Sound sources are the same each time."""

from pathlib import Path

from pipeline.build.canaries.sound_sources import SOUND, SOUND_HELD_OUT, write_sound_sources


def test_the_sources_are_the_same_each_time(tmp_path: Path) -> None:
    one, other = (write_sound_sources(tmp_path / name) for name in ("one", "other"))

    assert [pin.name for pin in one] == [SOUND, SOUND_HELD_OUT]
    assert [pin.identity() for pin in one] == [pin.identity() for pin in other]


def test_one_file_has_a_copy(tmp_path: Path) -> None:
    write_sound_sources(tmp_path / "one")
    files = {path.name: path.read_text() for path in (tmp_path / "one" / SOUND).iterdir()}

    assert files["copy.cpp"] == files["first.cpp"]
    assert len(set(files.values())) == len(files) - 1
