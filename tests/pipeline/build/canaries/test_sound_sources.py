"""Sound sources fill some rows of any length, and are the same each time."""

from pathlib import Path

from pipeline.build.canaries.sound_sources import SOUND, SOUND_HELD_OUT, write_sound_sources


def test_the_sources_are_the_same_each_time_and_grow_with_the_rows(tmp_path: Path) -> None:
    one, other = (write_sound_sources(tmp_path / name, 128) for name in ("one", "other"))
    long = write_sound_sources(tmp_path / "long", 2_048)

    assert [pin.name for pin in one] == [SOUND, SOUND_HELD_OUT]
    assert [pin.identity() for pin in one] == [pin.identity() for pin in other]
    assert (tmp_path / "long" / SOUND / "first.cpp").stat().st_size > 3 * 2_048 * 3
    assert len(long) == 2


def test_one_file_has_a_copy(tmp_path: Path) -> None:
    write_sound_sources(tmp_path / "one", 128)
    files = {path.name: path.read_text() for path in (tmp_path / "one" / SOUND).iterdir()}

    assert files["copy.cpp"] == files["first.cpp"]
    assert len(set(files.values())) == len(files) - 1
