"""Login calls: functions of known libraries, and which of their arguments is a password, without a word of it in their names.

To add one, add its name to the line of _POSITIONS with the position of its password, from 0. Names are in small letters, without
the A or W at the end of those of Windows.

Sources: the manuals of libpq, MySQL, Oracle, ODBC, OpenLDAP, OpenSSL, libssh, libssh2, libcurl, mosquitto, rabbitmq-c, Arduino,
SQLite's encryption, Cassandra, TDengine, libetpan, minizip, libharu, MIT Kerberos, WinINet and Windows networking.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from pipeline.stages.normalize.scrub.credential_signs.call_literals import CallLiteral, arguments_of
from pipeline.stages.normalize.scrub.credential_signs.password_values import (
    is_counted_name,
    is_given_password,
    is_name_in_code,
    looks_fair,
    looks_like_password_of_account,
    looks_like_password_of_login,
)
from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.stages.normalize.scrub.hits import condition, hit_lines

_POSITIONS = {
    0: "pkcs12_create crypt crypt_r pkcs5_pbkdf2_hmac pkcs5_pbkdf2_hmac_sha1 evp_pbe_scrypt",
    1: """
        ftp.begin ftpsrv.begin ftpserver.begin
        wifi.begin wifi.softap wifimulti.addap sqlite3_key sqlite3_rekey pkcs12_parse pkcs12_verify_mac
        ssl_ctx_set_default_passwd_cb_userdata
        ssl_set_default_passwd_cb_userdata set_basic_auth set_digest_auth set_proxy_basic_auth set_proxy_digest_auth
        setauthorization
        wnetaddconnection unzopencurrentfilepassword fpdf_loaddocument createconnection mailpop3_pass dbsetlpwd ftplogin
        networkcredential usernamepasswordcredentials
        ssh_pki_import_privkey_file hpdf_setpassword wnetaddconnection2
    """,
    2: """
        nanodbc::connection
        getconnection
        ldap_bind ldap_bind_s ldap_simple_bind ldap_simple_bind_s mysql_change_user logonuser logonuserex createprocesswithlogon
        wnetaddconnection3 ssh_userauth_password libssh2_userauth_password ssh_userauth_publickey_auto mosquitto_username_pw_set
        taos_connect sqlite3_key_v2 sqlite3_rekey_v2 cass_cluster_set_credentials mailsmtp_auth mailimap_login fpdf_loadmemdocument
        netuserchangepassword hpdf_setpassword crypto_pwhash passwordcredential
    """,
    3: """
        mysqlx::session mysqlx::getsession
        evp_bytestokey
        mysql_connect mysql_real_connect libssh2_userauth_password_ex mysqlx_get_session irc_connect krb5_get_init_creds_password
        zip_file_set_encryption pem_read_privatekey pem_read_bio_privatekey pem_read_rsaprivatekey pem_read_bio_rsaprivatekey
        pem_read_ecprivatekey pem_read_bio_ecprivatekey netuserchangepassword channel::create
    """,
    4: "internetconnect qnetworkproxy libssh2_userauth_publickey_fromfile",
    5: "sqlconnect ocilogon ocilogon2",
    6: "pqsetdblogin libssh2_userauth_publickey_fromfile_ex",
    7: "amqp_login",
}
_OF_CALL = {
    name: frozenset(number for number, names in _POSITIONS.items() if name in names.split())
    for names in _POSITIONS.values()
    for name in names.split()
}
_OF_MANY_WORDS = """
    login logon log_in signin sign_in authenticate setauth set_auth basicauth basic_auth setcredentials
    set_credentials authinfo logininfo userinfo accountinfo authdata logindata userauth useraccount usercredentials
    logincredentials basiccredentials auth_basic authbasic httpauth http_auth authenticator login_with
"""
_OF_MANY = frozenset(_OF_MANY_WORDS.split())
"""Methods and structures of many libraries that get a user and a password: less is sure of what their second argument is."""
_CONNECTING_WORDS = """
    connect connecttohost connecttoserver connect_to_server connecttodatabase connectdb
    createconnection openconnection makeconnection
