"""Missing objects of a corpus are named, with those that exist."""

import shutil
from pathlib import Path

import pytest

from pipeline.core.errors import MissingError
from pipeline.lineage.queries import connect, create_drops, query
from pipeline.lineage.stored_build import stored_build
from pipeline.store.store import Store


def test_a_stage_that_was_not_built_is_named_with_its_command(tiny_store: Store) -> None:
    with pytest.raises(MissingError, match=r"corpus mine: stage enrich has no output.*--until enrich"):
        stored_build(tiny_store, "mine").stage("enrich")


def test_the_command_names_the_recipe_or_a_file_of_one(tiny_store: Store, store: Store, tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="build --recipe quick --until enrich"):
        stored_build(tiny_store, "quick").stage("enrich")
    with pytest.raises(MissingError, match="build --recipe FILE --corpus mine --until enrich"):
        stored_build(store, "mine").stage("enrich")
    copied = Store(shutil.copytree(tiny_store.root, tmp_path / "copied"))
    copied.move_ref("quick", "collect", None, tiny_store.ref("tiny", "collect") or "", "sources of a pins file")
    with pytest.raises(MissingError, match="build --recipe FILE --corpus quick --until enrich"):
        stored_build(copied, "quick").stage("enrich")


def test_an_unknown_source_is_named_with_the_known_ones(tiny_store: Store) -> None:
    known = stored_build(tiny_store, "tiny").stage("enrich").manifest.inputs
    with pytest.raises(
        MissingError, match=r"source nowhere: corpus tiny has no such source; expected one of \w+, "
    ) as raised:
        stored_build(tiny_store, "tiny").part("enrich", "nowhere")
    names = {label.removeprefix("part/") for label in known if label.startswith("part/")}
    assert all(name in str(raised.value) for name in names)


def test_drops_are_those_of_the_given_stages_alone(tiny_store: Store) -> None:
    stage = stored_build(tiny_store, "tiny").stage("normalize")
    database = connect()
    create_drops(database, tiny_store, {"normalize": stage})
    found = {row["stage"] for row in query(database, "select distinct stage from drops")}
    assert found == {"normalize", "duplicates"}
