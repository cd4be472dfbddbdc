"""Token shapes: whatever the gate's own rules take for a token, by its alphabet, case and length, has a shape here."""

import os
import random

import pytest

from pipeline.stages.normalize.params import ScrubParams
from pipeline.stages.normalize.scrub.finding import Replacement, with_replacements
from pipeline.stages.normalize.scrub.scrub import Scrubber
from pipeline.stages.normalize.scrub.vendor_tokens import find_tokens
from pipeline.stages.normalize.text_gates.gitleaks import find_known_secrets
from tests.support.labeled.drawn_values import DrawnRule, drawn_rules

SHAPES = [rule for rule in drawn_rules() if not rule.vendor]
PLACES = ("// ¤", 'use("¤");', 'run("tool --with ¤ -v");', 'throw Error("bad ¤");', '#define V "¤"')
NUM_OF_EACH = 1_000 if "SLUICE_DRAW_ANEW" in os.environ else 40
MAX_LEFT = NUM_OF_EACH // 200 + 1
"""Values of a rule, more in `make campaign`; and how many of them may be taken for words."""
ASKED_BY = {"facebook-access-token": "facebook", "airtable-personnal-access-token": "airtable"}
"""Words of a text without which the gate does not search for a shape."""


def _lines(rule: DrawnRule) -> list[str]:
    generator = random.Random(rule.id)
    return [PLACES[number % len(PLACES)].replace("¤", rule.draw(generator)) for number in range(NUM_OF_EACH)]


def _left(lines: list[str], word: str) -> list[str]:
    """Return the lines in which the gate still sees a secret when the tokens are gone, and then all that is found."""
    text = "\n".join(lines)
    found = {(each.start, each.end) for each in find_tokens(text)}
    without = with_replacements(text, [Replacement(start, end, "<redacted-secret-1>") for start, end in sorted(found)])
    left = [lines[secret.line - 2] for secret in find_known_secrets(f"// {word}\n{without}")]
    scrubbed = Scrubber(ScrubParams()).scrub("a.cpp", "\n".join([f"// {word}", *left])).text
    return [left[secret.line - 2] for secret in find_known_secrets(scrubbed)]


@pytest.mark.parametrize("rule", SHAPES, ids=lambda rule: rule.id)
def test_what_a_rule_of_the_gate_takes_for_a_token_is_one(rule: DrawnRule) -> None:
    word, lines = ASKED_BY.get(rule.id, "see"), _lines(rule)
    seen = {secret.line for secret in find_known_secrets(f"// {word}\n" + "\n".join(lines))}
    assert len(seen) >= NUM_OF_EACH * 0.4
    left = _left(lines, word)
    assert len(left) <= MAX_LEFT, left[:5]


def test_there_are_rules_for_many_vendors() -> None:
    assert len({rule.id for rule in SHAPES}) >= 150
