"""Password columns: the password of each row goes where a comment or a structure names the columns; other columns stay."""

import pytest

from pipeline.stages.normalize.scrub.credentials.placed_passwords import find_placed_passwords

VALUE = "copper" + "1522"


@pytest.mark.parametrize(
    "text",
    [
        f'{{ "admin", "{VALUE}" }}, // user, password',
        f'// user, password\n{{ "root", "{VALUE}" }},\n',
        f'struct Login {{ const char* user; const char* password; }} logins[] = {{ {{ "bob", "{VALUE}" }} }};',
    ],
)
def test_the_column_is_found(text: str) -> None:
    assert [text[found.start : found.end] for found in find_placed_passwords(text)] == [VALUE]


def test_other_columns_and_tables_stay() -> None:
    assert (
        list(
            find_placed_passwords('{ "admin", "copper1522" }, // user, full name\n{ "a", "password" }, // x, password')
        )
        == []
    )
