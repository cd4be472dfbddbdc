"""Named values: the digest of something beside a vendor's name is no secret, to scrubber and gate; its credential is one."""

import random
import re
from collections.abc import Iterator
from functools import cache

import pytest

from pipeline.stages.normalize.params import ScrubParams
from pipeline.stages.normalize.scrub.scrub import Scrubber
from pipeline.stages.normalize.text_gates.gitleaks import find_known_secrets, load_gitleaks_rules
from pipeline.stages.normalize.text_gates.named_values import NameWords
from tests.support.labeled.drawn_values import ASSIGNED, HONEST, DrawnRule, drawn_rules

NAMED = [rule for rule in drawn_rules() if rule.vendor]
PLAIN = [rule for rule in NAMED if not re.search("(?i)key|token|login", rule.vendor)]
"""Rules whose vendor is no credential by its name alone, as `SNYK_TOKEN` is."""
NUM_DRAWS = 12
MAX_LEFT, MAX_LEFT_OF_ALL = 6, 0.002
"""Values of 132 of a rule, and the share of all, that may be taken for words: sixteen letters with no digit among them."""


def _digests(generator: random.Random) -> Iterator[str]:
    for length in (32, 40, 64):
        yield "".join(generator.choices("0123456789abcdef", k=length))
    yield "-".join("".join(generator.choices("0123456789abcdef", k=length)) for length in (8, 4, 4, 4, 12))
    yield "".join(generator.choices("0123456789", k=18))


def _lines(templates: str) -> list[str]:
    return [line.strip() for line in templates.strip().splitlines()]


def _assigned(rule: DrawnRule) -> list[str]:
    generator = random.Random(rule.id)
    draws = [line for line in _lines(ASSIGNED) for _ in range(NUM_DRAWS)]
    return [line.replace("¤", rule.name(generator)).replace("§", rule.draw(generator)) for line in draws]


@cache  # two tests ask
def _left_of(rule: DrawnRule) -> tuple[str, ...]:
    return tuple(_left(_assigned(rule)))


def _left(lines: list[str]) -> list[str]:
    scrubbed = Scrubber(ScrubParams()).scrub("a.cpp", "\n".join(lines)).text
    return [lines[secret.line - 1] for secret in find_known_secrets(scrubbed)]


@pytest.mark.parametrize("template", _lines(HONEST))
def test_a_digest_beside_the_name_of_any_vendor_stays_and_blocks_nothing(template: str) -> None:
    generator = random.Random(template)
    scrubber = Scrubber(ScrubParams())
    lines = [
        template.replace("¤", rule.name(generator)).replace("§", digest)
        for rule in PLAIN
        for digest in _digests(generator)
    ]
    assert len(lines) >= 450
    assert [line for line in lines if find_known_secrets(line)] == []
    assert [line for line in lines if scrubber.scrub("a.cpp", line).text != line] == []


@pytest.mark.parametrize("rule", NAMED, ids=lambda rule: f"{rule.id} {rule.vendor}")
def test_a_credential_of_any_vendor_goes_and_the_gate_sees_it(rule: DrawnRule) -> None:
    lines = _assigned(rule)
    unseen = set(range(1, len(lines) + 1)) - {secret.line for secret in find_known_secrets("\n".join(lines))}
    assert len(unseen) <= len(lines) * 0.05, [lines[number - 1] for number in unseen][:5]
    assert len(_left_of(rule)) <= MAX_LEFT, _left_of(rule)


def test_hardly_any_credential_is_left() -> None:
    numbers = [(len(_left_of(rule)), len(_assigned(rule))) for rule in NAMED]
    assert sum(left for left, _ in numbers) <= MAX_LEFT_OF_ALL * sum(total for _, total in numbers)


NAMES = load_gitleaks_rules().names
DIGEST, MIXED = "9e107d9d372bb6826bd81d3542a419d6", "q7w2k9x4m1z8v3b6n5c0t2r7y4p1s8d3"


def _is_credential(name: str, value: str, vendor: str = "linear", before: str = "") -> bool:
    start = name.lower().index(vendor)
    return NAMES.is_credential(name, (start, start + len(vendor)), before, value)


@pytest.mark.parametrize(
    "name",
    ["LINEAR_CLIENT_SECRET", "linearApiKey", "kLinearToken", "linear client id", "linearapp_key", "test_linear_token"],
)
def test_a_word_of_credentials_makes_a_digest_a_secret(name: str) -> None:
    assert _is_credential(name, DIGEST)


@pytest.mark.parametrize(
    "name",
    [
        "bilinear_key",
        "linearity_key",
        "LINEARIZED_KEY",
        "linear",
        "linear_key_hash",
        "md5_linear_key",
        "linear_token_url",
    ],
)
def test_a_part_of_a_word_a_digest_and_an_address_are_none(name: str) -> None:
    assert not _is_credential(name, DIGEST)


def test_a_name_alone_makes_a_secret_of_what_is_no_digest_but_not_an_everyday_name() -> None:
    assert _is_credential("dropbox", MIXED, "dropbox")
    assert not _is_credential("dropbox", DIGEST, "dropbox")
    assert not _is_credential("dropbox", "release-of-the-year-2024-for-x86", "dropbox")
    assert not _is_credential("linear", MIXED)


def test_words_before_a_name_say_what_a_value_is_computed_from() -> None:
    assert not _is_credential("linear key", DIGEST, before="// md5 of the ")
    assert not _is_credential("linear_key", DIGEST, before="CHECK_SHA256(")
    assert _is_credential("linear_key", DIGEST, before="// md5 is gone; ")


def test_the_kinds_of_words_are_apart() -> None:
    kinds = [NAMES.credentials, NAMES.digests, NAMES.others]
    assert all(kind for kind in (*kinds, NAMES.owners, NAMES.tails, NAMES.everyday))
    assert len(set().union(*kinds)) == sum(map(len, kinds))
    assert isinstance(NAMES, NameWords)
