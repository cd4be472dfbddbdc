"""Passwords in running text: of connection strings, URIs, headers and command lines, on lines of any length."""

import pytest

from pipeline.stages.normalize.scrub.credentials.text_credentials import find_text_credentials

VALUE = "tR4" + "vk9Qz7m"


@pytest.mark.parametrize(
    "line",
    [
        f"// postgres://ada:{VALUE}@db.host.org/x",
        f'connect("Server=db;Uid=ada;Pwd={VALUE};");',
        f"# curl -u ada:{VALUE} https://host.org",
        f"// sshpass -p {VALUE} ssh host",
    ],
)
def test_a_password_in_text_is_found(line: str) -> None:
    assert VALUE in {line[found.start : found.end] for found in find_text_credentials(line)}


def test_a_long_line_is_searched_to_its_end() -> None:
    line = "// " + "password = none; " * 1_000 + f"postgres://ada:{VALUE}@db.host.org/x"
    assert VALUE in {line[found.start : found.end] for found in find_text_credentials(line)}


@pytest.mark.parametrize("line", ["int password = read_password();", "// the password is read from a file", "a://b:c"])
def test_prose_and_code_stay(line: str) -> None:
    assert list(find_text_credentials(line)) == []
