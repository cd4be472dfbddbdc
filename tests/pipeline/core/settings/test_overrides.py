"""Layers of values: later ones have precedence field by field, and what cannot be used is named by its layer, field and bounds."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field

from pipeline.core.errors import ParamsError
from pipeline.core.params import Params
from pipeline.core.settings.overrides import (
    Overrides,
    changed_fields,
    combine,
    layered,
    refuse_conflicts,
    setting,
    settings_of,
    values_of,
)
from pipeline.stages.tokenize.params import TokenizeParams


class Speed(StrEnum):
    SLOW = "slow"
    FAST = "fast"


class Part(Params):
    """A part."""

    num_bytes: int = Field(default=5, ge=1, le=9)
    """Largest text in bytes."""
    speed: Speed = Speed.SLOW
    names: tuple[str, ...] = ("a",)


class Whole(Params):
    """A whole."""

    part: Part = Part()
    maybe: Part | None = None
    several: tuple[Part, ...] = ()
    place: Path = Path("x")
    share: float = 0.5
    rates: Mapping[str, Annotated[float, Field(gt=0, le=9)]] = {}
    """Times an hour."""
    is_on: bool = False
    name: str = "a"


def whole(*layers: Overrides) -> Whole:
    return combine(Whole, layers, "a whole")


def test_a_later_layer_has_precedence_field_by_field() -> None:
    found = whole(
        Overrides("low", {"part": {"num_bytes": 3, "speed": "fast"}}), Overrides("high", {"part": {"num_bytes": 4}})
    )

    assert found == Whole(part=Part(num_bytes=4, speed=Speed.FAST))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("part.num_bytes=7", Whole(part=Part(num_bytes=7))),
        ("part.speed=fast", Whole(part=Part(speed=Speed.FAST))),
        ('part.speed = "fast"', Whole(part=Part(speed=Speed.FAST))),
        ('part.names=["b", "2020-01-01"]', Whole(part=Part(names=("b", "2020-01-01")))),
        ("part.names=[]", Whole(part=Part(names=()))),
        ("maybe={}", Whole(maybe=Part())),
        ("maybe.num_bytes=2", Whole(maybe=Part(num_bytes=2))),
        ("share=1", Whole(share=1.0)),
        ("is_on=true", Whole(is_on=True)),
        ("place=/a/2020-01-01", Whole(place=Path("/a/2020-01-01"))),
    ],
)
def test_a_setting_is_toml_or_else_a_text(text: str, expected: Whole) -> None:
    assert whole(setting(text)) == expected


def test_the_word_none_sets_what_may_be_absent_to_none_and_nothing_else() -> None:
    assert whole(setting("maybe={}"), setting("maybe=none")).maybe is None
    assert whole(setting("place=none")).place.name == "none"


def test_an_empty_table_empties_one_of_free_keys_and_leaves_fields_as_they_are() -> None:
    low = Overrides("low", {"rates": {"a": 2}, "part": {"num_bytes": 3}})

    assert whole(low, setting("rates={}"), setting("part={}")) == Whole(part=Part(num_bytes=3))
    assert whole(low, setting("rates={}"), setting("rates.b=3")).rates == {"b": 3}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("part.num_byte=7", "--set: part.num_byte: there is no such field; expected one of num_bytes, speed, names."),
        ("part.num_byte=7", "Did you mean part.num_bytes?"),
        ("num_bytes=7", "Did you mean part.num_bytes or maybe.num_bytes?"),
        ("part.num_bytes.x=7", "--set: part.num_bytes: it is {'x': 7}; expected a whole number, at least 1, at most 9"),
        ("part.num_bytes=0", "it is 0; expected a whole number, at least 1, at most 9 (Largest text in bytes)."),
        ("part.num_bytes=true", "it is true; expected a whole number"),
        ("part.num_bytes='7'", "it is '7'; expected a whole number"),
        ("part.speed=7", "it is 7; expected one of slow, fast."),
        ("part.names=b", "it is 'b'; expected a list."),
        ("several=[{num_byte = 3}]", "--set: several.0.num_byte: there is no such field; expected one of num_bytes,"),
        ("several=[{num_byte = 3}]", "Did you mean several.0.num_bytes?"),
        ("several=[{}, {num_bytes = 99}]", "several.1.num_bytes: it is 99; expected a whole number, at least 1"),
        (
            "several=[{num_bytes = 2020-01-01}]",
            "several.0.num_bytes: it is datetime.date(2020, 1, 1); expected a whole",
        ),
        ("part.names=[3]", '--set: part.names.0: it is 3; expected a text. Write it in quotes: `"3"`.'),
        ("name=2026", "--set: name: it is 2026; expected a text. Write it in quotes: `--set 'name=\"2026\"'`."),
        ("rates={a=0}", "--set: rates.a: it is 0; expected a number, more than 0, at most 9 (Times an hour)."),
        ("rates=3", "--set: rates: it is 3; expected a table (Times an hour)."),
        ("several=[3]", "--set: several.0: it is 3; expected a table."),
        ("part=3", "--set: part: it is 3; expected a table."),
        ("share=nan", "it is nan; expected a number."),
        ("is_on=1", "it is 1; expected true or false."),
        ("is_on=none", "it is 'none'; expected true or false."),
    ],
)
def test_what_cannot_be_used_is_named_with_its_bounds(text: str, sentence: str) -> None:
    with pytest.raises(ParamsError) as refusal:
        whole(Overrides("low", {"part": {"num_bytes": 3}}), setting(text))

    assert sentence in str(refusal.value)


def test_a_wrong_value_is_of_the_layer_that_set_it_last() -> None:
    with pytest.raises(ParamsError, match=r"low: part.num_bytes: it is 99"):
        whole(Overrides("low", {"part": {"num_bytes": 99}}), setting("part.speed=fast"))


@pytest.mark.parametrize(
    "text",
    ["part", "=3", "part..num_bytes=3", "", 'rates."a=2', 'rates."a"b=2', 'rates."a"\n.c=2', f"{'a.' * 5000}a=1"],
)
def test_what_sets_no_field_is_refused(text: str) -> None:
    with pytest.raises(ParamsError, match="it sets no field; expected FIELD=VALUE"):
        setting(text)


@pytest.mark.parametrize(
    ("first", "second", "is_refused"),
    [
        ("part.num_bytes=3", "part.num_bytes=4", True),
        ("part.num_bytes=3", "part.num_bytes=3", False),
        ("maybe=none", "maybe.num_bytes=3", True),
        ("maybe.num_bytes=3", "maybe=none", True),
        ("maybe=none", "maybe={}", True),
        ("maybe={}", "maybe.num_bytes=3", False),
    ],
)
def test_two_settings_of_one_command_may_not_contradict(first: str, second: str, is_refused: bool) -> None:
    layers = [setting(first), setting(second, "--other")]
    if not is_refused:
        refuse_conflicts(layers)
        return
    with pytest.raises(ParamsError, match=r"--set and --other: they set .*; expected one value"):
        refuse_conflicts(layers)


@pytest.mark.parametrize(
    ("lower", "upper", "kept"),
    [
        ("part.num_bytes=3", "share = 1", ["part.num_bytes=3"]),
        ("part.num_bytes = 3", "part.num_bytes=3", []),
        ('maybe="none"', "maybe.num_bytes=3", []),
        ("maybe.num_bytes=3", "maybe=none", []),
        ("maybe={}", "maybe.num_bytes=3", ["maybe={}"]),
        ("rates={a=1, b=2}", "rates.a=3", ["rates.b=2"]),
        ("rates={a=1, 'b.c'=2}", "rates.a=3", ['rates."b.c"=2']),
    ],
)
def test_of_one_field_an_upper_setting_replaces_a_lower_one(lower: str, upper: str, kept: list[str]) -> None:
    assert layered([lower], [upper]) == [*kept, upper]


@pytest.mark.parametrize(
    "text",
    [
        'rates."a.b"=2',
        "rates . 'a.b' = 2",
        'rates={"a.b"=2}',
        r'"rates"."a\u002eb"=2',
    ],
)
def test_a_part_of_a_name_that_holds_a_dot_is_quoted(text: str) -> None:
    assert setting(text).values == {"rates": {"a.b": 2}}
    assert setting('rates."a=\\"b"="x=y"').values == {"rates": {'a="b': "x=y"}}


def test_values_come_back_as_layers_and_as_settings() -> None:
    params = whole(setting("maybe.num_bytes=2"), setting("part.speed=fast"), setting("place=/a"))

    assert whole(Overrides("all", values_of(params))) == params
    assert values_of(params, only_set=True) == {
        "maybe": {"num_bytes": 2},
        "part": {"speed": "fast"},
        "place": "/a",
    }
    assert whole(*map(setting, settings_of(values_of(params, only_set=True)))) == params
    rates = {"part": {"num_bytes": 4}, "rates": {"*/MPL-2.0": 2.0, "a=b": 1.0, "plain": 3.0, "\U0001f600": 4.0}}
    assert settings_of(rates)[:3] == ["part.num_bytes=4", 'rates."*/MPL-2.0"=2.0', 'rates."a=b"=1.0']
    assert whole(*map(setting, settings_of(rates))) == whole(Overrides("a file", rates))
    assert changed_fields(values_of(Whole()), values_of(params)).keys() == {
        "maybe.names",
        "maybe.num_bytes",
        "maybe.speed",
        "part.speed",
        "place",
    }


def test_a_relative_path_is_relative_to_the_folder_of_its_layer(tmp_path: Path) -> None:
    assert whole(Overrides("a file", {"place": "../b"}, tmp_path / "a")).place == tmp_path / "b"
    for given, found in [("../b", f"{tmp_path}/b"), ("./b", f"{tmp_path}/a/b"), ("b", "b")]:
        layer = Overrides("a file", {"vocabulary": given}, tmp_path / "a")
        assert combine(TokenizeParams, [layer], "a recipe").vocabulary == found
