"""Every leaf field of every Params is set through a file, an option and the launchpad, to another value than it has."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.build.recipes import recipe_document
from pipeline.core.params import Params
from pipeline.core.settings.fields import leaf_fields
from tests.assets.field_walk import unreached_of_recipes, unreached_of_trainings
from trainer.config.training_config import TrainingConfig


@pytest.mark.parametrize("unreached", [unreached_of_recipes, unreached_of_trainings])
def test_every_field_is_reached_by_file_option_and_launchpad(
    unreached: Callable[[Path], list[str]], tmp_path: Path
) -> None:
    assert unreached(tmp_path) == []


@pytest.mark.parametrize("model", [recipe_document(), TrainingConfig], ids=["build", "training"])
def test_each_leaf_says_what_it_means(model: type[Params]) -> None:
    assert [name for name, info in leaf_fields(model) if not info.description and not name.startswith("builds.")] == []
