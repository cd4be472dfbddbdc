"""Sound sources are the same each time, and large enough that the first of anything is not all of it."""

from pathlib import Path

import pytest

from pipeline.build.canaries.canaries import sound_build
from pipeline.build.canaries.offense import NUM_PLACES, SOURCES, places
from pipeline.build.canaries.sound_sources import (
    NUM_SOUND_DOCUMENTS,
    NUM_SOUND_FILES,
    SOUND,
    SOUND_HELD_OUT,
    write_sound_sources,
)
from pipeline.build.recipes import RECIPES
from pipeline.core.table_names import DUPLICATES, FILES, PACKED, TOKENS


def test_the_sources_are_the_same_each_time(tmp_path: Path) -> None:
    one, other = (write_sound_sources(tmp_path / name) for name in ("one", "other"))

    assert [pin.name for pin in one] == [SOUND, SOUND_HELD_OUT]
    assert [pin.identity() for pin in one] == [pin.identity() for pin in other]


def test_one_file_of_each_has_a_copy(tmp_path: Path) -> None:
    write_sound_sources(tmp_path / "one")
    for source, name in {SOUND: "first", SOUND_HELD_OUT: "fourth"}.items():
        files = {path.name: path.read_text() for path in (tmp_path / "one" / source).iterdir()}

        assert files[f"{name}_copy.cpp"] == files[f"{name}.cpp"]
        assert len(set(files.values())) == len(files) - 1


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_every_source_has_several_documents_and_rows(recipe, tmp_path: Path) -> None:
    build = sound_build(tmp_path / "sources", recipe.params)
    build.run("tokenize")
    files, tokens = build.parts("collect"), build.parts("tokenize")
    num_documents = [tokens[source].table(TOKENS).num_rows for source in SOURCES]

    assert sum(files[source].table(FILES).num_rows for source in SOURCES) == NUM_SOUND_FILES
    assert sum(num_documents) == NUM_SOUND_DOCUMENTS
    assert min(num_documents) >= NUM_PLACES
    for source, table in zip(SOURCES, PACKED.values(), strict=True):
        assert len(places(tokens[source].table(table).num_rows)) == NUM_PLACES
    copies = build.parts("normalize")["duplicates"].rows(DUPLICATES)
    assert [row["path"] for row in copies] == ["first_copy.cpp", "fourth_copy.cpp"]
