"""The text of a change is put together and found apart again, and its path is that of git."""

import pytest

from pipeline.core.change_text import Hunk, change_path, changed_file, compose_change, hunk_starts, hunks_of

COMMIT = "0123456789" * 4
HUNKS = [Hunk(b"a\n", b"a\n\xc3\xa4\n"), Hunk(b"", b"b\n")]


def test_the_marks_of_a_change_are_found_by_their_bytes() -> None:
    content = compose_change("Add \N{LATIN SMALL LETTER A WITH DIAERESIS}", "a.c", HUNKS)
    starts = hunk_starts(content.decode())

    assert [content[start:].split(b"\n")[0] for start in starts] == [b"//@@ before", b"//@@ after"] * 2
    assert content[starts[1] :].startswith(b"//@@ after\na\n\xc3\xa4\n//@@ before\n//@@ after\nb\n")


def test_the_hunks_are_all_below_the_header() -> None:
    one, other = (compose_change(subject, path, HUNKS).decode() for subject, path in (("x", "a.c"), ("", "b.c")))

    assert hunks_of(one) == hunks_of(other) == one[one.index("//@@ before") :]


@pytest.mark.parametrize("path", ["a.c", "a:b.c", f"{COMMIT}:a.c", "x\ny.c"])
def test_a_change_is_of_its_file(path: str) -> None:
    assert changed_file(change_path(COMMIT, path)) == path
    assert changed_file(change_path(COMMIT + COMMIT[:24], path)) == path


@pytest.mark.parametrize(
    "path", ["a.c", f"{COMMIT[1:]}:a.c", f"{COMMIT}a.c", f"x/{COMMIT}:a.c", f"{COMMIT.upper()}x:a.c"]
)
def test_a_file_is_its_own(path: str) -> None:
    assert changed_file(path) == path
