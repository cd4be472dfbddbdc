"""Tokens of known shapes: found whatever the line around them, in parts too, and nothing that only begins like one."""

import random
import string

import pytest

from pipeline.stages.normalize.params import ScrubParams
from pipeline.stages.normalize.scrub.random_text import is_filler, is_wordy
from pipeline.stages.normalize.scrub.scrub import Scrubber
from pipeline.stages.normalize.scrub.vendor_tokens import find_tokens
from tests.support.counted_calls import count_calls
from tests.support.labeled.labeled_secrets import LabeledLine, divided_tokens, tokens

LETTERS = string.ascii_letters + string.digits
SEEDS = range(3)
MIN_RECALL = 0.99


def remaining(lines: list[LabeledLine]) -> list[str]:
    """Return the kinds of lines of which a secret is left."""
    left = []
    scrubber = Scrubber(ScrubParams())
    for line in lines:
        scrubbed = scrubber.scrub("a.cpp", line.text)
        assert scrubbed.is_clean
        assert scrubbed.text.count("\n") == line.text.count("\n")
        assert scrubbed.text.count('"') % 2 == line.text.count('"') % 2
        left += [line.kind] if any(secret in scrubbed.text for secret in line.secrets) else []
    return left


@pytest.mark.parametrize("seed", SEEDS)
def test_tokens_of_every_vendor_go_whatever_the_line(seed: int) -> None:
    lines = list(tokens(seed))
    assert len(lines) >= 300
    assert len(remaining(lines)) <= (1 - MIN_RECALL) * len(lines), remaining(lines)


@pytest.mark.parametrize("seed", SEEDS)
def test_divided_tokens_of_every_vendor_go(seed: int) -> None:
    lines = list(divided_tokens(seed))
    assert len(lines) >= 300
    assert len(remaining(lines)) <= (1 - MIN_RECALL) * len(lines), remaining(lines)


BODIES = {
    "sk_live_": (LETTERS, 24),
    "glpat-": (LETTERS + "_-", 20),
    "AKIA": (string.ascii_uppercase + "234567", 16),
    "hf_": (string.ascii_letters, 34),
    "whsec_": (LETTERS + "+/", 32),
    "ghp_": (LETTERS, 36),
}
MAX_MISSED = 4
"""Of 20,000: keys of AWS, which have one case and few digits, are missed most."""


@pytest.mark.parametrize("head", BODIES)
def test_random_characters_after_the_head_of_a_vendor_are_no_words(head: str) -> None:
    generator = random.Random(11)
    alphabet, length = BODIES[head]
    bodies = ["".join(generator.choices(alphabet, k=length)) for _ in range(20_000)]
    missed = [
        body for body in bodies if (is_wordy(body) or is_filler(body)) and not list(find_tokens(f'a = "{head}{body}";'))
    ]
    assert len(missed) <= MAX_MISSED, missed


NEIGHBORS = ("令牌{}", "{}令牌", "ключ{}", "für{}", "トークン{}です", "{}é", "1{}", "v2_{}")


@pytest.mark.parametrize("around", NEIGHBORS)
def test_letters_of_other_scripts_and_a_number_hide_no_token(around: str) -> None:
    lines = [each for each in tokens(5) if each.text.count('"') == 2 and " in a call" in each.kind]
    left = [each.kind for each in lines if not list(find_tokens(f"// {around.format(each.text.split(chr(34))[1])}"))]
    assert len(lines) >= 20
    assert not left


def test_every_place_of_a_value_goes_beside_letters_of_another_script_too() -> None:
    value = "Xq7vLm2" + "Rt9"
    text = f'auto password = "{value}"; // 口令{value}です, not x{value} nor {value}5'
    after = Scrubber(ScrubParams()).scrub("a.cpp", text).text
    assert after.endswith(f"// 口令<redacted-secret-1>です, not x{value} nor {value}5")


LOOK_ALIKES = {
    "an example of a manual": 'auto id = "AKIAIOSFODNN7EXAMPLE";',
    "a filler": f'"gh{"p_"}{"x" * 36}" "sk_live_{"0" * 24}" "glpat-{"X" * 20}" "AKIA{"X" * 16}"',
    "a placeholder": '"ghp_your_token_here" "glpat-your-private-token-goes-here" "sk-ant-your-api-key-here-please"',
    "a prefix alone": 'if (starts_with(token, "ghp_") || starts_with(token, "github_pat_")) return kGitHub;',
    "words": '"hf_transformers_model_loader_configuration" "npm_config_registry_authentication_token_name"',
    "an identifier": "Highs_metis_Allocate2WayNodePartitionMemory(ghs_table_of_contents_for_each_node_here);",
    "a name of many words": "nfp_net_nfdk_vec_avx2_xmit_simple_close_block(PBF_REG_YCMD_QS_NUM_LINES_VOQ0_RT_OFFSET);",
    "a part of a longer word": f'"QUFBQUFB{"AK" + "IA"}Q2JXK7PL3MWNB5TZ99AAAAQUFBQUFBQUFB"',
    "a vendor's name": "// SG.Mail, hooks.slack.com/services, AIza, sk-learn, whsec, xoxb and dapi are names",
}


@pytest.mark.parametrize("text", LOOK_ALIKES.values(), ids=LOOK_ALIKES)
def test_what_only_begins_like_a_token_stays(text: str) -> None:
    assert list(find_tokens(text)) == []


@pytest.mark.parametrize("following", ["path: src/a.c", "Path", "TODO: remove", "see also", "int32_t", "sha256sum(1)"])
def test_the_first_word_of_the_line_after_a_whole_token_stays(following: str) -> None:
    token = f"ghp_{''.join(random.Random(7).choices(LETTERS, k=36))}"
    scrubbed = Scrubber(ScrubParams()).scrub("a.cpp", f"// commit: key {token}\n// {following}\nint a;\n")

    assert scrubbed.text.split("\n")[1] == f"// {following}"
    assert token not in scrubbed.text


def test_the_name_of_a_token_and_the_address_of_its_service_stay() -> None:
    (line,) = [each for each in tokens(0) if each.kind.startswith("azure-storage")][:1]
    (found,) = find_tokens(line.text)
    assert line.text[: found.start].endswith("AccountKey=")


def test_places_are_in_characters() -> None:
    (line,) = [each for each in tokens(0) if each.kind.startswith("adobe")][:1]
    text = f"// äöü ✓\n{line.text}\n// ✓ {line.secrets[0]}"
    (found,) = find_tokens(text)
    assert text[found.start : found.end].endswith(line.secrets[0])


def test_a_long_run_of_one_character_is_passed_over_at_once() -> None:
    token = "AKIA" + "QWERTYUIOPASDFGH"
    text = f"{token} {'A' * 100_000} {token}"

    assert [found.value for found in find_tokens(text)] == [token, token]
    assert count_calls(lambda: list(find_tokens(text))) < 20_000
