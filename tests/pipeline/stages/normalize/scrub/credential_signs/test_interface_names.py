"""Interface names: types, algorithms, modules and words of a table stay beside a password's name, and a password there goes."""

import pytest

from pipeline.stages.normalize.scrub.credential_signs.interface_names import (
    is_in_table_of_names,
    is_numbered_word,
    is_type_name,
    names_something,
)
from pipeline.stages.normalize.scrub.credentials.passwords import find_passwords

WORD = "winter" + "72"
RANDOM = "tR4vk" + "9QzL2w"


def found_in(line: str) -> list[str]:
    return [line[found.start : found.end] for found in find_passwords(line)]


@pytest.mark.parametrize(
    "line",
    [
        'const char* names[] = { "popd", "pushd", "pwd", "rehash", "realsqrt" };',
        'const char* names[] = { "password", "md5sum", "hex2dec", "disp0", "cd2", "dbstop" };',
        'field("password", "varchar64");',
        '{"password", "string32", true},',
        'column("passwd", "CHAR(41)");',
        'schema.add("password", "utf8mb4");',
        'loadPlugin("password_plugin", "sha256_password");',
        'setType("password", "sha512crypt");',
        'REGISTER("HTTPPasswordMgr", "urllib2", "urllib.request");',
        'MovedAttribute("HTTPPasswordMgr", "urllib2", "urllib.request");',
        'addTest("PasswordTest", "suite2");',
        'tr("password", "mot2passe");',
        'METHOD("changePassword", "method12");',
        'options["password"] = "base64-encoded";',
    ],
)
def test_a_name_of_something_else_stays(line: str) -> None:
    assert found_in(line) == []


@pytest.mark.parametrize(
    "line",
    [
        f'{{"user", "svc", "password", "{WORD}", "database", "shop"}}',
        f'{{"password", "{WORD}"}},',
        f'config.set("password", "{WORD}");',
        f'setField("password", "{WORD}");',
        f'registerUser("password", "{WORD}");',
        f'field("password", "{RANDOM}");',
        f'const char* names[] = {{ "popd", "pushd", "pwd", "{RANDOM}", "rehash", "chdir" }};',
    ],
)
def test_a_password_in_such_a_place_is_found(line: str) -> None:
    assert WORD in found_in(line) or RANDOM in found_in(line)


def test_a_type_has_a_length_and_a_numbered_word_one_digit() -> None:
    assert all(map(is_type_name, ["varchar64", "CHAR(41)", "uint32_t", "nvarchar128", "utf8mb4"]))
    assert not any(map(is_type_name, ["winter64", "text", "charlie64", "mychar1"]))
    assert is_numbered_word("sqlite3")
    assert not is_numbered_word("sqlite34")


def test_a_table_of_names_has_five_at_least_and_none_of_a_user() -> None:
    def is_table(line: str) -> bool:
        start = line.index("pwd")
        return is_in_table_of_names(line, start, start + 3)

    assert is_table('{ "popd", "pushd", "pwd", "rehash", "chdir" }')
    assert not is_table('{ "pushd", "pwd", "rehash", "chdir" }')
    assert not is_table('{ "user", "pushd", "pwd", "rehash", "chdir" }')
    assert not is_table('{ "a-b", "pwd", "rehash", "c-d", "e", "f" }')


def test_a_function_that_gets_names_says_so_in_its_own() -> None:
    assert names_something(["registerWidget"])
    assert names_something(["f", "Q_IMPORT"])
    assert not names_something(["registerUser", "setAttribute", "important", "str"])
