"""Stages to make anew are found by the keys of parts: none for a limit of a gate, and all that follow for a rule."""

import pytest

from pipeline.build.recipes import TINY, recipe_of
from pipeline.core.errors import ParamsError
from pipeline.core.settings.overrides import setting
from pipeline.lineage.made_anew import MadeAnew, made_anew
from pipeline.stages.stages import STAGES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("normalize.drop_bands.binary=0.5", MadeAnew((), (), ("normalize",))),
        ("tokenize.row_length=64", MadeAnew(("tokenize", "verify"), (), ())),
        (
            "normalize.duplicates.min_containment=0.9",
            MadeAnew(("normalize",), ("enrich", "tokenize", "verify"), ()),
        ),
        ("normalize.filters.min_num_bytes=50", MadeAnew(("normalize", "enrich", "tokenize", "verify"), (), ())),
        ('held_out=["odds"]', MadeAnew(("normalize", "enrich", "tokenize", "verify"), (), ())),
    ],
)
def test_a_difference_makes_anew_what_depends_on_it(text: str, expected: MadeAnew) -> None:
    assert made_anew(TINY, recipe_of("tiny", setting(text))) == expected


def test_an_equal_recipe_makes_nothing_anew() -> None:
    anew = made_anew(TINY, recipe_of("tiny"))

    assert anew == MadeAnew((), (), ())
    assert anew.sentences() == ["nothing is made anew"]


def test_what_a_compiler_is_told_is_seen_too() -> None:
    built = recipe_of("tiny", setting("builds.odds.cmake=true"))

    assert made_anew(built, recipe_of("tiny", setting("builds.odds.cmake=true"))) == MadeAnew((), (), ())
    slower = recipe_of("tiny", setting("builds.odds.cmake=true"), setting("enrich.compiler.unit_cpu_seconds=5"))
    assert made_anew(built, slower) == MadeAnew(("enrich", "tokenize", "verify"), (), ())


def test_a_recipe_by_which_nothing_comes_through_is_compared_from_the_other_side() -> None:
    closed = recipe_of("tiny", setting("collect.max_members=1"))
    assert made_anew(closed, TINY) == made_anew(TINY, closed) == MadeAnew(tuple(STAGES.names), (), ())

    other = recipe_of("tiny", setting("collect.max_members=1"), setting("tokenize.row_length=64"))
    with pytest.raises(ParamsError, match="recipes tiny and tiny: by neither do small sources come through"):
        made_anew(closed, other)
