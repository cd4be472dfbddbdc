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
        f'mysqlx::Session session("db", 33060, "root", "{VALUE}");',
        f'nanodbc::connection connection(dsn, "sa", "{VALUE}");',
        f'ftpSrv.begin("esp8266", "{VALUE}");',
        f'Authenticator login("bob", "{VALUE}");',
        f'connect(host, user, "{VALUE}");',
        f'client.connect(url, config.user_name.c_str(), "{VALUE}");',
        f'db.connectToServer("db.host.org", "bob", "{VALUE}");',
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
        'Session session("db", 33060, "root", "copper1522");',
        'it.begin("esp8266", "copper1522");',
        'begin("home-net", "copper1522");',
    ],
)
def test_names_hosts_and_other_calls_stay(line: str) -> None:
    assert list(find_login_passwords(line)) == []


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ('CreateUser("svc", "{}");', "Gr33n" + ".Apples"),
        ('add_user(users, "bob", "{}", true);', "m4rble" + ".hall"),
        ('AddAccount(L"backup", L"{}");', "S4nd" + "stone!"),
        ('store.verify_account("bob", "{}");', "p0lar" + "-bear"),
        ('db.create_user(user, "{}");', "copper" + "_1522b"),
    ],
)
def test_a_password_of_an_account_is_found(call: str, value: str) -> None:
    line = call.format(value)

    assert [line[found.start : found.end] for found in find_login_passwords(line)] == [value]


@pytest.mark.parametrize(
    "line",
    [
        'CreateUser("bob", "Service account");',
        'CreateUser("bob", "bob2.png");',
        'CreateUser("bob", "group-12");',
        'CreateUser(user, "group-12");',
        'add_user("bob", "uid1001");',
        'add_user("bob", "%s:%d");',
        'addMember("size", "uint64_t");',
        'verifyUser("bob", "Wrong password!");',
        'login("user", "password");',
        'login("username", "Enter password:");',
        'connect(sender, "changed2", "update3");',
        'connect(user, "signal_x2", "slot_y3");',
        'connect(host, user, "password");',
        'authenticate("user", "scram-sha-256");',
        'authenticate("realm", "digest-md5");',
    ],
)
def test_roles_groups_signals_messages_and_algorithms_stay(line: str) -> None:
    assert list(find_login_passwords(line)) == []
