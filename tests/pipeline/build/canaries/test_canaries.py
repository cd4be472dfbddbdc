"""All canaries are caught with the Params of every recipe, within a bound on their cost."""

import pytest

from pipeline.build.canaries import canaries, file_canaries
from pipeline.build.canaries.canaries import SentCanaries, _names, send
from pipeline.build.canaries.file_canaries import CONTROLS, planted
from pipeline.build.canaries.offenses import CONTROL_OFFENSES, all_offenses
from pipeline.build.recipes import RECIPES, TINY
from tests.support.counted_calls import count_calls

MAX_CALLS = 1_500_000
"""A fifth more than they made when the figure `canaries` held its two seconds of processor."""


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_every_canary_is_caught_with_the_params_of_every_recipe(recipe) -> None:
    caught = send(recipe.params).caught

    assert len(caught) >= 90
    assert [name for name, seen in caught.items() if not seen] == []


FILE_CONTROLS = {name for name in CONTROLS if "/" in name}
ARCHIVES = {name for name in planted(TINY.params) if "/" not in name}


@pytest.mark.parametrize(
    ("place", "other", "value", "names"),
    [
        ((file_canaries, "_is_caught"), lambda canary, outcomes: True, False, FILE_CONTROLS),
        ((canaries, "send_archives"), lambda *_: dict.fromkeys(ARCHIVES, True), False, CONTROLS - FILE_CONTROLS),
        ((canaries, "send_archives"), lambda *_: {}, None, ARCHIVES),
    ],
    ids=["files", "archives", "no archive"],
)
def test_what_says_that_all_is_caught_or_sends_less_is_seen(place, other, value, names, monkeypatch) -> None:
    monkeypatch.setattr(*place, other)
    monkeypatch.setattr(canaries, "send_offenses", lambda root, params: SentCanaries({}, {}))
    outcomes = send(TINY.params).caught

    assert {name for name, seen in outcomes.items() if seen is value} - _names(
        (*all_offenses().values(), *CONTROL_OFFENSES)
    ) == names


def test_all_canaries_make_no_more_calls_than_two_seconds_hold() -> None:
    send(TINY.params)  # what is computed once a process is

    assert count_calls(lambda: send(TINY.params)) < MAX_CALLS
