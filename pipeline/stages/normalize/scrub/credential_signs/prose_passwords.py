"""Prose passwords: expressions of sentences and notes that tell a password, in the languages that comments are written in.

To add a language, add its words for a password to _PASSWORD and, if it says `is` otherwise, to _IS.
"""

import re
from collections.abc import Callable

from pipeline.stages.normalize.scrub.credential_signs.password_names import NAME_PART, name_strength
from pipeline.stages.normalize.scrub.credential_signs.password_values import (
    is_assigned_password,
    is_key_of_sentence,
    is_of_mixed_letters,
    is_told_password,
    looks_like_password,
)

_PASSWORD = (
    r"(?:password|passwd|passphrase|passcode|pass ?word|pwd|pw|pin code|(?:wi-?fi|wlan|wpa2?)[ -]key"
    r"|mots? de passe|mdp|passwort|kennwort"
    r"|zugangswort|contrase(?:ñ|n)a|clave"
    r"|senha|palavra-passe|wachtwoord|parola(?: d'ordine)?|hasło|haslo|heslo|jelszó|salasana|lösenord(?:et)?"
    r"|passord(?:et)?|adgangskode[n]?|geslo|lozinka"
    r"|şifre|sifre|parolă|пароль|пароля|парола|лозинка|κωδικός|συνθηματικό|סיסמה|كلمة (?:المرور|السر)|mật khẩu"
    r"|kata sandi|sandi|รหัสผ่าน|पासवर्ड"
    r"|パスワード|暗証番号|合言葉|密码|密碼|口令|비밀번호|암호)"
)
_IS_SIGN = r"(?:[:=：—–→-]|は|が|是|为|為)"
_IS_WORD = (
    r"(?:is|was|set to|should be|will be|est|sera|ist|lautet|war|heißt|es|será|é|è|jest|to|er|är|on|je|adalah"
    r"|là|это|είναι)(?=[ \t])"
)
_IS = rf"(?:[ \t]{{0,3}}(?![—–→-][^ \t]){_IS_SIGN}|[ \t]{{1,3}}{_IS_WORD})"
_SECRET = r"""[!#-&(-+.\-/-:=?-[\]-_a-~À-ɏ]"""
_VALUE = rf"""(?:\\?["'`«„“「『<]{{0,2}})(?P<value>{_SECRET}{{6,200}})"""
_OF = r"(?:[ \t]+(?!(?:is|was|est|ist|es|to|é|è)\b)[^\W\d][\w@.'’-]{0,24}){0,4}"
TELLING = re.compile(rf"(?i)(?<![\w-]){_PASSWORD}{_OF}{_IS}[ \t]{{0,3}}(?:now[ \t]+)?{_VALUE}")
"""The password is X; le mot de passe est X; パスワードは X."""
USING = re.compile(
    rf"(?i)\b(?:use|using|with|try|enter|type|mit|avec|con|com|utiliser|usar|benutze"
    rf"|verwende)[ \t]+{_VALUE}[\"'`]?[ \t]+(?:as|for|als|como|comme"
    rf"|come)[ \t]+(?:[^\W\d]\w{{0,9}}[ \t]+){{0,2}}{_PASSWORD}"
)
"""Use X as the password."""
_LOGIN = (
    r"(?:log(?:ged)?[ -]?(?:in|on)|sign(?:ed)?[ -]?in|logins?|log[io]ns?|credentials?|creds|accounts?"
    r"|zugangsdaten|identifiants?|credenciales|admin(?:istrator)? user|test user|default user)"
)
LOGGING_IN = re.compile(
    rf"(?i)\b(?!accounts[ \t]+for\b){_LOGIN}\b(?:[ \t]*[:=(]|[ \t]+(?:with|as|is|are|using|by|via|for|to|the|test|server|default"
    rf"|mit|avec|con|com|staging|local)\b){{0,5}}[ \t]*[\"'`]?"
    rf"(?P<user>\w[\w.@+\-]{{1,59}})[\"'`]?[ \t]?[/:|][ \t]?{_VALUE}"
)
"""Log in with admin / X; default login: root:X."""
BESIDE = re.compile(
    rf"(?i)\b(?:user(?:name)?|log(?:ged)?[ -]?in|login|account|as|nutzer|benutzer|utilisateur"
    rf"|usuario)\b[^\n\"]{{0,60}}?[ \t,;(/]{_PASSWORD}[ \t]{{1,3}}{_VALUE}"
)
"""Log in as bob with password X."""
_KIND = r"(?:hard-?coded|default|temp(?:orary)?|initial|master|old|admin|root)"
NAMED_KIND = re.compile(rf"(?i)\b{_KIND}[ \t]+{_PASSWORD}[ \t]{{1,3}}\(?{_VALUE}")
"""The hardcoded password X."""
IN_BRACKETS = re.compile(rf"(?i)\((?:password|passwd|passphrase|pwd|pw)[ \t:=]{{1,3}}{_VALUE}")
"""(password X)."""
WITH_IT = re.compile(rf"(?i)\b(?:with|and|the|using|tried|by|mit|avec|con|com)[ \t]+{_PASSWORD}[ \t]{{1,3}}{_VALUE}")
"""Tried with the password X: no user is named, so that X must look like a password by itself."""
_OF_STATE = r"(?:new|current|previous|prod(?:uction)?|staging|live)[ \t]+(?:pass ?word|passwd|passphrase|passcode)"
_KEY = rf"(?:(?:secret|api|access|auth)[ _-]?(?:key|token)|{_OF_STATE})"
NAMED_KEY = re.compile(rf"(?i)\b{_KEY}[ \t]{{1,3}}{_VALUE}")
"""Rotate the secret key X, new password X for db: what a sentence calls a key or a password, without a verb."""
ASSIGNED_ALONE = re.compile(
    r"\A[ \t]{0,80}(?:/{2,3}|/?\*{1,2}|#|;)?[ \t]{0,8}(?:commit: )?(?:(?:export|set)[ \t]{1,4})?(?P<name>[A-Za-z_][\w.\-]{1,80})="
    r"(?P<value>[^\s\"'`<>=][^\s\"'`<>]{5,200})[ \t]{0,8}(?:\*/)?[ \t]{0,8}\Z"
)
"""NAME=VALUE, alone on a line or as the subject of a change: the value may have any sign."""
_MIXED = r"""[\\"'`«„“「『<]{0,3}(?-i:[A-Za-z]{0,40}[a-z][A-Z])"""
_HELD = r"""[\\"'`«„“「『<]{0,3}[^\s"'<>]*[0-9!#$*]"""
_TELLS = rf"{_PASSWORD}(?:[ \t]+[^\s\"(){{}};]+){{0,4}}"
_MIXED_AFTER = rf"(?i:{_TELLS}(?:[ \t]?:|[ \t]+{_IS_WORD.partition('(?=')[0]})[ \t]+(?:now[ \t]+)?{_MIXED})"
PROSE: tuple[tuple[str, re.Pattern[str], Callable[[str], bool]], ...] = (
    (
        rf"(?i:{_TELLS}(?:[ \t]*{_IS_SIGN}|[ \t]+{_IS_WORD.partition('(?=')[0]}[ \t])[ \t]*(?:now[ \t]+)?{_HELD})",
        TELLING,
        is_told_password,
    ),
    (rf"(?i:[0-9!#$*]\S*[ \t]+(?:as|for|als|como|comme|come)[ \t][^\n]*{_PASSWORD})", USING, is_told_password),
    (rf"(?i:{_LOGIN}[^\n]*[\w.@+\-][\"'`]?[ \t]?[/:|][ \t]?{_HELD})", LOGGING_IN, is_told_password),
    (rf"(?i:[ \t,;(/]{_PASSWORD}[ \t]+{_HELD})", BESIDE, is_told_password),
    (rf"\((?i:password|passwd|passphrase|pwd|pw)[ \t:=]+{_HELD}", IN_BRACKETS, is_told_password),
    (rf"(?i:{_KIND}[ \t]+{_PASSWORD}[ \t]+\(?{_HELD})", NAMED_KIND, is_told_password),
    (rf"(?i:[ \t,;(/]{_PASSWORD}[ \t]+{_HELD})", WITH_IT, looks_like_password),
    (_MIXED_AFTER, TELLING, is_of_mixed_letters),
    (rf"(?i:{_KEY}[ \t]+(?:{_HELD}|{_MIXED}))", NAMED_KEY, is_key_of_sentence),
)
"""Expressions after one that is true of every line with such a sentence, and how the value is judged.

After a verb or a colon, small and large letters alone may be the password too.
"""
OF_ASSIGNMENT = rf"(?i:{NAME_PART})[\w.\-]*=[^\s\"'`<>=]"
"""A condition of lines of ASSIGNED_ALONE."""


def is_assigned_alone(_line: str, match: re.Match[str]) -> bool:
    """Return whether a match of ASSIGNED_ALONE is a password by its name and its value."""
    return bool(name_strength(match["name"])) and is_assigned_password(match["value"])
