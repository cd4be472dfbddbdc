"""A form represents its Params: the same values go in and come out, and a value out of bounds is named."""

from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import Field

from assets.forms import filled, form, overridden, overrides_form, params_from
from pipeline.build.recipes import RECIPES, recipe_document
from pipeline.core.errors import ParamsError
from pipeline.core.params import Params, fingerprint
from pipeline.core.settings.fields import leaf_fields
from pipeline.stages.stages import STAGES
from tests.benchmarks.assets.field_walk import unreached_of_recipes, unreached_of_trainings
from trainer.config.training_config import TrainingConfig


class Mode(StrEnum):
    SLOW = "slow-and-sure"
    FAST = "fast"


class InnerParams(Params):
    """An inner model."""

    names: tuple[str, ...] = ("a", "b")
    mode: Mode = Mode.SLOW
    maybe: int | None = None
    choice: Literal["one", "two"] = "two"


class AbsentParams(Params):
    """A table that a recipe may lack."""

    first: int = 1
    second: int = 2


class OuterParams(Params):
    """An outer model."""

    inner: InnerParams = Field(default_factory=InnerParams)
    fraction: float = Field(0.5, ge=0, le=1)
    """A share, 0-1."""
    absent: AbsentParams | None = None


@pytest.mark.parametrize(
    "params",
    [OuterParams(), OuterParams(inner=InnerParams(names=(), mode=Mode.FAST, maybe=0, choice="one"), fraction=1.0)],
)
def test_params_survive_the_form(params: OuterParams) -> None:
    assert params_from(filled(params), OuterParams) == params


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
@pytest.mark.parametrize("stage", STAGES.names)
def test_every_stage_of_every_recipe_survives_the_form(recipe, stage: str) -> None:
    params = recipe.params.of_stage(stage)

    assert fingerprint(params_from(filled(params), type(params))) == fingerprint(params)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
@pytest.mark.parametrize("stage", STAGES.names)
def test_a_form_of_overrides_that_sets_nothing_leaves_every_recipe_as_it_is(recipe, stage: str) -> None:
    params = recipe.params.of_stage(stage)

    assert fingerprint(overridden(overrides_form(type(params))(), params)) == fingerprint(params)


def test_an_override_changes_its_field_alone_and_one_out_of_bounds_is_named_by_its_place() -> None:
    recipe = OuterParams(inner=InnerParams(names=("c",), maybe=3), fraction=0.25)
    config = overrides_form(OuterParams)
    inner = config.model_fields["inner"].annotation
    assert inner is not None

    assert overridden(config(inner=inner(mode=Mode.FAST.value)), recipe) == recipe.model_copy(
        update={"inner": recipe.inner.model_copy(update={"mode": Mode.FAST})}
    )
    assert overridden(config(fraction=0.0), recipe).fraction == 0
    table = config.model_fields["absent"].annotation
    assert table is not None
    assert overridden(config(absent=table()), recipe) == recipe
    assert overridden(config(absent=table(first=7)), recipe).absent == AbsentParams(first=7)
    present = recipe.model_copy(update={"absent": AbsentParams(second=8)})
    assert overridden(config(absent=table(first=7)), present).absent == AbsentParams(first=7, second=8)
    with pytest.raises(
        ParamsError, match=r"fraction is 1.5; expected a number, at least 0, at most 1 \(A share, 0-1\)"
    ):
        overridden(config(fraction=1.5), recipe)


def test_the_form_describes_each_field_with_its_bounds() -> None:
    description = form(OuterParams).model_fields["fraction"].description

    assert description is not None
    assert "A share, 0-1." in description
    assert "At least 0, at most 1." in description


def test_a_value_out_of_bounds_is_named_with_what_was_found() -> None:
    config = form(OuterParams)(fraction=1.5)

    with pytest.raises(
        ParamsError, match=r"fraction is 1.5; expected a number, at least 0, at most 1 \(A share, 0-1\)"
    ):
        params_from(config, OuterParams)


@pytest.mark.parametrize("unreached", [unreached_of_recipes, unreached_of_trainings])
def test_every_field_is_reached_by_file_option_and_launchpad(
    unreached: Callable[[Path], list[str]], tmp_path: Path
) -> None:
    assert unreached(tmp_path) == []


MODELS = pytest.mark.parametrize("model", [recipe_document(), TrainingConfig], ids=["build", "training"])


@MODELS
def test_each_leaf_says_what_it_means(model: type[Params]) -> None:
    assert [name for name, info in leaf_fields(model) if not info.description] == []


@MODELS
def test_each_number_has_two_bounds(model: type[Params]) -> None:
    numbers = list(_numbers(model.model_json_schema(), ""))

    assert len(numbers) > 40
    ends = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))
    assert [place for place, number in numbers if not all(number.keys() & set(names) for names in ends)] == []


def _numbers(schema: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Iterate over the schemas of numbers, those in lists and tables too, each with its place."""
    inner = schema.items() if isinstance(schema, dict) else enumerate(schema) if isinstance(schema, list) else ()
    if isinstance(schema, dict) and schema.get("type") in ("integer", "number"):
        yield place, schema
    for name, each in inner:
        yield from _numbers(each, f"{place}/{name}")


def test_a_field_that_is_left_empty_is_refused_in_a_sentence_and_an_override_is_as_the_recipe_says() -> None:
    with pytest.raises(
        ParamsError, match="launchpad form of outer: fraction is null; expected a number, at least 0, at most 1"
    ):
        params_from(form(OuterParams)(fraction=None), OuterParams)
    assert overridden(overrides_form(OuterParams)(fraction=None), OuterParams()) == OuterParams()
