"""Missing objects of a corpus are named, with those that exist."""

import shutil
from pathlib import Path

import pytest

from pipeline.core.errors import MissingError
from pipeline.lineage.queries import connect, create_drops, query, stage_object, stage_part
from pipeline.store.store import Store


def test_a_stage_that_was_not_built_is_named_with_its_command(tiny_store: Store) -> None:
    with pytest.raises(MissingError, match=r"corpus mine: stage enrich has no output.*--until enrich"):
        stage_object(tiny_store, "mine", "enrich")


def test_the_command_names_the_recipe_or_a_pins_file(tiny_store: Store, store: Store, tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="build --recipe quick --until enrich"):
        stage_object(tiny_store, "quick", "enrich")
    with pytest.raises(MissingError, match="build --pins FILE --corpus mine --until enrich"):
        stage_object(store, "mine", "enrich")
    copied = Store(shutil.copytree(tiny_store.root, tmp_path / "copied"))
    copied.move_ref("quick", "collect", None, tiny_store.ref("tiny", "collect") or "", "sources of a pins file")
    with pytest.raises(MissingError, match="build --pins FILE --corpus quick --until enrich"):
        stage_object(copied, "quick", "enrich")


def test_an_unknown_source_is_named_with_the_known_ones(tiny_store: Store) -> None:
    known = stage_object(tiny_store, "tiny", "enrich").manifest.inputs
    with pytest.raises(
        MissingError, match=r"source nowhere: corpus tiny has no such source; expected one of \w+, "
    ) as raised:
        stage_part(tiny_store, "tiny", "enrich", "nowhere")
    names = {label.removeprefix("part/") for label in known if label.startswith("part/")}
    assert all(name in str(raised.value) for name in names)


def test_drops_are_those_of_the_given_stages_alone(tiny_store: Store) -> None:
    stage = stage_object(tiny_store, "tiny", "normalize")
    database = connect()
    create_drops(database, tiny_store, {"normalize": stage})
    found = {row["stage"] for row in query(database, "select distinct stage from drops")}
    assert found == {"normalize", "duplicates"}
