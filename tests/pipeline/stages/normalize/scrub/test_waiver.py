"""Waivers leave one finding in a text, and whatever else is found goes."""

import hashlib

import pytest

from pipeline.stages.normalize.params import ScrubParams
from pipeline.stages.normalize.scrub.scrub import Scrubbed, Scrubber
from pipeline.stages.normalize.scrub.waiver import WaivedValues, Waiver

TOKEN = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
OTHER = "ghp_" + "9876543210jihgfedcbaJIHGFEDCBA543210"
MAIL = "ada" + "@" + "analytical-engine.org"
DIGEST = hashlib.sha256(TOKEN.encode()).hexdigest()


def scrub(text: str, *waivers: Waiver) -> tuple[Scrubbed, set[Waiver]]:
    waived = WaivedValues(waivers)
    scrubber = Scrubber(ScrubParams())
    scrubbed = scrubber.scrub("a.cpp", text, waived)
    assert scrubber.scan("a.cpp", scrubbed.text, WaivedValues(waivers)) == 0
    again = scrubber.scrub("a.cpp", scrubbed.text, WaivedValues(waivers))
    assert again.text == scrubbed.text
    return scrubbed, waived.left(scrubbed.text)


TEXT = f'f("{TOKEN}");\ng("{OTHER}"); // {MAIL}\nh("{TOKEN}");\n'
WAIVED = {
    "a value, wherever it stands": (Waiver("secret", None, DIGEST), [TOKEN, "<redacted-secret-1>", TOKEN]),
    "by the name of a detector": (Waiver("token", None, DIGEST), [TOKEN, "<redacted-secret-1>", TOKEN]),
    "a line": (Waiver("secret", 2), ["<redacted-secret-1>", OTHER, "<redacted-secret-1>"]),
    "one place of a value": (Waiver("secret", 3), ["<redacted-secret-1>", "<redacted-secret-2>", TOKEN]),
    "a value on a line": (Waiver("secret", 1, DIGEST), [TOKEN, "<redacted-secret-1>", "<redacted-secret-2>"]),
}


@pytest.mark.parametrize("case", WAIVED)
def test_what_is_waived_stays_and_the_rest_goes(case: str) -> None:
    waiver, expected = WAIVED[case]

    scrubbed, left = scrub(TEXT, waiver)

    assert [line.split('"')[1] for line in scrubbed.text.splitlines()] == expected
    assert "<redacted-email-1>" in scrubbed.text
    assert left == {waiver}


@pytest.mark.parametrize(
    "waiver",
    [
        Waiver("secret", 4),
        Waiver("email", 1),
        Waiver("password", 1),
        Waiver("secret", None, "0" * 64),
        Waiver("secret", 2, DIGEST),
    ],
    ids=["another line", "another word", "another detector", "another value", "the value elsewhere"],
)
def test_what_is_not_waived_goes(waiver: Waiver) -> None:
    scrubbed, left = scrub(TEXT, waiver)

    assert TOKEN not in scrubbed.text
    assert OTHER not in scrubbed.text
    assert left == set()


def test_several_findings_of_a_text_are_waived_apart() -> None:
    scrubbed, left = scrub(TEXT, Waiver("secret", None, DIGEST), Waiver("email", 2))

    assert MAIL in scrubbed.text
    assert scrubbed.text.count(TOKEN) == 2
    assert scrubbed.redactions == {"secret": 1}
    assert len(left) == 2
