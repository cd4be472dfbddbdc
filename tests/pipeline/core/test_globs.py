"""Globs of pins: what each matches, and that none takes more than linear time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.globs import MAX_NUM_CHARACTERS, Globs


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("src/*.c", "src/a.c", True),
        ("src/*.c", "src/b/a.c", False),
        ("src/**", "src/b/a.c", True),
        ("**/a.c", "a.c", True),
        ("**/a.c", "b/c/a.c", True),
        ("a?.c", "aé.c", True),
        ("a?.c", "a\udcff.c", True),
        ("a?.c", "a/.c", False),
        ("a.c", "abc", False),
        ("a[0].c", "a[0].c", True),
        ("*", "a\nb", True),
    ],
)
def test_a_glob_matches_the_whole_path(glob: str, path: str, matches: bool) -> None:
    assert Globs([glob]).match_any(path) == matches


@given(st.lists(st.text("ab*?", min_size=1, max_size=6), min_size=1, max_size=4), st.text("ab", min_size=1, max_size=8))
def test_segments_match_as_a_plain_search_says(globs: list[str], path: str) -> None:
    globs = [glob for glob in globs if "**" not in glob]
    assert Globs(globs).match_any(path) == any(matches_plainly(glob, path) for glob in globs)


def matches_plainly(glob: str, path: str) -> bool:
    if not glob:
        return not path
    if glob[0] == "*":
        return any(matches_plainly(glob[1:], path[at:]) for at in range(len(path) + 1))
    return bool(path) and glob[0] in ("?", path[0]) and matches_plainly(glob[1:], path[1:])


def test_a_glob_of_many_stars_is_linear_in_the_path() -> None:
    assert not Globs(["*a" * 400 + "b"]).match_any("a" * 4_000)


def test_globs_have_a_bound() -> None:
    with pytest.raises(ValueError, match="10000 characters"):
        Globs(["a" * 1_000] * (MAX_NUM_CHARACTERS // 1_000 + 1))
