"""Passwords in running text: of connection strings, URIs, headers and command lines, on lines of any length."""

import pytest

from pipeline.stages.normalize.scrub.credentials.text_credentials import find_text_credentials

VALUE = "tR4" + "vk9Qz7m"
PROSE = [
    " * <<password>  Remove this password from the list of valid ones.",
    "// valid username / password pair) or an error",
    "// the mechanics for machine function pass registries.",
    "    *out_private_key = priv4;",
    "int require_auth = TLS_CLIENT_AUTH_YES;",
    "// see http://foo:bar@github.com/x",
    '"--genkey tls-crypt-v2-client needs a file";',
    '" [--cert FILE|--certid HEX --key FILE|--keyid HEX]\\n"',
    "// socks5h://username[:password]@host:port",
    'log("connecting to mysql://%s:***@%s:%d");',
    "// docker run -p 8080:80 image",
    '"root:x:0:0:root:/:/bin/sh"',
    "bool pwdCorrect = !otaLock1; // if locked",
    "// https://host.org/2020/03/21/parola-a-to-z-handling-of-utf-8/",
    'uri = "/path?key1=value1#fragment";',
    "// and also accounts for the Gupta/gupta2 matrix",
    "    Password value1;",
    r'"C:\\new\\login x\\password y2kbug"',
    r'puts("login\npassword\n");',
    'uri = "mongodb://access_key_id:secret_access_key@localhost/";',
]


@pytest.mark.parametrize(
    "line",
    [
        f"// postgres://ada:{VALUE}@db.host.org/x",
        f'connect("Server=db;Uid=ada;Pwd={VALUE};");',
        f"# curl -u ada:{VALUE} https://host.org",
        f"// sshpass -p {VALUE} ssh host",
        f"  -u developer:{VALUE} \\",
        f"curl -u ':{VALUE}' https://localhost",
        f"$ curl --user  'johns:{VALUE}' https://host -w '%{{http_code}}'",
        f"curl -H 'Authorization:  {VALUE}' https://host",
        f'// -H "apikey: {VALUE}"',
        f"<db.password>\n    {VALUE}\n</db.password>",
        f"// snmpget -v3 -u ada -A {VALUE} host",
        f"User=ada;Pwd={VALUE};Trusted=no",
        rf'const char *n = "machine reg.corp.net\nlogin ci\npassword {VALUE}\n";',
        rf'n = "machine reg.corp.net\n\tlogin ci\n\tpassword {VALUE}\n" "machine b\n";',
        rf'"default\r\nlogin ci\r\npassword {VALUE}\r\n"',
        rf'f("machine h login ci password {VALUE}\nmachine b");',
        rf'"machine h\n" "login ci\n" "password {VALUE}\n"',
        rf'"machine h\tlogin\tci\tpassword\t{VALUE}\n"',
        rf'    "password {VALUE}\n";',
        rf'    "password {VALUE}");',
        rf'"first line\nthe admin password is {VALUE}\nlast"',
        rf'"first\nhardcoded password {VALUE}\n"',
    ],
)
def test_a_password_in_text_is_found(line: str) -> None:
    assert VALUE in {line[found.start : found.end] for found in find_text_credentials(line)}


def test_a_long_line_is_searched_to_its_end() -> None:
    line = "// " + "password = none; " * 1_000 + f"postgres://ada:{VALUE}@db.host.org/x"
    assert VALUE in {line[found.start : found.end] for found in find_text_credentials(line)}


@pytest.mark.parametrize("before", range(3_900, 4_020, 7))
def test_a_value_is_found_whole_wherever_a_long_line_without_blanks_is_divided(before: int) -> None:
    line = "//" + "x," * (before // 2) + f"postgres://ada:{VALUE}@db.host.org/x," + "y," * 4_500
    assert VALUE in {line[found.start : found.end] for found in find_text_credentials(line)}


LETTERS = "qtHrMb" + "zYnTSSSn"


@pytest.mark.parametrize(
    "line",
    [
        f"// commit: The admin password is {LETTERS}",
        f"// commit: Say that the password was {LETTERS}.",
        f" * password of the account: {LETTERS}",
        f"// Das Passwort lautet {LETTERS}!",
    ],
)
def test_letters_alone_that_are_told_are_found_where_they_are_no_word(line: str) -> None:
    assert LETTERS in {line[found.start : found.end].rstrip(".!") for found in find_text_credentials(line)}


@pytest.mark.parametrize(
    "value",
    [
        "wrong",
        "initialPassword",
        "alwaysOnTop",
        "hashedByOpenSSL",
        "PostgreSQLDefault",
        "AllowAtInName",
        "iPadOSVersion",
        "base",
        "NULL",
        "isNotEmpty",
        "readFromStdIn",
        "kMinLengthOfKey",
        "XMLHttpRequest",
        "JavaScript",
        "McDonaldsWiFi",
    ],
)
def test_words_and_names_that_are_told_stay(value: str) -> None:
    for line in (
        f"// The admin password is {value} here",
        f" * password of ada: {value}",
        f"// the password was {value}.",
    ):
        assert list(find_text_credentials(line)) == []


def test_letters_in_code_are_no_sentence() -> None:
    for line in (f"password = {LETTERS};", f"use(password ? {LETTERS} : other);", f"void password({LETTERS} value);"):
        assert list(find_text_credentials(line)) == []


@pytest.mark.parametrize(
    "line", ["int password = read_password();", "// the password is read from a file", "a://b:c", *PROSE]
)
def test_prose_and_code_stay(line: str) -> None:
    assert list(find_text_credentials(line)) == []


@pytest.mark.parametrize(
    "line",
    [
        f'const char* argv[] = {{"mysqldump","-u","svc","-p{VALUE}", "orders", 0}};',
        f'execlp("mysql", "mysql", "-u", "root", "-p{VALUE}", NULL);',
        f"/* pass={VALUE} user=svc */",
        "/* pass=winter-maple-56 user=svc */",
    ],
)
def test_a_password_of_an_argument_or_beside_a_user_after_it_is_found(line: str) -> None:
    found = [line[each.start : each.end] for each in find_text_credentials(line)]
    assert found in ([VALUE], ["winter-maple-56"])


@pytest.mark.parametrize(
    "line",
    [
        'const char* argv[] = {"mysql", "-u", "svc", "-p", "orders12", 0};',
        'const char* argv[] = {"mysql", "-P3306", "-u", "svc"};',
        'const char* argv[] = {"patch", "-u", "-p1234"};',
        "/* pass=first, user=second */",
        "// pass: two-pass-2",
    ],
)
def test_an_argument_without_a_password_stays(line: str) -> None:
    assert list(find_text_credentials(line)) == []
