"""Compared inputs: what an input is compared with goes where the line says that the password is wrong; names and formats stay."""

import pytest

from pipeline.stages.normalize.scrub.credentials.placed_passwords import find_placed_passwords

VALUE = "copper" + "1522"


@pytest.mark.parametrize(
    "text",
    [
        f'if (input != "{VALUE}") puts("wrong password");',
        f'if (line == "{VALUE}") {{ open(); }} else {{ print("Invalid password!\\n"); }}',
        f'if (strcmp(buf, "{VALUE}") != 0) {{ printf("Incorrect passcode.\\n"); return -1; }}',
    ],
)
def test_what_an_input_is_compared_with_is_found(text: str) -> None:
    assert [text[found.start : found.end] for found in find_placed_passwords(text)] == [VALUE]


@pytest.mark.parametrize(
    "text",
    [
        f'if (input != "{VALUE}") puts("wrong number");',
        f'if (input != "{VALUE}") puts("wrong password database");',
        f'if (version != "{VALUE}") puts("wrong password");',
        'if (input != "SCRAM-SHA-256") puts("wrong password");',
        'if (input != "suite2") puts("wrong password");',
        'if (input != "password") puts("wrong password");',
    ],
)
def test_what_says_something_else_stays(text: str) -> None:
    assert list(find_placed_passwords(text)) == []
