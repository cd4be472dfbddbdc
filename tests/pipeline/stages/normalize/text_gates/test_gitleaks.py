"""gitleaks.py finds what gitleaks finds, by its own examples: true and false ones, put together when the test runs.

An example is a list of pieces, `{"any": EXPRESSION}` among them for characters that look random, or a secret in each of gitleaks'
forms of an assignment. Long words are divided, so that no whole secret is in this repository.
"""

import hashlib
import json
import random
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.contracts.withheld_paths import is_withheld
from pipeline.core.records import Document, DroppedRecord
from pipeline.core.schema import TextOrigin, text_columns
from pipeline.stages.normalize.text_gates.gitleaks import (
    IN_PATH,
    KnownSecret,
    WaivedFinding,
    entropy_of,
    find_in_rows,
    find_known_secrets,
    load_gitleaks_rules,
)
from tests.support.labeled.drawn_values import drawn
from tests.support.labeled.labeled_lookalikes import lookalikes
from tests.support.paths import ROOT

RULES, PREFIXES = (
    tomllib.loads((ROOT / "pipeline/stages/normalize/text_gates" / name).read_text())["rules"]
    for name in ("gitleaks.toml", "vendor_prefixes.toml")
)
EXAMPLES = json.loads((Path(__file__).parent / "gitleaks_examples.json").read_text())
WITHOUT_EXAMPLES = {"dropbox-long-lived-api-token", "dropbox-short-lived-api-token"}
NUM_TRUE, NUM_FALSE = 5_000, 250
"""Numbers of examples at least: fewer would mean that they are not read."""


def _texts(example: Any, seed: int) -> list[str]:
    """The text of an example, or the texts of all forms."""
    generator = random.Random(seed)
    if isinstance(example, list):
        return [_joined(example, generator)]
    name, secret = example["name"], _joined(example["secret"], generator)
    return [form.replace("{i}", name).replace("{I}", name.upper()).replace("{s}", secret) for form in EXAMPLES["forms"]]


def _joined(pieces: list[Any], generator: random.Random) -> str:
    return "".join(piece if isinstance(piece, str) else drawn(piece["any"], generator) for piece in pieces)


def gitleaks_examples(kind: str) -> list[tuple[str, str]]:
    """Each example of a kind, `true` or `false`, with its rule."""
    return [
        (rule, text)
        for rule, examples in EXAMPLES["examples"].items()
        for number, example in enumerate(examples[kind])
        for text in _texts(example, number)
    ]


def test_every_true_example_is_found_by_its_rule() -> None:
    examples = gitleaks_examples("true")
    missed = [
        f"{rule}: {index}"
        for index, (rule, text) in enumerate(examples)
        if rule not in {found.rule for found in find_known_secrets(text)}
    ]
    assert not missed, missed[:20]
    assert len(examples) >= NUM_TRUE


def test_no_false_example_is_found_by_its_rule() -> None:
    examples = gitleaks_examples("false")
    found = [
        f"{rule}: {index}"
        for index, (rule, text) in enumerate(examples)
        if rule in {secret.rule for secret in find_known_secrets(text)}
    ]
    assert not found, found[:20]
    assert len(examples) >= NUM_FALSE


def test_every_rule_has_examples_but_for_those_that_have_none_there() -> None:
    assert {rule["id"] for rule in RULES} - EXAMPLES["examples"].keys() == WITHOUT_EXAMPLES


def test_every_rule_is_asked_for_by_a_keyword_and_compiles_in_re2() -> None:
    asked = {rule.id for rules in load_gitleaks_rules().rules_of for rule in rules}
    assert asked == {rule["id"] for rule in (*RULES, *PREFIXES)}
    assert len(asked) == len(RULES) + len(PREFIXES)


def test_a_finding_names_rule_and_line_and_never_the_value() -> None:
    token = "gh" + "p_" + "0123456789abcdefghijABCDEFGHIJ012345"
    found = find_known_secrets(f'int a;\n\nauto gh = GitHub("{token}"); // gitleaks:allow\n')
    assert found == [KnownSecret("github-pat", 3)]
    assert token not in repr(found)


