"""Selections: which paths a pin's globs accept."""

import pytest

from pipeline.pins.selection import Selection


@pytest.mark.parametrize(
    ("glob", "path", "holds"),
    [
        ("*.cpp", "a.cpp", True),
        ("*.cpp", "d/a.cpp", False),
        ("**/*.cpp", "a.cpp", True),
        ("**/*.cpp", "d/e/a.cpp", True),
        ("d/**", "d/e/a.cpp", True),
        ("d/**", "e/d/a.cpp", False),
        ("d/**/a.cpp", "d/a.cpp", True),
        ("?.h", "ab.h", False),
        ("a+b.h", "a+b.h", True),
        ("a.h", "axh", False),
    ],
)
def test_a_star_stays_in_its_folder_and_two_do_not(glob: str, path: str, holds: bool) -> None:
    assert Selection(include=(glob,)).accepts(path) is holds
    assert Selection(exclude=(glob,)).accepts(path) is not holds
