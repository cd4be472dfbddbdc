"""Recipes as files: bases by name and by path, and the shipped ones, which a user copies."""

import os
import re
import tomllib
from pathlib import Path

import pytest

from pipeline.build.recipes import RECIPE_KIND, RECIPES, recipe_document, recipe_of
from pipeline.core.errors import ParamsError
from pipeline.core.registry import Registry
from pipeline.core.settings.fields import schema_of
from pipeline.core.settings.recipe_files import RecipeKind, name_of, names_file
from pipeline.pins.held_out import HeldOut
from tests.support.paths import ROOT
from trainer.config.training_config import TRAINING_KIND, TRAINING_RECIPES, TrainingConfig, training_recipe


def test_a_file_begins_with_its_bases_by_name_and_by_path(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "small.toml").write_text('base = "tiny"\n[tokenize]\nrow_length = 64\n')
    (tmp_path / "mine.toml").write_text('base = "below/small.toml"\nheld_out = []\n')
    found = recipe_of(str(tmp_path / "mine.toml"))

    tiny = RECIPES["tiny"]
    assert found.name == "mine"
    assert found.pins == tiny.pins
    assert found.params.tokenize == tiny.params.tokenize.model_copy(update={"row_length": 64})
    assert found.params.held_out == HeldOut()
    assert found.params.verify == tiny.params.verify