PREFIXED = {
    "adafruit-io-key": ("aio_", "NrQx67VvzSaM7fr3nMXrfZ1uKPH2"),
    "airtable-access-token": ("patQx67VvzSaM7fr3", ".", "9f86d081884c7d659a2feaa0c55ad015" * 2),
    "crates-io-token": ("cio", "tgp8BGZBlX192iExSQPm0SrUlBunG8zd"),
    "tencent-secret-id": ("AKID", "z8krbsJ5yKBZQpn74WFkmLPx3EXAMpLq"),
    "vercel-token": ("vcp_", "3kQz7Kd0Wc9RhLp2JvYn5sEx1bTx4mQ8"),
    "vercel-blob-token": ("vercel_blob_rw_", "x7Qm2Lk9Vb4Zt1Rw_", "8Ny3Hd6Pf0Jc3kQz7Kd0Wc9RhLp2Jv"),
    "docker-token": ("dckr_", "pat_1bTx4mQz7Kd0Wc9RhLp2JvYn5sE"),
    "google-client-secret": ("GOC", "SPX-x7Qm2Lk9Vb4Zt1Rw8Ny3Hd6Pf0Jc"),
    "telegram-bot-token": ("6123456789:", "AAHk3mQz7Kd0Wc9RhLp2JvYn5sEx1bTx4_g"),
}


@pytest.mark.parametrize(("rule", "parts"), PREFIXED.items(), ids=PREFIXED)
def test_the_token_of_a_vendor_that_gitleaks_has_not_is_found(rule: str, parts: tuple[str, ...]) -> None:
    assert find_known_secrets(f"// {''.join(parts)}\n") == [KnownSecret(rule, 1)]


@pytest.mark.parametrize(
    "name",
    [
        "nfp_NetworkFlowProcessorForwardsPacketsTo",
        "re_compiled_expression",
        "secret_SharingOfASchemeThatHasManyPartsAndAThreshold",
        "key-value sk-dashboard",
        "rnd_RoundingModeOfTheNearestEvenValue2",
        "s.maxNumberOfUtf8CodeUnits;",
        "rk_test_acceptqueue;",
        "aio_read_completion_handler_of_a_file",
        "patternOfTheFirst.deadbeef",
        "ciostreamOfAllTheMessagesThatAreWritten;",
        "AKIDNAPPED",
        "vcp_tableOfAllTheCommandsThatAreKnown;",
    ],
)
def test_a_name_of_code_that_begins_as_a_token_does_is_none(name: str) -> None:
    assert find_known_secrets(f" {name} \n") == []


def test_a_commit_in_a_text_that_names_sourcegraph_is_no_token_of_it() -> None:
    commit = "da39a3ee5e6b4b0d3255" + "bfef95601890afd80709"
    assert find_known_secrets(f"// as sourcegraph shows\n// {commit}\n") == []
    assert find_known_secrets(f'sourcegraph_token = "{commit}"\n') == [KnownSecret("sourcegraph-access-token", 1)]


@pytest.mark.parametrize("around", ['f("{}")', "x = {};", "// {}", 'L"{}" "more"', "é {} é"])
def test_a_token_is_found_in_any_surroundings(around: str) -> None:
    assert find_known_secrets(around.format("AKIA" + "QWERTYUIOPASDFGH"))


def test_what_was_redacted_is_no_secret() -> None:
    line = "curl -u admin:{} https://host.org/x"
    assert find_known_secrets(line.format("qR7" + "vLx0PzT"))
    assert not find_known_secrets(line.format("<redacted-secret-1>"))


