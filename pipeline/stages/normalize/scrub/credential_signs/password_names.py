"""Password names: whether the name of a variable, a field or an option says that its value is a password.

A name is divided into words at underscores, dots, hyphens and capitals: `dbPassword`, `DB_PASSWORD` and `db.password` are two.
"""

import re
from enum import IntEnum
from functools import lru_cache

NAME_PART = (
    r"pass|pwd|psw|psk|pw|secret|token|tok|key|auth|cred|contrase|kennwort|mot_?de_?passe|mdp|senha|wachtwoord|parol|clave|session|cookie"
    r"|heslo|jelsz|lozinka|geslo|adgangskode|salasana|sifre|şifre"
    r"|jwt|bearer|sid|otp|securestring|login|logon|ssid|connect|authent|has[lł]o|lösenord|пароль|密码|パスワード"
)
"""Expression of which a part of every such name is, in small letters."""


class NameStrength(IntEnum):
    """Strength of a name as a sign: LIKELY of a password or something else, FAIR of one with words of its own after it."""

    NONE = 0
    LIKELY = 1
    FAIR = 2
    SURE = 3


_SURE_WORDS = """
    password passwd passwort passphrase passcode passwrd passw pwd psw pswd pword pw userpw dbpw userpwd secret apikey
    accesskey authkey privatekey secretkey clientsecret apisecret authtoken accesstoken apitoken bearertoken
    contraseña contrasena kennwort motdepasse mdp senha wachtwoord lösenord hasło haslo parola parol пароль 密码 パスワード
    heslo jelszó jelszo lozinka geslo adgangskode salasana passord sifre şifre credential
    credentials passkey userpass dbpass sharedkey signingkey encryptionkey masterkey accountkey keypass storepass
    securestring mypass userpwd pgpassword presharedkey
"""
_SURE = frozenset(_SURE_WORDS.split())
_LIKELY_WORDS = """
    pass key keys tok token tokens auth cred creds sid session cookie jwt bearer clave pin otp login logon ssid
    connect authenticate authentication passwords secrets
"""
_LIKELY = frozenset(_LIKELY_WORDS.split())
_SURE_BEFORE_KEY_WORDS = """
    api access auth private secret client encryption signing service account master shared storage subscription admin
    app application consumer ingest sdk integration
"""
_SURE_BEFORE_KEY = frozenset(_SURE_BEFORE_KEY_WORDS.split())
_SURE_BEFORE_TOKEN_WORDS = """
    api access auth bearer refresh session bot personal oauth deploy user
"""
_SURE_BEFORE_TOKEN = frozenset(_SURE_BEFORE_TOKEN_WORDS.split())
_SURE_BEFORE_PASS_WORDS = """
    db database wifi wlan ap sta user smtp imap pop ftp sftp ssh mysql pg postgres sql redis mqtt amqp root admin http proxy
    mail email server ldap vnc rdp zip login my keystore truststore sudo svc service router vpn ppp snmp ipmi bmc jenkins
    docker registry nexus oracle mongo mongodb rabbit rabbitmq elastic kafka cassandra influx influxdb grafana telnet rtsp bot
"""
_SURE_BEFORE_PASS = frozenset(_SURE_BEFORE_PASS_WORDS.split())
_PASS_ENDS = ("pass", "pwd", "psw", "pw")
"""Ends of words whose beginning says what is behind the password, as in `rootpw`."""
_BEFORE_PSK = frozenset(["", "sta", "ap", "softap", "wifi", "wlan", "wpa", "my", "home", "router"])
"""Words before a shared key of a network; other letters before `psk` are a modulation's."""
_SURE_ENDS = (
    "password",
    "passwd",
    "passphrase",
    "passwort",
    "secret",
    "apikey",
    "authtoken",
    "accesstoken",
    "kennwort",
)
_HARMLESS_AFTER_WORDS = """
    0 1 2 3 a b s w str string value val text txt buf buffer data raw plain plaintext clear default old new prod dev
    test live hex base64 b64 utf8 utf16 in input again confirm literal const constant ptr p c sz assign append set
    emplace replace current root admin user db w me for
"""
_HARMLESS_AFTER = frozenset(_HARMLESS_AFTER_WORDS.split())
_OTHER_AFTER_WORDS = """
    hash hashed digest sha md crc checksum fingerprint uuid guid
    length len size count num index idx file filename path dir folder field label prompt type name
    names id ids header env var variable regex pattern re hint error errors err msg message title format policy url
    uri link column col attr attribute param parameter option opt flag flags arg argument tag placeholder description
    desc help kind mode char chars character prefix suffix min max event state status dialog edit box button widget
    class algo algorithm alg method scheme family required missing invalid expired changed reset callback cb func
    function fn handler manager provider store storage service policy strength check checker validator validate verify
    version fields labels options params parameters attributes columns types events states prohibited allowed disallowed forbidden
    encoding encoder decoder factory generator list map table vector array iterator iter begin end section group item
    items identity identities hint cipher suite property prop metric key rule mask toggle view cmd command store info
"""
_OTHER_AFTER = frozenset(_OTHER_AFTER_WORDS.split())
_PUBLIC_BEFORE_WORDS = """
    public pub primary foreign sort partition property websocket cache map dict no has is use without
"""
_PUBLIC_BEFORE = frozenset(_PUBLIC_BEFORE_WORDS.split())
_MAKING_WORDS = """
    derive derived expand extract create generate make compute calc calculate encode decode escape unescape wrap unwrap
    encrypt decrypt sign import export convert
"""
_MAKING = frozenset(_MAKING_WORDS.split())
OF_A_KEY = re.compile(r"(?i)(?:(?<![a-z])|(?-i:(?<=[a-z])(?=K)))keys?(?:_|(?-i:(?=[A-Z0-9]))|\Z)")
"""A key of a cipher or a table: its hexadecimal value is a vector or a digest, if nothing else says that it is a secret."""
_WORD = re.compile(r"[A-Z]+(?![a-zß-ÿ])|[A-ZÀ-Þ]?[a-zß-ÿĀ-ſ]+|[0-9]+|[^\W\d_a-zA-Z]+")


