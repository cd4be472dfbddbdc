"""Password values: whether a text in the place of a password is one, or a placeholder, a name, a sentence, a format, a path.

Left on purpose: `password`, `changeme`, `secret`, `test` and other words that documentation puts in the place of a password, and
whatever is shorter than four characters.
"""

import base64
import binascii
import hashlib
import re

from pipeline.stages.normalize.scrub.credential_signs.interface_names import is_type_name
from pipeline.stages.normalize.scrub.random_text import is_in_order, is_random, is_unlike_words

_MIN_LENGTH, _MAX_LENGTH = 4, 512
_DUMMIES_WORDS = """
    password passwd passwort passphrase passcode pass pwd psw pw secret token key apikey credential credentials
    changeme change_me change-me changeit none null nil nullptr undefined unknown default empty true false test tests
    testing foo bar baz foobar example sample dummy fake mock placeholder redacted removed hidden masked user username
    admin root guest string text value str void auto char const optional required enabled disabled basic bearer digest
    plain plaintext login auth creds cred public private todo fixme tbd n/a ascii utf8 utf-8 utf-16 utf16 hex base64
    json xml yaml name id type size length file path hash md5 sha1 sha256 sha512 password1 passphrase1 mypassword
    yourpassword your_password your-password secretpassword supersecret mysecret my_secret somepassword some_password
    wrong right correct incorrect invalid valid
    kennwort contraseña contrasena clave senha wachtwoord lösenord passord adgangskode salasana hasło heslo jelszó parola şifre
    geslo lozinka пароль лозинка κωδικός 密码 密碼 口令 パスワード 비밀번호 암호 anonymous include omit same-origin
    latin1 latin-1 aws4-hmac-sha256
    pass123 asdf qwerty 1234 12345 123456 xxxx abcd abc123 pass1 pass2 user1 test123 testpassword
"""
_DUMMIES = frozenset(_DUMMIES_WORDS.split())
UNSPACED = "\u0e00-\u0eff\u1780-\u17ff\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef"
"""Letters and signs, in a class of an expression, of scripts whose sentences have no blanks or join their endings to a word: no
password is typed in them.
"""
_OF_UNSPACED = re.compile(f"[{UNSPACED}]")
_DIGESTS_OF_NOTHING = frozenset(
    hashlib.new(name, usedforsecurity=False).hexdigest()
    for name in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")
)
_TEMPLATE = re.compile(
    r"\A<[^>]*>\Z|<redacted-|\A(?:\{[A-Z_]+\})+\Z|\A%[0-9]|\$\{|\$\(|\A\$[A-Za-z_]|\{\{|\A\{[^}]*\}\Z"
    r"|\A%\w+%?\Z|%[-+#]?[0-9]{1,3}\Z|%[-+0-9.*l]{0,6}[sdiuxXcplf](?![a-zA-Z0-9])|\A@[A-Za-z_]+@?\Z"
    r"|\A\[[^\]]*\]+\Z|\A\([^)]*\)\Z|\A%[({]|\A(.)\1*\Z|[xX*]{4,}|\.\.\.|…"
    r"|(?:your|change[_-]?(?:me|this|it)|example|placeholder|dummy|redacted|replace[_-]?|insert|[_-]here\b|<|(?<![a-z])to-?do(?![a-z]))",
    re.IGNORECASE,
)
_SECRET_WORD = re.compile(
    r"pass(?:word|wd|phrase|wort|code)?|pwd|secret|token|(?<!mon)(?<!tur)(?<!don)key|credential|auth|login|contrase|kennwort|user",
    re.IGNORECASE,
)
_NAME_LIKE = re.compile(r"[A-Za-z_][A-Za-z]*(?:(?:[_.:/ -]|::|->)+[A-Za-z]+)*[:=]?")
_CONSTANT = re.compile(r"(?<![A-Z0-9])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_CAMEL = re.compile(r"[a-z]+(?:[A-Z][a-z]+)+|(?:[A-Z][a-z]+){2,}")
_WORD_OF_NAME = re.compile(r"[A-Z][a-z]{2,}")
_MIN_WORDS_OF_NAME = 4
_NOT_A_VALUE = re.compile(
    r"\A(?:[./~\\]|[A-Za-z]:[\\/]|--?[A-Za-z])|://|\\[wdsSWDb]|\(\?|\.\*|\[\^|[:(,]\Z|\A[\w-]{1,20}=\Z|\A\W+\Z"
    r"|\A[\d.,:\s]{0,3}\Z|\A[0-9.]*:[0-9:.]+(?:/(?:tcp|udp))?\Z|\A[0-9]+(?:\.[0-9]+){2,}\Z|\A[;&)]|[;&]\w+=\Z|:[a-z]{2,12}=|\A\w+=[\w.]*;|[A-Za-z]%20"
    r"|\A0x[0-9a-fA-F]{1,16}[uUlL]{0,3}\Z|\A(?:19|20)[0-9]{2}(?:-[0-9]{2}){0,2}\Z"
    r"|\A[\w.-]{1,40}/[0-9]+(?:\.[0-9]+)+\Z|\A[A-Za-z]{4,20}=[0-9]\Z"
    r"|\.(?:txt|pem|key|crt|cer|json|xml|ini|cfg|conf|h|c|cc|cpp|hpp|py|js|html?|md|ya?ml|toml|log|dat|bin|db"
    r"|so|dll|exe|p12|pfx|jks|kdbx|json5|v[0-9])\Z",
    re.IGNORECASE,
)
_FUNCTION_WORD = re.compile(
    r"(?<![a-z])(?:the|is|are|was|not|must|be|to|of|for|and|or|in|an?|enter|please|your|invalid|incorrect"
    r"|wrong|failed|fail|missing|"
    r"required|cannot|can|with|from|no|new|old|type|this|that|has|have|if|on|by|at|as|it|you|don|does|should|will|bad)(?![a-z])",
    re.IGNORECASE,
)
HEXADECIMAL = re.compile(r"(?i)(?:0x)?[0-9a-f]+")
UUID = re.compile(r"(?i)[{]?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}[}]?")
_ALGORITHMS_WORDS = """
    aes des tdes sha shake hmac md cmac gmac rsa dsa ecdsa ecdh ecdhe eddsa ed x curve pkcs pss oaep chacha salsa xsalsa poly blake
    b
    argon scrypt bcrypt pbkdf camellia aria sm gost streebog whirlpool ripemd crc secp sect brainpool brainpoolp nist p k r v t
    kem
    asn be le xoauth anull enull dss
    ml mlkem mldsa kyber dilithium tls ssl oauth http ipv utf iso rfc base rc cbc gcm ccm ctr ecb ofb cfb xts siv mgf emsa eme raw
    kdf hkdf ede ocb digest scram sasl cram ntlm gssapi
    rijndael blowfish twofish arcfour umac sntrup etm
    crypt ssha krb ntlmv
    with aws mongodb null anon x509 srv sip siphash murmur xxh fnv aead psk dhe ffdhe modp group wpa wep
"""
_ALGORITHMS = frozenset(_ALGORITHMS_WORDS.split())
_BESIDE_ALGORITHM = re.compile(
    r"(?i)\A(?:caching|auth)_|[_-](?:password|plugin|encoded|hashed|encrypted|digest)\Z|(?<=argon2)id\Z"
)
"""Words before or after an algorithm in the name of a way to log in or to write a password."""
_NUMBERED_WORD = re.compile(r"(?:user|token|secret|key|auth|cred|pwd|field|param|value|name|item)[0-9]{1,3}")
_ABBREVIATIONS = _ALGORITHMS.union(
    ("mysql", "sqlite", "pgsql", "mqtt", "getpwuid", "getpwnam", "libcurl", "cygwin", "libxml")
)
_ALPHABETIC = re.compile(r"[A-Za-z]+")
_CAPITALIZED = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LONG_NUMBER = re.compile(r"[0-9]{20,}")
_CALL = re.compile(r"[A-Za-z][\w-]*\([\w, -]*\)")
_WORD_AND_NUMBER = re.compile(r"(?!u?int|float|double|aarch|utf)[A-Za-z]{4,}@?[0-9]{2,6}[!?#*@$%]?")
_JUMBLED = re.compile(r"(?=[\w-]*[a-z][A-Z])(?=[\w-]*[0-9])[\w-]{8,40}")
"""Letters of both cases without the breaks of words, and digits."""
_LEET = re.compile(r"[A-Za-z]{1,12}[013457]{1,3}[a-z]{2,12}")
"""A word with digits that look like its letters."""
_LEET_WORD = re.compile(r"[A-Za-z]{2,12}[013457]{1,3}[a-z]{1,12}|[A-Za-z][013457]{1,3}[a-z]{2,12}")
"""Such a word beside others, which may end in one letter."""
_COUNTED_NAME = re.compile(r"[A-Za-z]{1,24}(?:[-_. ][A-Za-z]{1,24})?[-_. ]?[0-9]{1,4}")
"""One or two words and a number, as the second of several things is named."""
_OF_EXPRESSION = re.compile(r"[\[\](){}+*?|]|\A\w:|\\\\[^\\]*\\\\|\A\\\\|\\\\\Z")
_SPECIAL = re.compile(r"[!@#$%^&*?]")
_ESCAPE_OF_URL = re.compile("%(?:[0-9A-Fa-f]{2}|[0-9A-Fa-f]?\\Z)")
_EXCLAMATION = re.compile(r"[!?]*[A-Z]?[a-z]+[!?]+")
_NUMBERED_NAME = re.compile(r"[a-z]+[0-9]{0,4}(?:[-_:](?:[a-z]+[0-9]{0,4}|[0-9]{1,2})){2,}|[0-9]{1,4}-[a-z]+")
"""Three words and more of small letters, each perhaps with a number after it, as options and metrics are named."""
PHRASE_AND_NUMBER = re.compile(r"[a-z]{4,12}-[a-z]{4,12}-[0-9]{2,4}")
"""Two words and a number of two digits or more, with hyphens between them."""
_PARTS_OF_PAGE = re.compile(
    r"form|input|field|button|group|label|text|panel|page|col(?:umn)?\b|row\b|table|item|test|level|color|version"
    r"|type"
)
"""Words of names in pages and tables, which have numbers too."""
_LEET_AND_NUMBER = re.compile(r"[A-Za-z]{1,8}(?:[013457][A-Za-z]{1,8}){1,4}[_-]?[0-9]{2,6}")
_JUMBLE = re.compile(r"[A-Za-z][A-Za-z0-9-]{7,40}")
_NUMBER = re.compile(r"[0-9]{6,16}")
_PASSPHRASE = re.compile(r"[a-z]{3,12}(?:-[a-z]{3,12}){2,7}")
_LETTERS_AND_DIGITS = re.compile(r"[A-Za-z]+|[0-9]+")
_SIGNS = re.compile(r"[\W_]+")
_MIN_SWITCHES, _MIN_REPEATED, _MIN_LEET, _MIN_CAPITAL = 3, 8, 8, 8
_MAX_WORDS = 12
_RUN_OF_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
"""A word of a name in code, or an abbreviation in one."""
_MIN_KEY, _MIN_WORDS_OF_DUMMIES = 10, 2
_WORD_OF_VALUE = re.compile(r"\w{8,}")
_MIN_LETTERS_ALONE = 16
"""Letters of a word of nothing else that looks random: names in code whose runs are as short have fewer."""
_CODE_OF_VALUE = re.compile(r"->|::|[;,&]|\w[(\[.]")
_MIN_RUNS, _MAX_RUN, _MAX_RUN_OF_A_JUMBLE = 4, 2.5, 3
"""Runs of a word of mixed letters at least, and letters of each on average: of 166,000 names in code 3 of 1,000 have so few."""


def is_given_password(value: str) -> bool:
    """Return whether a value is a password, given that its name says so: any value not known to be a placeholder or a word."""
    value = value.strip("\"'")
    if not is_possible(value):
        return False
    if any(character.isspace() for character in value):
        return _is_passphrase(value)
    is_name = _NAME_LIKE.fullmatch(value) or _CAMEL.fullmatch(value) or is_name_of_secret(value.rstrip("0123456789_"))
    return not (is_name and _SECRET_WORD.search(value))


def is_passed_password(value: str) -> bool:
    """Return whether a value that a call gets beside a password's name is one: names, words and UUIDs are other arguments."""
    if is_jumble(value):
        return is_given_password(value)
    is_numbered = _NUMBERED_NAME.fullmatch(value) and not is_phrase_with_number(value)
    is_other = value.isdigit() or _NAME_LIKE.fullmatch(value) or UUID.fullmatch(value) or is_numbered
    has_words = len(_WORD_OF_NAME.findall(value)) >= _MIN_WORDS_OF_NAME
    is_name = has_words or _CAMEL.fullmatch(value.rstrip("0123456789")) is not None
    names_secret = is_name and _SECRET_WORD.search(value) is not None
    return (
        is_given_password(value)
        and not (is_other or names_secret)
        and not any(character.isspace() for character in value)
    )


def is_named_password(value: str) -> bool:
    """Return whether a value that stands alone after a password's name is one, a number and words with hyphens among them."""
    words = value.split("-") if _PASSPHRASE.fullmatch(value) and not _FUNCTION_WORD.search(value) else ()
    is_phrase = len(words) > len(_DUMMIES.intersection(words)) + 1
    if _NUMBER.fullmatch(value) or is_phrase:
        return is_given_password(value) and not is_name_of_secret(value)
    return is_passed_password(value)


def is_jumble(value: str) -> bool:
    """Return whether a value is made of letters, perhaps with digits, that are those of no words."""
    words = _ALPHABETIC.sub(lambda word: "" if word[0].lower() in _ABBREVIATIONS else word[0], value)
    return _JUMBLE.fullmatch(value) is not None and is_unlike_words(words)


def looks_fair(value: str) -> bool:
    """Return whether a value with digits and letters, or of no words, is one that a call would get as a password."""
    is_mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return is_passed_password(value) and (is_mixed or is_jumble(value))


def is_counted_name(value: str) -> bool:
    """Return whether a value is a word or two with a number after them: `group-7`."""
    return _COUNTED_NAME.fullmatch(value) is not None


def is_phrase_with_number(value: str) -> bool:
    """Return whether a value is two words and a number of two digits or more with hyphens, and no name of a page or a secret."""
    is_phrase = PHRASE_AND_NUMBER.fullmatch(value) is not None
    is_name = _PARTS_OF_PAGE.search(value) or _SECRET_WORD.search(value) or _FUNCTION_WORD.search(value)
    return is_phrase and not is_name and _ALGORITHMS.isdisjoint(value.split("-"))


def is_leet_with_number(value: str) -> bool:
    """Return whether a value is a word in which digits look like its letters, with a number after it: `v3lv3t_8299`."""
    return _LEET_AND_NUMBER.fullmatch(value) is not None


def is_name_in_code(value: str) -> bool:
    """Return whether a value is a name of several words, as code has them: `signal_x2`."""
    return "_" in value and value.isidentifier()


def looks_like_password_of_account(value: str) -> bool:
    """Return whether a value after a user's name looks like the password of it, and not like a role, a group or a title: random, or
    with a word in which digits stand for letters.
    """
    is_leet = any(_LEET_WORD.fullmatch(word) and word.lower() not in _ABBREVIATIONS for word in _SIGNS.split(value))
    return looks_like_password(value) or (is_leet and len(value) >= _MIN_LEET and looks_fair(value))


def is_told_password(value: str) -> bool:
    """Return whether a word of a sentence that tells a password is one: with a digit or a symbol inside, as no word has."""
    return looks_fair(value.rstrip(".:!?*/")) or looks_like_password(value)


def is_of_mixed_letters(value: str) -> bool:
    """Return whether a word of a sentence is of small and large letters in turns, in shorter runs than names in code have."""
    word = value.rstrip(".:!?*/")
    runs = _RUN_OF_NAME.findall(word)
    if not (word.isascii() and word.isalpha() and len(runs) >= _MIN_RUNS):
        return False
    mean = len(word) / len(runs)
    return mean < _MAX_RUN or (mean <= _MAX_RUN_OF_A_JUMBLE and is_jumble(word))


def is_key_of_sentence(value: str) -> bool:
    """Return whether a word after that for a key, without a verb, is one: of no words, and no number."""
    word = value.rstrip(".:!?*/,")
    is_key = looks_like_password(word) or (_holds_random_word(word) and is_passed_password(word))
    return len(word) >= _MIN_KEY and is_key and HEXADECIMAL.fullmatch(word) is None


def is_assigned_password(value: str) -> bool:
    """Return whether a value that is given to a name, alone on a line, is a password and no expression of code."""
    is_code = _CODE_OF_VALUE.search(value) is not None and all(
        value.count(a) == value.count(b) for a, b in ("()", "[]")
    )
    return looks_fair(value) and not is_code and _holds_random_word(value) and HEXADECIMAL.fullmatch(value) is None


def _holds_random_word(value: str) -> bool:
    """Return whether a value, or a word in it, looks random: names and numbers that signs of code join do not."""
    return any(
        looks_like_password(word) or (is_jumble(word) and (not word.isalpha() or len(word) >= _MIN_LETTERS_ALONE))
        for word in (value, *_WORD_OF_VALUE.findall(value))
    )


def looks_like_password(value: str) -> bool:
    """Return whether a value looks like a password by itself: random, or letters, digits and symbols as no name has them."""
    if value.endswith("=") and holds_login(value):
        return True  # with as few characters as a name and the sign after it
    if not is_possible(value) or any(character.isspace() for character in value):
        return False
    if is_random(value) or holds_login(value):
        return True
    runs = _LETTERS_AND_DIGITS.findall(value)
    num_kinds = sum((value != value.lower(), value != value.upper(), any(map(str.isdigit, value))))
    has_special = _SPECIAL.search(_ESCAPE_OF_URL.sub("", value).rstrip("*")) is not None and not _EXCLAMATION.fullmatch(
        value
    )
    if has_special and num_kinds >= 2 and len(value) >= 8:
        return _SPECIAL.sub("", value).replace("_", "").isalnum() and not value.startswith(("&", "*", "@"))
    is_mixed = len(runs) > _MIN_SWITCHES and len(value) >= 8 and len("".join(runs)) == len(value)
    return is_mixed and num_kinds >= 3


def is_defined_password(value: str) -> bool:
    """Return whether a value that a macro stands for is a password: one word in capitals is a constant of an interface."""
    return is_given_password(value) and not (value.isalpha() and value.isupper())


def looks_like_password_in_call(value: str) -> bool:
    """Return whether an argument of a call that is named after passing looks like a password: no number, path or escape."""
    return (
        looks_like_password(value)
        and HEXADECIMAL.fullmatch(value) is None
        and re.search(r"[/%]|\.[a-z]{1,4}\Z", value) is None
    )


def looks_like_password_compared(value: str) -> bool:
    """Return whether a value that `pass` is compared with looks like a password: passes of compilers have one digit at most."""
    has_digits = sum(map(str.isdigit, value)) > 1 and len(value) >= _MIN_CAPITAL
    return looks_like_password_of_pass(value) or (has_digits and looks_fair_in_test(value))


def looks_like_password_of_login(value: str) -> bool:
    """Return whether a value beside the name of a login looks like a password, a word with a number among them."""
    if looks_like_password(value) or not is_possible(value):
        return looks_like_password(value)
    is_jumbled = _JUMBLED.fullmatch(value) is not None and len(_LETTERS_AND_DIGITS.findall(value)) > _MIN_SWITCHES
    is_leet = _LEET.fullmatch(value) is not None and len(value) >= _MIN_LEET
    is_of_no_words = is_jumble(value) and is_passed_password(value)
    return is_jumbled or is_leet or is_of_no_words or _WORD_AND_NUMBER.fullmatch(value) is not None


def looks_like_password_of_pass(value: str) -> bool:
    """Return whether a value beside the name `pass` looks like a password: passes of compilers have names in small letters."""
    if looks_like_password_of_login(value) or value == value.lower() or len(value) < _MIN_CAPITAL:
        return looks_like_password_of_login(value)
    is_numbered = sum(map(str.isdigit, value)) > 1 and looks_fair(value)
    return is_numbered or (_SPECIAL.search(value) is not None and is_passed_password(value))


def looks_fair_in_test(value: str) -> bool:
    """Return whether a value with digits and letters is one of a login, and no hexadecimal vector."""
    return looks_fair(value) and HEXADECIMAL.fullmatch(value) is None


def looks_like_password_in_test(value: str) -> bool:
    """Return whether a value looks like a password beside a cipher's vectors, which are hexadecimal numbers."""
    return looks_like_password(value) and HEXADECIMAL.fullmatch(value) is None


def holds_login(value: str) -> bool:
    """Return whether base64 text holds a user and a password."""
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return False
    user, _, password = decoded.partition(":")
    return decoded.isprintable() and bool(user) and is_possible(password)


def is_text_in_base64(value: str) -> bool:
    """Return whether a value is printable text in base64: of random bytes nearly none is."""
    try:
        return base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode("ascii").isprintable()
    except (binascii.Error, ValueError):
        return False


def looks_like_key(value: str) -> bool:
    """Return whether the value of a header that says so is a key: letters and digits, or a UUID."""
    return is_possible(value) and any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def is_possible(value: str) -> bool:
    """Return whether a value may be a password: no placeholder, format, path, constant or word of documentation."""
    return (
        _MIN_LENGTH <= len(value) <= _MAX_LENGTH
        and value.strip().lower() not in _DUMMIES
        and _TEMPLATE.search(value) is None
        and _NOT_A_VALUE.search(value) is None
        and _CONSTANT.fullmatch(value) is None
        and _CALL.fullmatch(value) is None
        and _LONG_NUMBER.fullmatch(value) is None
        and _NUMBERED_WORD.fullmatch(value) is None
        and value.lower() not in _DIGESTS_OF_NOTHING
        and not is_algorithm(value)
        and not is_type_name(value)
        and not is_in_order(value)
        and "\n" not in value
        and (value.isascii() or _OF_UNSPACED.search(value) is None)
        and not _is_of_dummies(value)
    )


def _is_of_dummies(value: str) -> bool:
    """Return whether a value is made of such words with signs between them, or of one again and again, cut at both ends."""
    words = [word for word in _SIGNS.split(value.lower()) if word]
    is_repeated = len(words) > _MIN_WORDS_OF_DUMMIES and len(set(words[1:-1])) == 1 and words[1] in _DUMMIES
    return is_repeated or _DUMMIES.issuperset(words)


def without_escapes(value: str) -> str:
    """Return a value without backslashes that are written twice, unless they are those of a path or an expression."""
    is_plain = "\\\\" in value and not _OF_EXPRESSION.search(value)
    return value.replace("\\\\", "") if is_plain else value


def is_name_of_secret(value: str) -> bool:
    """Return whether a value is a name of several words, one of which is for a secret: `secret_access_key`."""
    return (
        ("_" in value or "-" in value)
        and _NAME_LIKE.fullmatch(value) is not None
        and _SECRET_WORD.search(value) is not None
    )


def is_sibling(name: str, value: str) -> bool:
    """Return whether a value begins with the same word as a name, up to an underscore: both are names of one interface."""
    first = name.partition("_")[0]
    return 3 <= len(first) < len(name) and value.startswith(f"{first}_")


def repeats_name(name: str, value: str) -> bool:
    """Return whether a value is the end of its name in other characters, as the values of tables of names are."""
    name, value = (_SIGNS.sub("", each).lower() for each in (name, value))
    return len(value) >= _MIN_REPEATED and name.endswith(value)


def is_algorithm(value: str) -> bool:
    """Return whether a value is made of names of algorithms and formats, such as `AES-256/CBC` and `HmacSHA256`."""
    value = _BESIDE_ALGORITHM.sub("", value)
    readings = (_ALPHABETIC.findall(value.lower()), [word.lower() for word in _CAPITALIZED.findall(value)])
    return any(words and max(map(len, words)) > 1 and _ALGORITHMS.issuperset(words) for words in readings)


def _is_passphrase(value: str) -> bool:
    """Return whether words are a passphrase and no sentence: no function word, no mention of a secret, no title."""
    is_title = value[0].isupper() and value[1:].islower()
    is_sentence = (
        is_title or _FUNCTION_WORD.search(value) or _SECRET_WORD.search(value) or value.endswith((".", ":", "?"))
    )
    return not is_sentence and len(value.split()) <= _MAX_WORDS
