"""Findings begin inside of no escape; replacements change the stretches that they name and nothing else."""

import pytest

from pipeline.stages.normalize.scrub.finding import Replacement, past_escape, with_replacements

ENDS = {
    r"\n|ame": r"\n",
    r"\|name": r"\n",
    r"\\|name": r"\\",
    r"\\\|name": r"\\\n",
    r"\x|1bbob": r"\x1bb",
    r"\x1|5keep": r"\x15",
    r"\0|33bob": r"\033",
    r"\u00|41bob": r"\u0041",
    r"\U0001|F600bob": r"\U0001F600",
    "a|b": "a",
}


@pytest.mark.parametrize(("text", "before"), ENDS.items())
def test_an_escape_ends_where_its_digits_do(text: str, before: str) -> None:
    whole = text.replace("|", "")
    assert whole[: past_escape(whole, text.index("|"))] == before


def test_replacements_change_the_stretches_that_they_name() -> None:
    text = "one two three"

    assert (
        with_replacements(text, [Replacement(0, 3, "1"), Replacement(4, 7, ""), Replacement(12, 13, "E!")])
        == "1  threE!"
    )
    assert with_replacements(text, []) == text