def test_what_the_scrubber_leaves_on_purpose_is_no_secret() -> None:
    """Published samples, by their digests in a table that both read, and words of documentation in the place of a value."""
    claims = "eyJzdWIiOiIxMjM0NTY3ODkwIiwi" + "bmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ"
    sample = ".".join(("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9", claims, "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"))
    lines = [each.text for each in lookalikes(3)]
    lines += [f'auto token = "{sample}";', f'auto key = "sk_{"test_"}4eC39HqLyjWDarjtT1zdp7dc";']
    assert [line for line in lines if find_known_secrets(line)] == []
    assert find_known_secrets(f'auto token = "{sample.replace("RG9lI", "Qm9lI")}";')
    assert find_known_secrets(f'auto key = "sk_{"test_"}4eC39HqLyjWDarjtT1zdp7dd";')


def test_entropy_is_shannons() -> None:
    assert entropy_of("aaaa") == 0.0
    assert entropy_of("abab") == 1.0
    assert entropy_of("abcd") == 2.0


def test_time_is_linear_in_hostile_text() -> None:
    words = " ".join(sorted({keyword for rule in RULES for keyword in rule["keywords"]}))
    assert not find_known_secrets((words + " curl -u\n") * 200)


def test_every_column_that_quotes_a_source_is_searched() -> None:
    token = "AKIA" + "QWERTYUIOPASDFGH"
    names = ("text", "license", "license_detail", "detail")
    for name in names:
        table = pa.table({"path": ["a.cpp", "b.cpp"], name: ["\n" + token, "MIT"]})
        assert find_in_rows([table]) == [("a.cpp", KnownSecret("aws-access-token", 2))]
    quoted = {**text_columns(Document), **text_columns(DroppedRecord)}
    scrubbed = {name for name, origin in quoted.items() if origin is TextOrigin.SCRUBBED}
    assert scrubbed - set(names) == {"license_branch"}  # a part of the license


@pytest.mark.parametrize("path", ["{}.c", "lib/{}/a.c", "0123456789abcdef0123456789abcdef01234567:lib/{}/a.c"])
def test_a_secret_in_a_path_is_found_and_the_path_is_not_told(path: str) -> None:
    token = "gh" + "p_" + "0123456789abcdefghijABCDEFGHIJ012345"
    (named,) = find_in_rows([pa.table({"path": [path.format(token), "a/b.c"], "text": ["int a;\n", "int b;\n"]})])
    assert named[1] == KnownSecret("github-pat", IN_PATH)
    assert token not in named[0]
    assert is_withheld(named[0])


def test_the_commit_of_a_change_is_no_token_of_a_vendor_in_its_path() -> None:
    path = "0123456789abcdef0123456789abcdef01234567:sourcegraph/main.c"
    assert find_in_rows([pa.table({"path": [path], "text": [""]})]) == []


def test_a_waived_finding_is_of_its_line_rule_and_value_alone() -> None:
    first, second = ("gh" + "p_" + digits + "abcdefghijABCDEFGHIJ012345" for digits in ("0123456789", "9876543210"))
    text = f"// {first}\n// {second}\n"
    digest = hashlib.sha256(first.encode()).hexdigest()

    def left(*waived: WaivedFinding) -> list[int]:
        return [found.line for found in find_known_secrets(text, waived)]

    assert left() == [1, 2]
    assert left(WaivedFinding("secret", 1)) == left(WaivedFinding("github-pat", 1)) == [2]
    assert left(WaivedFinding("token", None, digest)) == [2]
    assert left(WaivedFinding("secret", 2, digest)) == left(WaivedFinding("secret", 3)) == [1, 2]
    assert left(WaivedFinding("token", 1)) == [1, 2]


def test_a_search_that_has_not_enough_memory_goes_on_and_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    mark, numbers = "-" * 5 + "BEGIN RSA PRIVATE" + " KEY" + "-" * 5, random.Random(1)
    text = "\n".join(f"{(2 * mark)[: numbers.randrange(10, 64)]} line{number} is done" for number in range(4_000))
    assert find_known_secrets(text) == []
    assert capfd.readouterr() == ("", "")