@lru_cache(maxsize=4096)
def name_strength(name: str) -> NameStrength:
    """Return what a name says. The last word of a secret counts, if what follows does not make it something else."""
    words = [word.lower() for word in _WORD.findall(name)]
    for index in range(len(words) - 1, -1, -1):
        strength = _strength_of_word(words, index)
        if strength:
            after = words[index + 1 :]
            if any(word in _OTHER_AFTER for word in after):
                return NameStrength.NONE
            is_harmless = all(word in _HARMLESS_AFTER or word.isdigit() for word in after)
            return strength if is_harmless else min(strength, NameStrength.FAIR)
    return NameStrength.NONE


def _strength_of_word(words: list[str], index: int) -> NameStrength:
    word, before = words[index], words[index - 1] if index else ""
    if before == "key" and index > 1 and words[index - 2] in _PUBLIC_BEFORE:
        return NameStrength.NONE
    if word in _SURE or word.endswith(_SURE_ENDS) or "".join(words[max(0, index - 1) : index + 1]) in _SURE:
        return NameStrength.SURE if before not in _PUBLIC_BEFORE else NameStrength.NONE
    if word == "passe" and before == "de":
        return NameStrength.SURE
    if (word == "key" and before in _SURE_BEFORE_KEY) or (word == "token" and before in _SURE_BEFORE_TOKEN):
        return NameStrength.SURE
    if (word == "pass" and before in _SURE_BEFORE_PASS) or (word == "phrase" and before == "pass"):
        return NameStrength.SURE
    if any(word.endswith(end) and word.removesuffix(end) in _SURE_BEFORE_PASS for end in _PASS_ENDS):
        return NameStrength.SURE
    if word.endswith("psk") and word.removesuffix("psk") in _BEFORE_PSK:
        return NameStrength.FAIR
    return NameStrength.LIKELY if word in _LIKELY and before not in _PUBLIC_BEFORE else NameStrength.NONE


@lru_cache(maxsize=4096)
def is_made(name: str) -> bool:
    """Return whether a function's name says that it makes a secret or reads one written otherwise: `derive_secret`."""
    return not _MAKING.isdisjoint(word.lower() for word in _WORD.findall(name))


@lru_cache(maxsize=4096)
def first_word(name: str) -> str:
    """Return the first word of a name, in small letters."""
    word = _WORD.search(name.rpartition(".")[2].rpartition("->")[2])
    return word[0].lower() if word else ""
