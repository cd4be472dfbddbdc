"""Prose passwords: sentences of many languages that tell a password; those that only speak of one stay."""

import pytest

from pipeline.stages.normalize.scrub.credentials.text_credentials import find_text_credentials

VALUE = "copper" + "1522"


@pytest.mark.parametrize(
    "line",
    [
        "// the password is @",
        "// login with admin / @",
        "// Use @ as the password of the box",
        "// Le mot de passe est @",
        "// Das Kennwort lautet @",
        "// la contraseña es @",
        "// a senha é @",
        "// hasło: @",
        "// пароль: @",
        "// パスワードは @ です",
        "// 密码：@",
    ],
)
def test_a_told_password_is_found(line: str) -> None:
    text = line.replace("@", VALUE)
    assert VALUE in {text[found.start : found.end] for found in find_text_credentials(text)}


LETTERS, MIXED, SIGNS = "jatRLEKr" + "qBiVmGex", "oU0MMLdQPn" + "26AhPe2WEt", "QAKYyd((P8X" + "w2EyPh(tD"


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("// commit: new password @ for db", LETTERS),
        ("// commit: new password @ for db", MIXED),
        ("// commit: secret key @ rotated", MIXED),
        ("// commit: Rotate the API key @", LETTERS),
        ("// commit: token=@", LETTERS),
        ("// commit: PASS=@", LETTERS),
        ("// commit: DB_PASSWORD=@", SIGNS),
        ("# export DB_PASSWORD=@", SIGNS),
        ("// commit: The admin password is @", "jtOdOhx8" + "nsYZ4hif3Zxa"),
        ("// commit: root password was @", "eZzavof" + "zBEob"),
    ],
)
def test_a_secret_that_the_subject_of_a_change_tells_is_found(line: str, value: str) -> None:
    text = line.replace("@", value)
    assert value in {text[found.start : found.end] for found in find_text_credentials(text)}


@pytest.mark.parametrize(
    "line",
    [
        "// pass=pass1+pass2*3",
        "// token=*tok_ptr2",
        "// token=TOKEN_V2|TOKEN_X3",
        "KEY=KEY_F12|MOD_1",
        " * key=h1*0x9E3779B9+h2",
        " * PASS=0x7fff_ffff",
        " * key=[a-z0-9]+",
        " * key=Ctrl+Alt+F1",
        "// pass=LLVM-O2",
        "// the new password SCRAM-SHA-256 verifier",
        "// a new password MySQL41Hash, as of 4.1",
        "// the current password PKCS12Store",
        "// previous passwd crypt_blowfish2 format",
        "// current pwd src/lib64/x",
        "// old pw getPwUidOrDie",
        "// the new password hashPwFmToDbRow",
        "// token=parser.tokens[index2];",
        "// key=hash_of(buffer2)",
        "# KEY=0123456789abcdef0123456789abcdef",
        "// pass=pass2_loop_unroll",
        "// commit: use the secret key Ed25519PrivateKey of the peer",
        "// commit: Add the new password getPasswordFromUser dialog",
        "// commit: Rename auth token to_string2",
        "// the password is stored hashed (bcrypt, cost 12)",
        "// Le mot de passe est requis pour SHA-256",
        "// Kennwort: mindestens 8 Zeichen",
        "// パスワードは8文字以上です",
        "// log in as root first, then run step2.sh",
    ],
)
def test_sentences_about_passwords_stay(line: str) -> None:
    assert list(find_text_credentials(line)) == []
