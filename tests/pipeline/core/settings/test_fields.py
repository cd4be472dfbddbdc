"""Fields by their dotted names: every leaf is listed, with what it takes, and the schema of their file is what an editor reads."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from pipeline.core.params import Params
from pipeline.core.settings.fields import bounds, described, expected, field_at, leaf_fields, schema_of


class Inner(Params):
    """An inner model."""

    size: int = Field(default=3, ge=1, le=1_000_000, multiple_of=1)
    """Bytes."""


class Item(Params):
    """An item of a list."""

    size: int
    inner: Inner


class Outer(Params):
    """An outer model."""

    needed: str = Field(pattern="^[a-z]+$", max_length=8)
    inner: Inner = Inner()
    maybe: Inner | None = None
    named: Mapping[str, Inner] = {}
    weights: Mapping[str, float] = {}
    listed: tuple[Item, ...] = ()
    share: float | None = Field(default=None, gt=0, lt=1)


def test_every_leaf_is_listed_by_its_dotted_name() -> None:
    names = ["needed", "inner.size", "maybe.size", "named.NAME.size", "weights.NAME", "listed", "share"]

    assert [name for name, _ in leaf_fields(Outer)] == names
    for name, info in leaf_fields(Outer):
        assert field_at(Outer, name.split(".")) is info
    assert field_at(Outer, ["inner", "nothing"]) is None
    assert field_at(Outer, ["needed", "nothing"]) is None


def test_a_field_says_what_it_takes() -> None:
    fields = dict(leaf_fields(Outer))

    assert expected(fields["inner.size"]) == "a whole number, at least 1, at most 1,000,000, a multiple of 1 (Bytes)"
    assert expected(fields["share"]) == "a number, or none, more than 0, less than 1"
    assert bounds(fields["needed"].metadata) == "length at most 8, one of the form `^[a-z]+$`"
    assert described(fields["inner.size"]) == "Bytes. At least 1, at most 1,000,000, a multiple of 1."


def test_the_schema_closes_every_table_requires_nothing_but_in_items_and_has_a_word_for_none() -> None:
    schema = schema_of(Outer, "outer")
    tables = [each for each in _all_tables(schema) if "properties" in each]

    assert {"base", "needed", "inner", "share"} <= schema["properties"].keys()
    assert all(each["additionalProperties"] is False for each in tables)
    assert [each["required"] for each in tables if "required" in each] == [["size", "inner"]]
    assert {"const": "none"} in schema["properties"]["share"]["anyOf"]
    assert schema["$defs"]["Inner"]["properties"]["size"]["description"] == "Bytes."


def _all_tables(value: Any) -> list[dict[str, Any]]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = [value] if isinstance(value, dict) else []
    return own + [table for each in inner for table in _all_tables(each)]
