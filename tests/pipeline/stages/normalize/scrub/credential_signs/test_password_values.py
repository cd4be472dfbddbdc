"""Password values: what can be a password, given a name that says so or by its looks alone."""

import base64

import pytest

from pipeline.stages.normalize.scrub.credential_signs.password_values import (
    holds_login,
    is_counted_name,
    is_given_password,
    is_leet_with_number,
    is_name_in_code,
    is_passed_password,
    is_phrase_with_number,
    is_possible,
    looks_like_password,
    looks_like_password_of_account,
    looks_like_password_of_login,
    repeats_name,
)


@pytest.mark.parametrize("value", ["Tr0ub4dor&3", "kV7x" + "Qp2mZ9wL", "a8F!" + "k2Lq"])
def test_letters_digits_and_signs_in_turns_look_like_a_password(value: str) -> None:
    assert looks_like_password(value)
    assert is_given_password(value)


@pytest.mark.parametrize("value", ["", "****", "%s", "${PASSWORD}", "{{password}}", "<password>", "your-password"])
def test_placeholders_are_none(value: str) -> None:
    assert not is_possible(value)


@pytest.mark.parametrize(
    "value",
    [
        "请输入密码",
        "请输入8位密码",
        "パスワードが違います",
        "비밀번호를입력8",
        "password:token",
        "пароль:пароль:паро",
        "密码:",
    ],
)
def test_sentences_without_blanks_and_words_for_a_password_are_none(value: str) -> None:
    assert not is_possible(value)


@pytest.mark.parametrize("value", ["hello", "main_window", "getPassword", "version-1.2", "a sentence of words"])
def test_names_and_words_do_not_look_like_one(value: str) -> None:
    assert not looks_like_password(value)


def test_a_login_in_base64_is_recognized() -> None:
    assert holds_login(base64.b64encode(b"ada:k2Lq" + b"81xz").decode())
    assert not holds_login(base64.b64encode(b"a picture").decode())
    assert not holds_login("no base64!")


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ("tr33house", True),
        ("kJ8s-2hfQ", True),
        ("orange77", True),
        ("loop-unroll", False),
        ("sha256sum", False),
        ("x86opt", False),
    ],
)
def test_beside_a_login_words_with_digits_for_letters_count(value: str, is_one: bool) -> None:
    assert looks_like_password_of_login(value) == is_one


def test_a_value_that_is_its_name_in_other_signs_is_no_password() -> None:
    assert repeats_name("SN_id_it_signKeyPairTypes", "id-it-signKeyPairTypes")
    assert not repeats_name("DB_PASSWORD", "word")
    assert not repeats_name("password", "k2Lq81xz")


@pytest.mark.parametrize("value", ["group-7", "room 1001", "gbuffer0", "render-pass3"])
def test_words_with_a_number_after_them_are_counted(value: str) -> None:
    assert is_counted_name(value)
    assert not is_counted_name("copper" + "_1522b")


def test_a_password_of_an_account_has_digits_for_letters_or_is_random() -> None:
    assert looks_like_password_of_account("Gr33n" + ".Apples")
    assert looks_like_password_of_account("kV7x" + "Qp2mZ9wL")
    assert not any(map(looks_like_password_of_account, ("group-12", "uint64_t", "bob2.png", "Service account")))


def test_names_in_code_have_underscores() -> None:
    assert is_name_in_code("signal_x2")
    assert not is_name_in_code("copper-1522")


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ("winter-maple-72", True),
        ("harbor-falcon-4711", True),
        ("login-form-12", False),
        ("winter-maple-7", False),
        ("input-group-12", False),
        ("from-left-12", False),
        ("secret-maple-12", False),
    ],
)
def test_two_words_and_a_number_are_passed_as_a_password_if_they_name_no_part_of_a_page(
    value: str, is_one: bool
) -> None:
    assert is_phrase_with_number(value) == is_one
    assert is_passed_password(value) == is_one


def test_a_word_with_digits_for_letters_and_a_number_is_no_word_and_number() -> None:
    assert is_leet_with_number("v3lv3t_" + "8299")
    assert is_leet_with_number("c4ctus" + "923")
    assert not any(map(is_leet_with_number, ["winter72", "sha256sum", "x86_64", "v3lv3t_8"]))


def test_a_key_within_another_word_names_no_secret() -> None:
    assert is_given_password("CopperMonkey")
    assert not is_given_password("CopperKey")
