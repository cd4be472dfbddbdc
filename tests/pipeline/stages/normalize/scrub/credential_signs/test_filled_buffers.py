"""Filled buffers: what a call writes into a password goes, by any distance; formats, prompts, paths and other buffers stay."""

import pytest

from pipeline.stages.normalize.scrub.credentials.placed_passwords import find_placed_passwords

VALUE = "copper" + "_1522b"


@pytest.mark.parametrize(
    "line",
    [
        f'snprintf(pass, sizeof pass, "{VALUE}");',
        f'snprintf(conn->password, sizeof(conn->password), "%s", "{VALUE}");',
        f'std::snprintf(&password[0], n - 1, "{VALUE}");',
        f'swprintf(user.pwd, 20, L"{VALUE}");',
        f'_snprintf_s(pwd, _countof(pwd), _TRUNCATE, "{VALUE}");',
        f'StringCbCopy(password, sizeof(password), L"{VALUE}");',
        f'strlcpy(pw, "{VALUE}", sizeof pw);',
        f'std::copy_n("{VALUE}", 12, password);',
        f'std::copy_n("{VALUE}", sizeof(pw) - 1, config.password.begin());',
        f'std::copy_n("{VALUE}", 12, std::begin(passwd));',
    ],
)
def test_what_a_call_writes_into_a_password_is_found(line: str) -> None:
    assert [line[found.start : found.end] for found in find_placed_passwords(line)] == [VALUE]


@pytest.mark.parametrize(
    "line",
    [
        'snprintf(pass, sizeof pass, "%s", value);',
        'snprintf(password, n, "%s-%d", a, b);',
        'snprintf(password, n, "Enter password:");',
        'snprintf(passwd, sizeof passwd, "/etc/passwd");',
        'snprintf(passwd_file, sizeof passwd_file, "%s/.pgpass2", home);',
        'snprintf(pass, n, "translucent-2");',
        'snprintf(pass->name, n, "gbuffer0");',
        'snprintf(message, n, "bad password, 3rd time");',
        'strlcpy(password, "password", sizeof password);',
        'std::copy_n(password, 8, "copper1522");',
        'std::copy_n("header_v2", 9, buffer); pass(3);',
        'snprintf(buffer, n, "copper1522"); set(pass);',
    ],
)
def test_formats_prompts_paths_and_other_buffers_stay(line: str) -> None:
    assert list(find_placed_passwords(line)) == []
