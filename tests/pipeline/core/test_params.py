"""Params: one serialization of a value, whatever its order, and an identity that every field counts in."""

import hashlib

import pytest

from pipeline.core.errors import ParamsError
from pipeline.core.params import Params, canonical_json, digest, field_of, fingerprint, flat


class Bounds(Params):
    """Two fields with defaults."""

    lowest: int = 1
    highest: float = 0.5


def test_a_value_is_serialized_in_one_way_whatever_the_order_of_its_keys() -> None:
    assert canonical_json({"b": [1, 0.5], "a": "\u00e9"}) == '{"a":"\u00e9","b":[1,0.5]}'.encode()
    assert digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1}) == hashlib.sha256(b'{"a":2,"b":1}').hexdigest()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), len, {"a": {1}}])
def test_a_value_without_a_stable_identity_is_refused(value: object) -> None:
    with pytest.raises(ParamsError, match="Give the value a stable JSON form"):
        canonical_json(value)


def test_every_field_counts_in_the_fingerprint_and_a_default_is_its_value() -> None:
    assert fingerprint(Bounds()) == fingerprint(Bounds(lowest=1))
    assert len({fingerprint(each) for each in (Bounds(), Bounds(lowest=2), Bounds(highest=0.25))}) == 3


def test_nested_names_are_joined_by_dots_and_a_list_stays_a_value() -> None:
    assert flat({"a": {"b": [1, {"c": 2}], "d": {}}, "e": None}) == {"a.b": [1, {"c": 2}], "e": None}


def test_a_field_that_does_not_exist_is_refused_with_those_that_do() -> None:
    assert field_of(Bounds(), "lowest", "a gate") == 1
    with pytest.raises(ParamsError, match="a gate: Bounds has no field middle; expected one of lowest, highest"):
        field_of(Bounds(), "middle", "a gate")
