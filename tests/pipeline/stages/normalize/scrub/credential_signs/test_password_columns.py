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
        f'struct {{ char *user, *pass; }} logins[] = {{ {{ "bob", "{VALUE}" }} }};',
        f'// password for the db:\nconst char *p = "{VALUE}";\n',
        f'/* The root password */\n  static const std::string x{{"{VALUE}"}};',
        f'#define P "{VALUE}" /* password of root */',
        f'// password\n#define P "{VALUE}"',
    ],
)
def test_the_column_is_found(text: str) -> None:
    assert [text[found.start : found.end] for found in find_placed_passwords(text)] == [VALUE]


def test_vectors_in_a_column_and_words_of_a_sentence_stay() -> None:
    table = 'struct { const char* passwd_hex; int n; } v[] = { { "a347ae92bce9f80f6f595a4480fc9c2f", 8 } };'
    sentence = '// the secret, the same data -> the same text\ncheck("name", "ctext2", 3);\n'
    assert [*find_placed_passwords(table), *find_placed_passwords(sentence)] == []


def test_other_columns_and_tables_stay() -> None:
    assert (
        list(
            find_placed_passwords('{ "admin", "copper1522" }, // user, full name\n{ "a", "password" }, // x, password')
        )
        == []
    )


@pytest.mark.parametrize(
    "text",
    [
        '// Check the password\nconst char *p = "copper1522";',
        '// the password of which we speak below in the text\nconst char *p = "copper1522";',
        '// password\nf("copper1522", g);',
        '// password\nconst char *hex = "a347ae92bce9f80f6f595a4480fc9c2f";',
        '// password length\nconst char *p = "copper1522";',
    ],
)
def test_a_comment_above_that_says_something_else_is_no_name(text: str) -> None:
    assert list(find_placed_passwords(text)) == []
