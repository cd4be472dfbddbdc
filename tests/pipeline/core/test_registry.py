"""A registry keeps its order, refuses a name twice, and forgets what was registered for a while."""

from dataclasses import dataclass

import pytest

from pipeline.core.errors import ParamsError
from pipeline.core.registry import Registry


@dataclass(frozen=True)
class Entry:
    """A declaration."""

    name: str


def test_order_is_that_of_registration() -> None:
    registry = Registry("thing", Entry("z"), Entry("a"))
    registry.register(Entry("m"))

    assert registry.names == ("z", "a", "m")
    assert [entry.name for entry in registry] == ["z", "a", "m"]


def test_a_name_is_taken_once_and_an_unknown_one_is_refused_with_those_that_exist() -> None:
    registry = Registry("thing", Entry("a"), Entry("b"))

    with pytest.raises(ParamsError, match="thing a: it is registered already"):
        registry.register(Entry("a"))
    with pytest.raises(ParamsError, match="thing c: it is not registered; expected one of a, b"):
        registry["c"]


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "/a", "-a", "a b", "a\n", "a\0", "\u00e9"])
def test_what_is_no_part_of_a_path_or_of_an_option_is_no_name(name: str) -> None:
    registry = Registry("thing", Entry("a"))

    with pytest.raises(ParamsError, match=r"thing .*: it cannot be named so; expected a letter or a digit"):
        registry.register(Entry(name))
    assert registry.names == ("a",)


def test_what_is_registered_for_a_while_is_gone_afterwards_even_after_an_error() -> None:
    registry = Registry("thing", Entry("a"))

    with registry.registered(Entry("b")):
        assert "b" in registry
    with pytest.raises(ParamsError), registry.registered(Entry("b")):
        registry.register(Entry("a"))
    assert registry.names == ("a",)


def test_a_declaration_can_be_registered_before_another() -> None:
    registry = Registry("thing", Entry("a"), Entry("c"))

    with registry.registered(Entry("b"), before="c"):
        assert registry.names == ("a", "b", "c")
    assert registry.names == ("a", "c")
    with pytest.raises(ParamsError, match="thing d: it is not registered"):
        registry.register(Entry("b"), before="d")


def test_a_conflict_with_another_declaration_is_refused() -> None:
    registry = Registry(
        "entry", Entry("a"), conflict=lambda entry, other: "a letter" if entry.name[0] == other.name[0] else ""
    )

    with pytest.raises(ParamsError, match="entry ab: a letter belongs to entry a"):
        registry.register(Entry("ab"))
    registry.register(Entry("b"))
