"""The gate in front of detect-secrets loses nothing: it finds what the tool finds in the whole file."""

from pathlib import Path

import pytest
from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.core.scan import scan_file
from detect_secrets.settings import default_settings, get_settings

from pipeline.core.languages import CPP, language_of
from pipeline.stages.normalize.scrub.secrets import CONDITIONS, SCANNED_NAME, scan_secrets
from tests.support.planted_secrets import lines_by_plugin

PLANTED = [(plugin, line) for plugin, lines in lines_by_plugin().items() for line in lines]
NEAR_MISSES = [
    'const char* name = "a_rather_long_identifier_of_no_secrecy";',
    'static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";',
    "password = read_password(prompt);",
    'if (secret == "") return;',
    'url = "http://user@host/";',
    "// BEGIN PRIVATE SECTION",
    'auto id = "3f2504e0-4f89-11d3-9a0c-0305e82c3301";',
    'const char* x = "glpat-short";',
    "std::map<Key, Token> keys; // token: the next one",
    'password = "${PASSWORD}";',
]


def whole_file_findings(path: Path, text: str) -> set[tuple[str, str]]:
    path.write_text(text, encoding="utf-8")
    with default_settings():
        names = {kind: plugin.__name__ for kind, plugin in get_mapping_from_secret_type_to_class().items()}
        return {(names[secret.type], str(secret.secret_value)) for secret in scan_file(str(path))}


def gated_findings(text: str) -> set[tuple[str, str]]:
    with default_settings():
        return {(secret.plugin, secret.value) for secret in scan_secrets(text)}


def test_every_default_plugin_has_a_condition() -> None:
    with default_settings() as settings:
        assert set(settings.plugins) == set(CONDITIONS)


def test_every_plugin_that_can_report_is_planted() -> None:
    assert {plugin for plugin, _ in PLANTED} == {plugin for plugin, condition in CONDITIONS.items() if condition}


@pytest.mark.parametrize(
    ("plugin", "line"), PLANTED, ids=[f"{plugin}-{index}" for index, (plugin, _) in enumerate(PLANTED)]
)
def test_a_planted_line_is_found_exactly_as_the_tool_finds_it(plugin: str, line: str, tmp_path: Path) -> None:
    text = f"int before = 1;\n{line}\nint after = 2;\n"
    found = gated_findings(text)
    assert found == whole_file_findings(tmp_path / "x.cpp", text)
    assert plugin in {name for name, _ in found}


def test_a_file_of_everything_is_found_as_the_tool_finds_it(tmp_path: Path) -> None:
    lines = [line for _, line in PLANTED] + NEAR_MISSES + ["// é ü ñ", *(line for _, line in reversed(PLANTED))]
    text = "\n".join(lines)
    assert gated_findings(text) == whole_file_findings(tmp_path / "x.cpp", text)


@pytest.mark.parametrize("line", NEAR_MISSES)
def test_a_near_miss_is_judged_as_the_tool_judges_it(line: str, tmp_path: Path) -> None:
    assert gated_findings(line) == whole_file_findings(tmp_path / "x.cpp", line)


def test_a_finding_after_text_beyond_ascii_has_its_place_in_characters() -> None:
    line = lines_by_plugin()["HexHighEntropyString"][0]
    text = f"// äöü ✓\n\n{line}\n"
    with default_settings():
        (found,) = [secret for secret in scan_secrets(text) if secret.plugin == "HexHighEntropyString"]
    assert (found.line, text[found.start : found.end]) == (3, found.value)


def test_a_token_is_located_whole_though_the_tool_reports_its_prefix() -> None:
    line = lines_by_plugin()["GitHubTokenDetector"][0]
    with default_settings():
        (found,) = [secret for secret in scan_secrets(line) if secret.plugin == "GitHubTokenDetector"]
    assert found.value == "ghp"
    assert line[found.start : found.end] == line.split('"')[1]


def test_findings_do_not_print_their_value() -> None:
    with default_settings():
        found = scan_secrets(lines_by_plugin()["StripeDetector"][0])
    assert all(secret.value not in repr(secret) for secret in found)


def test_no_setting_lets_the_tool_use_the_network() -> None:
    with default_settings():
        assert "detect_secrets.filters.common.is_ignored_due_to_verification_policies" not in get_settings().filters


def test_the_name_that_the_tool_sees_is_that_of_a_cpp_file() -> None:
    assert language_of(SCANNED_NAME) is CPP
