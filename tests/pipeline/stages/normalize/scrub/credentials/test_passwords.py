"""Passwords in literals: found by the name beside them, and not where the literal is a label, a message or a placeholder."""

import re

import pytest

from pipeline.stages.normalize.params import ScrubParams
from pipeline.stages.normalize.scrub.credentials.passwords import find_passwords
from pipeline.stages.normalize.scrub.scrub import Scrubber

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
        f'std::string heslo = "{VALUE}";',
        f'make_pair("password", "{VALUE}");',
        f'std::make_pair(std::string("password"), std::string("{VALUE}"))',
        f'if (strcmp(pass, "{VALUE}") == 0) {{',
        f'credentials cred(U("bob"), U("{VALUE}"));',
    ],
)
def test_a_literal_that_a_name_calls_a_password_is_found(line: str) -> None:
    assert VALUE in {line[found.start : found.end] for found in find_passwords(line)}


def test_a_backslash_that_is_written_twice_is_one_of_a_password() -> None:
    line = r'const char *password = "a\\b77!cD";'
    assert [line[found.start : found.end] for found in find_passwords(line)] == [r"a\\b77!cD"]


WORD = "tiger_" + "401"


@pytest.mark.parametrize(
    "line",
    [
        f'#define CONFIG_WIFI_PASSWORD "{WORD}"',
        f'assert(check_password("bob", "{WORD}"));',
        f'session.use(UserPassword("bob", "{WORD}"));',
    ],
)
def test_a_word_is_found_where_only_a_password_can_stand(line: str) -> None:
    assert WORD in {line[found.start : found.end] for found in find_passwords(line)}


@pytest.mark.parametrize(
    "line",
    [
        'password = ok ? "pass" : "fail12ab";',
        'secret_sauce = "bbq2";',
        'return new MyPass("loop-vectorize");',
        'struct Pass p = {"bloom", "bright2", 1};',
        'if (strcmp(pass, "sccp2") == 0) run();',
        'const char *password_regex = "\\\\bfoo\\\\d+";',
        'secret_key = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";',
        'secret_key = "d41d8cd98f00b204e9800998ecf8427e";',
        'std::string api_secret = "da39a3ee5e6b4b0d3255bfef95601890afd80709";',
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
        'auto exporter_secret = derive_secret(m_master_secret, "exp master", digest);',
        'auto key = create_private_key("X25519", generator);',
        'git_pass(decode_base85(&buffer, "ba!tca&BaE", 10, 8));',
        'err_page(session, "Unauthorized", "Unauthorized!");',
        '{ "PSK-RC4-SHA", "TLS-PSK-WITH-RC4-128-SHA" },',
        '"new-psk-credential", "new-x509-credential",',
        'create(&client, options.psk_connection, "test6", 1);',
        'match(p, "tls-auth") || prefix(p, "tun-ipv6")',
        'open("a.pem", "test_pwd" /* pem_pwd */, "test_ca_file2" /* ca */);',
        '#define PROPERTY_KEY1 "temperature%2FAlert1"',
        'hmac(key, sizeof(service_key), (uint8_t*)"aws4_request", 12);',
        '{ "Pacific/Palau", "Tokyo" }, // PW\n{ "Asia/Dili", "Tokyo" },',
        'prompt(info, nullptr, L"Enter your credentials", L"Remote Desktop Security", 0);',
        'f("MSI_SECRET", "2017-09-01");',
        'validate(0, TOTP_SECRET, 1540624110, 0, "065486");',
        'static const QString TOTP_SECRET = "TimeOtp-Secret-Base32";',
        '#define SQL_PASSWD_VERSION "mod_sql_passwd/1.3"',
        'command = needs_passphrase ? "PGPPASSFD=0" : "";',
        'headers.set("sec-websocket-key", "CI1sXhf/u2o34BfWK7NeIg==");',
        "'\\267', '\\002', '&envoy.api.v2.auth.TlsSessionTicketKeys', '!CertificateProviderPluginInstance', '\\022'",
        'Field KERB_RPC_ENCRYPTION_KEY_fields[] = { { "reserved1", 0 } };',
    ],
)
def test_what_only_speaks_of_a_password_stays(line: str) -> None:
    assert list(find_passwords(line)) == []


@pytest.mark.parametrize("word", ["rocket_4504", "Pa55wd1013!", "maple-tango-26"])
def test_an_array_of_characters_is_read_as_the_word_that_it_spells(word: str) -> None:
    characters = ", ".join(f"'{each}'" for each in word)
    for line in (f"char password[] = {{{characters}}};", f"const char kPassword[16] = {{{characters}, '\\0'}};"):
        assert word not in "".join(re.findall("'(.)'", Scrubber(ScrubParams()).scrub("a.c", line).text))


@pytest.mark.parametrize(
    "line",
    [
        "char pass_chars[] = {'a','b','c','d','e','f','g','h'};",
        "char password[] = {'x','x','x','x','x','x','x','x'};",
        "char hex[] = {'0','1','2','3','4','5','6','7','8','9','a','b','c','d','e','f'};",
        "const char passwd_sep[] = {':', ';', ',', '|', '/', '#'};",
    ],
)
def test_an_array_of_characters_that_spells_no_password_stays(line: str) -> None:
    assert Scrubber(ScrubParams()).scrub("a.c", line).text == line
