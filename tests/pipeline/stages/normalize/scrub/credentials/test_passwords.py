"""Passwords in literals: found by the name beside them, and not where the literal is a label, a message or a placeholder."""

import pytest

from pipeline.stages.normalize.scrub.credentials.passwords import find_passwords

VALUE = "tR4!" + "vk9Qz"


@pytest.mark.parametrize(
    "line",
    [
        f'#define DB_PASSWORD "{VALUE}"',
        f'const char* kPassword{{"{VALUE}"}};',
        f'config.password = "{VALUE}";',
        f'client.setPassword("{VALUE}");',
        f'if (pw == "{VALUE}") {{',
        f'{{"passwd", "{VALUE}"}},',
    ],
)
def test_a_literal_that_a_name_calls_a_password_is_found(line: str) -> None:
    assert VALUE in {line[found.start : found.end] for found in find_passwords(line)}


@pytest.mark.parametrize(
    "line",
    [
        'label->setText("Enter password:");',
        'const char* kPasswordField = "password";',
        'password = "";',
        'std::string password = "<password>";',
        'log("wrong password: %s", name);',
        'password = getenv("DB_PASSWORD");',
        'cl_git_pass(oid_from(&id, "06d3fefb8726ab1099acc76e02dfb85e034b2538"));',
        'expect_decode_pass("foo bar", "foo%20bar%20b4z");',
        'auto c = "UID=" ORACLE_UID ";PWD=" ORACLE_PWD ";SERVICENAME=" ORACLE_SID;',
        'auto sequence = kPassword = "{PASSWORD}{ENTER}";',
        '#define OID_USER_PASSWORD "2.5.4.35"',
        '#define RAW_SECRET L"TRUNCATE"',
        'create_password_hash("PBKDF2(SHA-256)");',
    ],
)
def test_what_only_speaks_of_a_password_stays(line: str) -> None:
    assert list(find_passwords(line)) == []
