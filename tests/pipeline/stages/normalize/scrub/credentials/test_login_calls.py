"""Login calls: passwords among the arguments of functions of known libraries, and arguments that are something else."""

import pytest

from pipeline.stages.normalize.scrub.credentials.login_calls import find_login_passwords

VALUE = "copper" + "1522"


@pytest.mark.parametrize(
    "line",
    [
        f'WiFi.begin("home-net", "{VALUE}");',
        f'PQsetdbLogin(host, port, nullptr, nullptr, db, "bob", "{VALUE}");',
        f'PKCS12_parse(p12, "{VALUE}", &key, &certificate, nullptr);',
        f'SSL_CTX_set_default_passwd_cb_userdata(ctx, (void*)"{VALUE}");',
        f'client.set_basic_auth("bob", "{VALUE}");',
        f'client.connect("device", "mqttuser", "{VALUE}");',
        f'Authenticator login("bob", "{VALUE}");',
    ],
)
def test_a_password_among_the_arguments_is_found(line: str) -> None:
    assert [line[found.start : found.end] for found in find_login_passwords(line)] == [VALUE]


@pytest.mark.parametrize(
    "line",
    [
        "WiFi.begin(ssid, password);",
        'mysql_real_connect(c, "localhost", "root", "", "main", 0, nullptr, 0);',
        'PKCS12_parse(p12, "", &key, nullptr, nullptr); log("step1234");',
        'begin("home-net", "copper1522");',
    ],
)
def test_names_hosts_and_other_calls_stay(line: str) -> None:
    assert list(find_login_passwords(line)) == []
