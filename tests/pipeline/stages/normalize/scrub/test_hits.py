"""Hits: lines are found once each, in characters, whatever letters stand before them; no finding is without its condition."""

import pytest

from pipeline.stages.normalize.scrub.detectors import DETECTORS, Detector
from pipeline.stages.normalize.scrub.hits import PossibleFinders, condition, hit_lines
from tests.support.labeled.labeled_forms import secret_forms
from tests.support.labeled.labeled_lookalikes import lookalikes
from tests.support.labeled.labeled_secrets import divided_tokens, tokens

ADDRESSES = """
    ada@host.org ada%40host.org ada (at) host (dot) org ada_AT_host_DOT_org /home/ada/x C:\\Users\\ada\\x ~ada/x 93.184.216.34
    [2606:4700::1111]:443
"""


@pytest.mark.parametrize("before", ["", "int a;\n", "// Größe 邮箱\n", "\n\n"])
@pytest.mark.parametrize("after", ["", "\n", "\nx\n"])
def test_a_line_is_found_whole_and_once(before: str, after: str) -> None:
    line = "the key and the key"
    found = list(hit_lines(before + line + after, condition("key", "lock")))
    assert [(before + line + after)[start:end] for start, end in found] == [line]


def test_every_line_with_a_match_is_found() -> None:
    text = "key é\nno\nlock\nkey"
    assert [text[start:end] for start, end in hit_lines(text, condition("key", "lock"))] == ["key é", "lock", "key"]


def test_a_condition_that_is_empty_always_holds() -> None:
    assert PossibleFinders(("key", "", "lock")).of("a lock") == {1, 2}
    assert PossibleFinders(("key", "")).of("") == {1}


def test_conditions_that_are_long_or_equal_hold_like_others() -> None:
    long = "|".join(f"lock{number}" for number in range(300))
    possible = PossibleFinders(("key", long, "key", "door", long))
    assert [possible.of(text) for text in ("a key", "lock299", "lock7 and key", "door", "lo")] == [
        {0, 2},
        {1, 4},
        {0, 1, 2, 4},
        {3},
        set(),
    ]


@pytest.mark.parametrize("detector", [each for each in DETECTORS if each.condition], ids=lambda each: each.name)
def test_what_a_detector_finds_is_where_its_condition_holds(detector: Detector) -> None:
    texts = [each.text for made in (tokens, divided_tokens, secret_forms, lookalikes) for each in made(0)]
    texts += [f"// {each}" for each in ADDRESSES.split("\n")]
    possible = PossibleFinders((detector.expression(),))
    without = [text for text in texts if not possible.of(text)]
    assert len(without) < len(texts) or detector.name in ("private-key", "tool-secret")
    assert not [text for text in without if list(detector.finder()(text))]