def test_a_base_may_be_a_recipe_that_a_program_has_registered(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('base = "made"\n[tokenize]\nrow_length = 64\n')
    made = recipe_of("tiny").model_copy(update={"name": "made", "sources": ("odds",)})

    with RECIPES.registered(made):
        assert recipe_of(str(tmp_path / "mine.toml")).sources == ("odds",)
    with pytest.raises(ParamsError, match="base: it is 'made'; expected one of tiny, quick"):
        recipe_of(str(tmp_path / "mine.toml"))


@pytest.mark.parametrize(
    ("kind", "registry"),
    [(RECIPE_KIND, RECIPES), (TRAINING_KIND, TRAINING_RECIPES)],
    ids=lambda each: getattr(each, "name", ""),
)
def test_a_copy_of_a_shipped_recipe_is_that_recipe(kind: RecipeKind, registry: Registry, tmp_path: Path) -> None:
    shipped = {path.stem for path in kind.folder.iterdir()}
    assert shipped == set(registry.names)
    for name in sorted(shipped):
        text = (kind.folder / f"{name}.toml").read_text().replace('"../', f'"{kind.folder}/../')
        (tmp_path / f"{name}.toml").write_text(text)
        copy = str(tmp_path / f"{name}.toml")
        assert (recipe_of(copy) if kind is RECIPE_KIND else training_recipe(copy)) == (
            registry[name] if kind is RECIPE_KIND else training_recipe(name)
        )


def test_the_printed_schemas_take_every_shipped_recipe_and_those_of_the_tutorial() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    schemas = {
        RECIPE_KIND: schema_of(recipe_document(), "recipe"),
        TRAINING_KIND: schema_of(TrainingConfig, "training"),
    }
    readers = {kind: jsonschema.Draft202012Validator(schema) for kind, schema in schemas.items()}
    page = (ROOT / "docs" / "tutorial.md").read_text()
    shown = dict(re.findall(r"^```toml\n# (\S+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    files = [(kind, path.name, path.read_text()) for kind in readers for path in sorted(kind.folder.iterdir())]
    files += [(RECIPE_KIND, name, shown[name]) for name in ("recipe.toml", "shares.toml")]
    files += [(TRAINING_KIND, "training.toml", shown["training.toml"])]

    for kind, name, text in files:
        assert [error.message for error in readers[kind].iter_errors(tomllib.loads(text))] == [], name
    for wrong in ("held_out = [3]", '[held_out]\nsource = ["tools"]', 'tokenize = ["tools"]'):
        assert not readers[RECIPE_KIND].is_valid(tomllib.loads(wrong)), wrong


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[mixture_changes]]\nat_step = 3", "mixture_changes.0.weights: it is missing.* Set `weights` in that item"),
        ("[[mixture_changes]]\nweights = {a = 1}", "mixture_changes.0.at_step: it is missing.* Set `at_step` in that"),
        ("[[mixture_changes]]\nat_step = 3\nweights = {}", "weights: it is {}; expected a table, length at least 1"),
        ('[[mixture_changes]]\nat_step = 3\nweights = {"" = 1}', "expected a name of at least one character"),
        ('[epoch_caps]\n"" = 1', "expected a name of at least one character"),
        ('frozen = [""]', "frozen.0: it is ''; expected a text, length at least 1"),
        ('[model]\npattern = ""', "model.pattern: the pattern is empty"),
        ('[model]\npattern = "AXB"', "model.pattern: unknown letters B, X"),
        ('base = ""', "base: it is ''"),
    ],
)
def test_the_schema_of_trainings_refuses_what_the_command_does(text: str, said: str, tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    reader = jsonschema.Draft202012Validator(schema_of(TrainingConfig, "training"))
    text = text if text.startswith("base") else f'base = "tiny"\n{text}'
    (tmp_path / "mine.toml").write_text(text)

    assert not reader.is_valid(tomllib.loads(text))
    with pytest.raises(ParamsError, match=said):
        training_recipe(str(tmp_path / "mine.toml"))


def test_the_fields_that_tell_a_kind_of_recipe_are_fields_of_the_other_alone() -> None:
    of_corpus, of_training = (set(model.model_fields) for model in (recipe_document(), TrainingConfig))

    assert set(RECIPE_KIND.foreign) <= of_training - of_corpus
    assert set(TRAINING_KIND.foreign) <= of_corpus - of_training


def test_a_word_is_a_file_by_its_end_or_a_slash() -> None:
    assert [names_file(each) for each in ("tiny", "tiny.toml", "./tiny", "a/b.toml")] == [False, True, True, True]
    assert [name_of(each) for each in ("tiny", "a/b.toml", "./c")] == ["tiny", "b", "c"]


@pytest.mark.parametrize("name", ["pipe.toml", "circle.toml", "device.toml"])
def test_what_is_no_file_is_refused_and_not_waited_for(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "circle.toml").symlink_to("circle.toml")
    (tmp_path / "device.toml").symlink_to("/dev/zero")
    found = {"pipe.toml": "there is no such file", "circle.toml": "it is a link to circle.toml, which leads to no file"}
    with pytest.raises(ParamsError, match=f"{name}: {found.get(name, 'it is a link to /dev/zero, which')}"):
        recipe_of(str(tmp_path / name))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r'base = "a\u0000.toml"', "there is no such file"),
        (r'pins = "a\u0000.toml"', "pins: it is 'a"),
        ('bass = "tiny"', r"mine.toml: bass: there is no such field; expected one of base, .*Did you mean base\?"),
        ('[normalize]\nbase = "tiny"', "normalize.base: there is no such field; expected one of filters, "),
        ("base = 3", "base: it is 3; expected one of tiny"),
        ("pins = 3", "pins: it is 3; expected a path, or none"),
        (
            'base = "tiny"\n[normalize.filters]\nmin_num_bytes = 5_000\nmax_num_bytes = 400',
            "mine.toml: normalize.filters.min_num_bytes: 5,000 is above max_num_bytes 400: no text is kept; expected fields",
        ),
        (
            'base = "tiny"\n[collect]\nmin_shard_bytes = 60_001',
            "mine.toml: collect.min_shard_bytes: 60,001 is above max_shard_bytes 60,000: no shard has both sizes; expected fields",
        ),
    ],
)
def test_a_base_and_a_path_that_can_be_none_are_refused(text: str, found: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(ParamsError, match=found):
        recipe_of(str(tmp_path / "mine.toml"))


def test_shipped_recipes_are_toml_with_words_why() -> None:
    for path in [*RECIPE_KIND.folder.iterdir(), *TRAINING_KIND.folder.iterdir()]:
        assert path.read_text().startswith("# ")
        assert tomllib.loads(path.read_text())
