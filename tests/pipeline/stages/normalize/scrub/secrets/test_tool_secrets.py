"""Differences from detect-secrets, each listed: what its plugins report and ours do not, and the other way round."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from detect_secrets.core.scan import scan_file
from detect_secrets.settings import default_settings, get_settings

from pipeline.lexing.languages import CPP, language_of
from pipeline.stages.normalize.params import ScrubParams
from pipeline.stages.normalize.scrub.detectors import find_divided_secrets
from pipeline.stages.normalize.scrub.scrub import Scrubber
from pipeline.stages.normalize.scrub.secrets.tool_secrets import find_tool_secrets
from pipeline.stages.normalize.text_gates.gitleaks import find_known_secrets
from tests.pipeline.stages.normalize.text_gates.test_gitleaks import gitleaks_examples
from tests.support.labeled.labeled_forms import secret_forms
from tests.support.labeled.labeled_lookalikes import lookalikes
from tests.support.labeled.labeled_passwords import passwords
from tests.support.labeled.labeled_secrets import LabeledLine, tokens
from tests.support.planted_secrets import lines_by_plugin

LEFT = {
    ("ArtifactoryDetector", 1): "two letters and twelve more: every word of an alphabet that begins with AP",
    ("HexHighEntropyString", 0): "a vector of a cipher or a key of a table: nothing says that it is a secret",
    ("HexHighEntropyString", 1): "a digest, by its name",
    ("PrivateKeyDetector", 0): "a marker without a key",
    ("PrivateKeyDetector", 1): "a marker without a key",
}
"""Lines of the tool's plugins, by plugin and place, that stay, and why."""

PLANTED = {
    f"{plugin}-{index}": (plugin, index, line)
    for plugin, lines in lines_by_plugin().items()
    for index, line in enumerate(lines)
}


def scrubbed(text: str) -> str:
    scrubber = Scrubber(ScrubParams())
    return scrubber.scrub("a.cpp", text).text


@pytest.mark.parametrize(("plugin", "index", "line"), PLANTED.values(), ids=PLANTED)
def test_what_a_plugin_of_the_tool_finds_goes_or_is_listed(plugin: str, index: int, line: str) -> None:
    text = f"int a;\n{line}\nint b;\n"
    after = scrubbed(text)
    assert (after == text) == ((plugin, index) in LEFT)
    if after != text:
        assert after.count("\n") == text.count("\n")
        assert after.count('"') == text.count('"')
        pieces = re.findall(r"[A-Za-z0-9]{20,}", line) or re.findall(r"[\"']([^\"']+)[\"']", line) or [line]
        assert not [piece for piece in pieces if piece in after]


def test_the_tool_passes_over_tokens_that_we_find(tmp_path: Path) -> None:
    """Its filters of lines drop what stands after a call, and it has no plugin for most vendors."""
    lines = [each.text for each in tokens(0)]
    path = tmp_path / "a.cpp"
    path.write_text("\n".join(lines), encoding="utf-8")
    with default_settings():
        num_found = len({secret.line_number for secret in scan_file(str(path))})
    assert num_found < 0.9 * len(lines)
    assert sum(scrubbed(line) != line for line in lines) >= 0.99 * len(lines)


SEEDS = range(3)
MIN_RECALL = 0.97


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("made", [secret_forms, passwords])
def test_secrets_go_in_every_form_that_holds_them(made: Callable[[int], Iterable[LabeledLine]], seed: int) -> None:
    lines = list(made(seed))
    assert len(lines) >= 250
    left = [line.kind for line in lines if any(secret in scrubbed(line.text) for secret in line.secrets)]
    assert len(left) <= (1 - MIN_RECALL) * len(lines), left


@pytest.mark.parametrize("made", [tokens, secret_forms, passwords])
def test_no_redaction_crosses_the_end_of_a_comment_or_a_literal(made: Callable[[int], Iterable[LabeledLine]]) -> None:
    broken = [
        line.kind
        for line in made(0)
        if SIGNS.findall(without(line.secrets, line.text)) != SIGNS.findall(scrubbed(line.text))
    ]
    assert broken == []


SIGNS = re.compile(r"/\*|\*/|[\"'`]")


def without(secrets: Iterable[str], text: str) -> str:
    for secret in secrets:
        text = text.replace(secret, "")
    return text


@pytest.mark.parametrize("seed", SEEDS)
def test_lookalikes_stay(seed: int) -> None:
    lines = list(lookalikes(seed))
    assert len(lines) >= 700
    changed = [line.kind for line in lines if scrubbed(line.text) != line.text]
    assert changed == []


LEFT_OF_THE_GATE = {
    "aws-amazon-bedrock-api-key-long-lived": "the word EXAMPLE, repeated",
    "curl-auth-header": "a user without a password",
    "curl-auth-user": "braces, as of a template",
}
"""Rules of the gate that find something in what is left of one true example, and what that is."""


def test_what_the_gate_knows_to_be_a_secret_goes_or_is_listed() -> None:
    examples = gitleaks_examples("true")
    scrubber = Scrubber(ScrubParams())
    left = [
        rule
        for rule, text in examples
        if rule in {found.rule for found in find_known_secrets(scrubber.scrub("a.cpp", text).text)}
    ]
    assert sorted(left) == sorted(LEFT_OF_THE_GATE)


def test_plugins_of_the_tool_find_what_no_other_detector_names() -> None:
    line = lines_by_plugin()["IbmCloudIamDetector"][1]
    (found,) = find_tool_secrets(line)
    assert line[found.start : found.end] == found.value == line.split()[-1]


def test_a_password_in_two_literals_goes_whole() -> None:
    text = 'std::string password = "Tr0ub4"\n    "dor-9";'
    assert [text[each.start : each.end] for each in find_divided_secrets(text)] == ["Tr0ub4", "dor-9"]
    assert scrubbed(text) == 'std::string password = "<redacted-secret-1>"\n    "<redacted-secret-1>";'


def test_what_was_found_once_goes_wherever_it_stands() -> None:
    value = "kq7Zw" + "93xLpa"
    text = f'login(name, password = "{value}");\n// tried {value} and x{value}\nint {value[:7]};'
    assert scrubbed(text).split("\n")[1:] == [f"// tried <redacted-secret-1> and x{value}", f"int {value[:7]};"]


def test_no_setting_lets_the_tool_use_the_network() -> None:
    with default_settings():
        assert "detect_secrets.filters.common.is_ignored_due_to_verification_policies" not in get_settings().filters


def test_texts_of_the_tests_are_of_a_language() -> None:
    assert language_of("a.cpp") is CPP
