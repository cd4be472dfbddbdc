"""Declared corpora: an entry that cannot be used is refused in one sentence, with what was found and expected."""

from pathlib import Path

import pytest

from pipeline.build.recipes import QUICK, RECIPES, TINY, corpora_file, corpus_recipe, expected_params
from pipeline.core.errors import ParamsError, PinError
from pipeline.pins.corpora import load_corpora
from pipeline.pins.held_out import HeldOut
from pipeline.stages.normalize.params import DropBands


def test_the_list_of_the_project_begins_with_the_corpus_of_the_nightly_job() -> None:
    first, *others = load_corpora(corpora_file({}), RECIPES.names)

    assert (first.name, first.recipe, first.nightly) == ("quick", "quick", "0 3 * * *")
    assert "tiny" in {each.name for each in others}


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ('name = "a"\nrecipe = "tyni"', r"corpora.toml: a: recipe is 'tyni'; expected one of tiny, quick"),
        ('name = "A b"\nrecipe = "tiny"', "name is 'A b'"),
        ('name = "a"', "`recipe` is missing"),
        ('name = "a"\nrecipe = "tiny"\nset = 3', "set is 3"),
        ('name = "a"\nrecipe = "tiny"\ntraining = "x.toml"', "training is 'x.toml'; expected a table"),
        ('name = "a"\nrecipe = "tiny"\ntraining.recipee = "x"', "`recipee` is not a known field; expected recipe"),
        ('name = "a"\nrecipe = "tiny"\npin = "x"', "`pin` is not a known field"),
        ('name = "a"\nrecipe = "tiny"\nnightly = "at three"', "nightly is 'at three'"),
        (
            'name = "a"\nrecipe = "tiny"\npins = "a\\u0000"',
            "expected a path of at most 4096 characters, none of them a",
        ),
        ('name = "a"\nrecipe = "tiny"\nmax_age_hours = true', "max_age_hours is True"),
        ('name = "a"\nrecipe = "tiny"\nmax_age_hours = 0.01', "max_age_hours is 0.01; expected .* 0.02"),
        ('name = "a"\nrecipe = "tiny"\n[[corpus]]\nname = "a"\nrecipe = "quick"', "2 entries have this name"),
    ],
)
def test_an_entry_that_cannot_be_used_is_named_with_what_was_found(entry: str, found: str, tmp_path: Path) -> None:
    (tmp_path / "corpora.toml").write_text(f"[[corpus]]\n{entry}\n")

    with pytest.raises(PinError, match=found):
        load_corpora(tmp_path / "corpora.toml", RECIPES.names)


def test_files_are_relative_to_the_list_and_pins_of_its_own_have_the_wide_bands(tmp_path: Path) -> None:
    file = tmp_path / "corpora.toml"
    file.write_text('[[corpus]]\nname = "mine"\nrecipe = "quick"\npins = "mine.toml"\n')
    (corpus,) = load_corpora(file, RECIPES.names)

    assert corpus.pins == tmp_path / "mine.toml"
    expected = expected_params("mine", file)
    assert expected is not None
    assert expected.normalize.drop_bands == DropBands()
    assert expected_params("quick", file) == QUICK.params
    assert expected_params("tiny", tmp_path / "none.toml") == TINY.params
    assert expected_params("unheard", file) is None
    with pytest.raises(PinError, match=r"none\.toml: cannot be read.*Correct SLUICE_CORPORA"):
        corpora_file({"SLUICE_CORPORA": str(tmp_path / "none.toml")})  # nothing would be declared: any limit would pass


def test_a_recipe_may_be_a_file_and_fields_may_be_set(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('base = "tiny"\n[tokenize]\nrow_length = 64\n')
    file = tmp_path / "corpora.toml"
    file.write_text(
        '[[corpus]]\nname = "mine"\nrecipe = "mine.toml"\n[corpus.set]\nheld_out = []\n'
        'normalize.decontamination.items_folder = "items"\n'
        '[[corpus]]\nname = "other"\nrecipe = "tiny"\nset.tokenize.row_lenght = 64\n'
    )
    mine, other = load_corpora(file, RECIPES.names)
    expected = expected_params("mine", file)

    assert expected is not None
    assert (expected.tokenize.row_length, expected.held_out) == (64, HeldOut())
    assert expected.normalize.decontamination.items_folder == str(tmp_path / "items")
    assert corpus_recipe(mine).pins == TINY.pins
    with pytest.raises(ParamsError, match=r"corpora.toml: other: set: tokenize.row_lenght: there is no such field"):
        corpus_recipe(other)
