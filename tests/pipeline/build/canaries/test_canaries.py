"""All canaries are caught with the Params of every recipe, within a bound on their cost."""

import time

import pytest

from pipeline.build.canaries.canaries import send
from pipeline.build.recipes import RECIPES, TINY


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_every_canary_is_caught_with_the_params_of_every_recipe(recipe) -> None:
    caught = send(recipe.params).caught

    assert len(caught) >= 90
    assert [name for name, seen in caught.items() if not seen] == []


def test_all_canaries_take_less_than_two_seconds_of_processor() -> None:
    before = time.process_time()
    send(TINY.params)

    assert time.process_time() - before < 2.0
