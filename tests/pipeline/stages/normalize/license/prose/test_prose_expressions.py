"""Expressions of many alternatives: searched one by one, they match what all of them together match."""

import random

from pipeline.stages.normalize.license.prose.prose_expressions import Alternatives, compile_prose


def test_alternatives_alone_match_what_all_of_them_match() -> None:
    patterns = [
        r"\bmay (?:\w+ ){0,2}not\b",
        r"\bnot (?:may|only)",
        r"(?:\b|^)o (?:x|only)\b",
        r"only\b",
        r"[0-9] (?:x|not)",
    ]
    alternatives, whole = Alternatives(patterns), compile_prose("|".join(f"(?:{each})" for each in patterns))
    drawn = random.Random(7)
    for _ in range(3_000):
        text = " ".join(
            drawn.choices(("may", "not", "only", "o", "x", "1", "2020", "license"), k=drawn.randrange(1, 9))
        )
        found, expected = alternatives.search(text), whole.search(text)
        assert (found and found.span()) == (expected and expected.span()), text
