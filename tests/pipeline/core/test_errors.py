"""Errors: one sentence of what was found, and never more than can be read."""

import pickle

import pytest

from pipeline.core.errors import MAX_MESSAGE, ArchiveError, SluiceError

LONG = "x" * 100_000


def test_a_message_of_ordinary_length_is_whole() -> None:
    error = SluiceError("pin a", "it is odd" + "." * 3, "a sound one", "y" * 1_500)
    assert str(error).startswith("pin a: it is odd")
    assert str(error).endswith("y" * 1_500)


@pytest.mark.parametrize(
    "parts", [(LONG, "b", "c", "d"), ("a", LONG, "c", "d"), ("a", "b", LONG, LONG), (LONG, LONG, LONG, LONG)]
)
def test_a_message_of_endless_input_keeps_both_ends_of_it(parts: tuple[str, str, str, str]) -> None:
    text = str(SluiceError(*parts))
    assert len(text) <= MAX_MESSAGE
    assert " ... " in text


def test_an_error_of_a_member_names_it_after_its_archive_and_keeps_it_between_processes() -> None:
    made = ArchiveError("heron", "is a device", "a file", member="'a/x.c'")
    for error in (made, pickle.loads(pickle.dumps(made))):
        assert (error.member, error.subject) == ("'a/x.c'", "heron: 'a/x.c'")
        assert str(error) == "heron: 'a/x.c': is a device; expected a file."
    assert ArchiveError("heron: x", "is broken").member == ""
