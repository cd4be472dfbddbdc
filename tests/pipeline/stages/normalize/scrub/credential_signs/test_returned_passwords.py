"""Returned passwords: what a function or a lambda named after a password returns goes; prompts, names and checks stay."""

import pytest

from pipeline.stages.normalize.scrub.credentials.placed_passwords import find_placed_passwords

VALUE = "copper" + "1522"


@pytest.mark.parametrize(
    "text",
    [
        f'std::string getPassword() {{ return "{VALUE}"; }}',
        f'QString A::password() const\n{{\n    return QStringLiteral("{VALUE}");\n}}',
        f'auto password = [&]() -> std::string {{ log("x"); return "{VALUE}"; }};',
        f'auto& password() {{ static std::string s = "{VALUE}"; return s; }}',
        f'inline const std::string& dbPassword()\n{{\n    static const std::string value{{"{VALUE}"}};\n    return value;\n}}',
        f'std::string dbPassword(int n) {{ if (n) {{ return "{VALUE}"; }} }}',
        f'bool check_password(const char* s) {{ return !strcmp(s, "{VALUE}"); }}',
        f'bool isValidPassword(const std::string& s)\n{{\n    return s == "{VALUE}";\n}}',
        f'bool verifyPassword(const std::string& s) {{ return s.compare("{VALUE}") == 0; }}',
    ],
)
def test_a_returned_password_is_found(text: str) -> None:
    assert [text[found.start : found.end] for found in find_placed_passwords(text)] == [VALUE]


@pytest.mark.parametrize(
    "text",
    [
        'std::string passwordPrompt() { return "Password, 8 characters:"; }',
        'const char* validatePassword() { return "weak"; }',
        'std::string getToken() { return "identifier"; }',
        'auto& passwordLabel() { static std::string s = "Password, 8:"; return s; }',
        'auto& password() { static std::string s = "copper1522"; return ask(s); }',
        'auto& name() { static std::string s = "copper1522"; return s; }',
        'bool check_name(const char* s) { return !strcmp(s, "copper1522"); }',
        'bool check_password(const char* s) { return strcmp(s, "password1"); }',
        'bool is_password_field(std::string s) { return s == "field12345"; }',
        'std::string name() { return "copper1522"; }',
    ],
)
def test_prompts_names_and_checks_stay(text: str) -> None:
    assert list(find_placed_passwords(text)) == []
