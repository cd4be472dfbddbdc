"""A withheld path names one file, says nothing of its path, and leads back to it."""

import pytest

from pipeline.contracts.withheld_paths import collected_path, is_withheld, withheld_path

SECRET = "ghp_x/in.cpp"
CHANGE = f"{'0a' * 20}:{SECRET}"


@pytest.mark.parametrize("path", [SECRET, CHANGE, "caf\udce9.c"])
def test_a_withheld_path_leads_back_to_the_collected_one(path: str) -> None:
    called = withheld_path(path)

    assert is_withheld(called)
    assert not is_withheld(path)
    assert SECRET not in called
    assert collected_path(called, ["a.c", CHANGE, SECRET, "caf\udce9.c"]) == path
    assert collected_path(called, ["a.c"]) == called


def test_a_change_keeps_its_commit() -> None:
    commit, _, file = withheld_path(CHANGE).partition(":")
    assert (commit, file) == ("0a" * 20, withheld_path(SECRET))


def test_another_path_stays() -> None:
    assert collected_path("a.c", ["b.c"]) == "a.c"