"""
_CONNECTING = frozenset(_CONNECTING_WORDS.split())
"""Methods of servers' clients and of much else: their object or an argument must be a server's, and a user precedes it."""
_ACCOUNT = (
    r"(?:create|add|new|register|insert|make|update|verify|check|validate|authenticate)_?(?:db_?|new_?|local_?)?"
    r"(?:users?|user_?account|account|login|member)"
)
"""Expression of functions that make or look for an account: what they get after a user may be much else."""
_OF_AN_ACCOUNT = re.compile(_ACCOUNT)
_AFTER_A_USER = re.compile(
    r"(?i)[(,]\s{0,8}[&*]?(?:[\w.]|->){0,40}(?:user|login|uid|account)(?:_?name|_?id)?_?(?:\.c_str\(\))?\s?,\s{0,8}L?\"\Z"
)
_OF_A_SERVER = re.compile(
    r"(?i)(?:mqtt|client|sql|db|database|ftp|smtp|imap|pop3|ldap|ssh|redis|mongo|amqp|stomp|telnet|driver|vpn)\w{0,24}\s?(?:->|\.|::)\s?\w{4,20}\s?\(\Z"
)
_SERVER = re.compile(
    r"[a-z0-9+]{2,20}://|[\w.-]+:[0-9]{2,5}\Z|(?:[\w-]+\.)+[a-z]{2,8}\Z|localhost\Z|[0-9]+(?:\.[0-9]+){3}\Z"
)
_USER = re.compile(r"[A-Za-z][\w.@-]{1,40}")
_NUM_CHARACTERS_BEFORE = 160
_OF_REDIS = frozenset(("rediscommand", "redisappendcommand", "redisasynccommand"))
_CURL = frozenset(("curl_easy_setopt", "easy_setopt", "test_setopt"))
_CURL_PASSWORD = re.compile(
    r"CURLOPT_(?:(?:PROXY_)?TLSAUTH_PASSWORD|(?:PROXY)?PASSWORD|(?:PROXY_)?KEYPASSWD|XOAUTH2_BEARER)\b"
)
_CURL_LOGIN = re.compile(r"CURLOPT_(?:PROXY)?USERPWD\b")
_CALL = re.compile(
    r"(?<!\w)(?P<name>(?:(?:wifi|wifimulti|ftp|ftpsrv|ftpserver)\.|(?:channel|mysqlx|nanodbc)::)?\w{4,40})"
    r"(?:[ \t]+\w{1,30})?[ \t]?[({]",
    re.IGNORECASE,
)
_NAMES = "|".join([*sorted(map(re.escape, (*_OF_CALL, *_OF_MANY, *_CONNECTING, *_OF_REDIS, *_CURL))), _ACCOUNT])
LOGIN_CONDITION = rf"(?i:(?:{_NAMES})[aw]?(?:[ \t]+\w+)?[ \t]?[({{])"
"""Expression that is true of every line with such a call."""


def find_login_passwords(text: str) -> Iterator[Finding]:
    """Yield the passwords among the arguments of logins."""
    for start, end in hit_lines(text, condition(LOGIN_CONDITION)):
        for call in _CALL.finditer(text, start, end):
            name = call["name"].lower()
            known = name if name in _OF_CALL else name.removesuffix("w").removesuffix("a")
            yield from _passwords(text, call.end(), known)


def is_login_call(text: str, place: int) -> bool:
    """Return whether a place is among the arguments of a login whose password has a position."""
    before = text[max(0, place - _NUM_CHARACTERS_BEFORE) : place]
    calls = [call for call in _CALL.finditer(before) if before.count(")", call.end()) <= before.count("(", call.end())]
    return bool(calls) and calls[-1]["name"].lower() in _OF_CALL


def _passwords(text: str, place: int, name: str) -> Iterator[Finding]:
    if name in _CURL:
        yield from _curl_passwords(text, place)
    elif name in _OF_REDIS:
        command = list(arguments_of(text, place))
        if len(command) > 1 and command[0].value.startswith("AUTH %") and is_given_password(command[-1].value):
            yield _finding(command[-1])
    elif name in _OF_CALL:
        found = (each for each in arguments_of(text, place) if each.position in _OF_CALL[name])
        yield from (_finding(each) for each in found if is_given_password(each.value))
    elif name in _CONNECTING:
        yield from _connecting_password(text, place)
    elif _OF_AN_ACCOUNT.fullmatch(name):
        yield from _account_password(text, place)
    elif name in _OF_MANY:
        for each in arguments_of(text, place):
            if each.position == 1 and (looks_fair(each.value) or looks_like_password_of_login(each.value)):
                yield _finding(each)


def _connecting_password(text: str, place: int) -> Iterator[Finding]:
    """Yield the literal after a user's where a client connects to a server."""
    literals = list(arguments_of(text, place))
    is_of_a_server = _OF_A_SERVER.search(text, max(0, place - _NUM_CHARACTERS_BEFORE), place)
    found = {each for each in _after_user_variables(text, place, literals) if not is_name_in_code(each.value)}
    if is_of_a_server or any(_SERVER.match(each.value) for each in literals):
        found.update(each for each in _after_users(literals) if each.position > 1)
    yield from (_finding(each) for each in literals if each in found and looks_fair(each.value))


def _account_password(text: str, place: int) -> Iterator[Finding]:
    """Yield the literal after a user's where an account is made or looked for."""
    literals = list(arguments_of(text, place))
    yield from (_finding(each) for each in _after_users(literals) if looks_like_password_of_account(each.value))
    named = _after_user_variables(text, place, literals)
    yield from (_finding(each) for each in named if looks_fair(each.value) and not is_counted_name(each.value))


def _after_users(literals: Iterable[CallLiteral]) -> Iterator[CallLiteral]:
    """Yield the literals that are the next arguments after one that may be a user's name."""
    for user, each in pairwise(literals):
        if each.position == user.position + 1 and user.depth == each.depth == 0 and _USER.fullmatch(user.value):
            yield each


def _after_user_variables(text: str, place: int, literals: Iterable[CallLiteral]) -> Iterator[CallLiteral]:
    """Yield the literals after an argument that is named after a user."""
    yield from (each for each in literals if each.depth == 0 and _AFTER_A_USER.search(text, place - 1, each.start))


def _curl_passwords(text: str, place: int) -> Iterator[Finding]:
    """Yield the password of an option of libcurl: all of its value, or what is after the user and the colon."""
    for each in arguments_of(text, place):
        option = text[place : each.start]
        if each.position == 2 and _CURL_PASSWORD.search(option) and is_given_password(each.value):
            yield _finding(each)
        elif each.position == 2 and _CURL_LOGIN.search(option):
            user, _, password = each.value.partition(":")
            if is_given_password(password):
                yield Finding(each.start + len(user) + 1, each.end, password)


def _finding(argument: CallLiteral) -> Finding:
    return Finding(argument.start, argument.end, argument.value)
