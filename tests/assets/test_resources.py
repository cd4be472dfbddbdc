"""Resources: the store that the environment names, and errors of a user as failures without retries."""

from pathlib import Path

import dagster as dg
import pytest

from assets.resources import BuildResource, StoreResource, build_resource, refusals
from pipeline.build.recipes import ROOT
from pipeline.core.errors import ParamsError
from pipeline.pins.corpora import Corpus


def test_the_store_is_the_one_that_the_environment_names(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert StoreResource().open().root == root
    monkeypatch.delenv("SLUICE_STORE")
    assert StoreResource().open().root == ROOT / "store"
    monkeypatch.setenv("SLUICE_STORE", "")
    assert StoreResource().open().root == ROOT / "store"


def test_an_error_of_a_user_is_a_failure_without_retries_and_a_defect_stays_itself() -> None:
    with pytest.raises(dg.Failure) as caught, refusals():
        raise ParamsError("row_length", "3", "at least 16", "Correct it.")
    assert caught.value.allow_retries is False
    assert caught.value.description == "ParamsError: row_length: 3; expected at least 16. Correct it."
    with pytest.raises(ZeroDivisionError), refusals():
        _ = 1 // 0


def test_a_build_exists_only_inside_a_run() -> None:
    with pytest.raises(RuntimeError, match="only inside a run"):
        _ = BuildResource(recipe="tiny", pins="", decisions="").build


def test_a_field_that_a_launch_leaves_out_is_the_declared_one(instance: dg.DagsterInstance, root: Path) -> None:
    mine = Corpus(name="mine", recipe="quick", pins=root / "mine.toml", decisions=root / "mine-decisions.toml")

    @dg.op(required_resource_keys={"build_mine"})
    def look(context: dg.OpExecutionContext) -> list[str]:
        found = context.resources.build_mine
        return [found.recipe_name, found.pins, found.decisions, str(found.workers)]

    @dg.job(resource_defs={"build_mine": build_resource(mine)})
    def ask() -> None:
        look()

    declared = [str(mine.pins), str(mine.decisions)]
    for given, expected in [
        ({"workers": 1}, ["quick", *declared, "1"]),
        ({"recipe": "tiny"}, ["tiny", *declared, "2"]),
        ({"pins": ""}, ["quick", "", declared[1], "2"]),
        ({"set": ["tokenize.row_length=64"]}, ["quick", *declared, "2"]),
    ]:
        config = {"resources": {"build_mine": {"config": given}}}
        done = ask.execute_in_process(instance=instance, run_config=config)
        assert done.output_for_node("look") == expected
