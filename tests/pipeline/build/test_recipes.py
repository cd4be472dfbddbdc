"""Recipes load the pins of their slice, and refuse names that no source may have."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.build.recipes import pins_of, recipe_of
from pipeline.cli.main import main
from pipeline.contracts.stage import PartKind
from pipeline.core.errors import ParamsError, PinError
from pipeline.stages.stages import STAGES
from tests.support.shorten_stage import SHORTEN


def one_pin(folder: Path, name: str) -> Path:
    path = folder / "pins.toml"
    path.write_text(f'[[pin]]\nname = "{name}"\nkind = "local"\npath = "."\ndigest = "{"0" * 64}"\n')
    return path


@pytest.mark.parametrize("name", ["canaries", "duplicates", "loader", "smoke", "snapshot"])
def test_a_name_of_a_part_that_belongs_to_no_source_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(PinError) as refusal:
        pins_of(recipe_of("tiny", pins_file=one_pin(tmp_path, name)))

    assert f"pins.toml: {name}" in str(refusal.value)
    assert f"name is '{name}'" in str(refusal.value)
    assert "rename" in str(refusal.value)


def test_the_names_of_a_registered_stages_parts_are_refused_too(tmp_path: Path) -> None:
    recipe = recipe_of("tiny", pins_file=one_pin(tmp_path, "summary"))
    assert [pin.name for pin in pins_of(recipe)] == ["summary"]

    summing = replace(
        SHORTEN, parts=(*SHORTEN.parts, PartKind("shorten/summary", {"sum": "builtins:sum"}, only="summary"))
    )
    with STAGES.registered(summing), pytest.raises(PinError, match="name is 'summary'"):
        pins_of(recipe)


@pytest.mark.parametrize(
    ("pin", "own", "expected"),
    [("", "", False), ("history = true\n", "", True), ("", "[collect]\nwith_changes=true\n", True)],
)
def test_changes_are_asked_for_where_a_source_has_a_history_or_the_recipe_itself_asks(
    tmp_path: Path, pin: str, own: str, expected: bool
) -> None:
    (tmp_path / "pins.toml").write_text(f'[[pin]]\nname = "a"\n{pin}')
    (tmp_path / "mine.toml").write_text(f'base = "tiny"\npins = "pins.toml"\n{own}')

    assert recipe_of(str(tmp_path / "mine.toml")).params.collect.with_changes is expected


def test_a_rule_that_is_none_is_refused_in_words_where_its_pins_are_replaced(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text('base = "tiny"\npins = "pins.toml"\nheld_out = 5\n')
    with pytest.raises(ParamsError, match="held_out: it is 5; expected a table"):
        recipe_of(str(recipe), pins_file=one_pin(tmp_path, "mine"))


def test_a_pin_is_not_proposed_under_a_reserved_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["pin", "loader", str(tmp_path), "--store", str(tmp_path / "store")])

    assert code == 1
    assert "name is 'loader'" in capsys.readouterr().err
