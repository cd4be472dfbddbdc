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


@pytest.mark.parametrize(
    "line",
    [
        "// the password is stored hashed (bcrypt, cost 12)",
        "// Le mot de passe est requis pour SHA-256",
        "// Kennwort: mindestens 8 Zeichen",
        "// パスワードは8文字以上です",
        "// log in as root first, then run step2.sh",
    ],
)
def test_sentences_about_passwords_stay(line: str) -> None:
    assert list(find_text_credentials(line)) == []
