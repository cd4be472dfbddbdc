"""Password names: what a name says of its value, whatever its case and its signs."""

import pytest

from pipeline.stages.normalize.scrub.credential_signs.password_names import OF_A_KEY, NameStrength, name_strength

STRENGTHS = {
    "dbPassword": NameStrength.SURE,
    "DB_PASSWORD_": NameStrength.SURE,
    "password_file": NameStrength.NONE,
    "SUDO_PASS": NameStrength.SURE,
    "render_pass": NameStrength.LIKELY,
    "app_key": NameStrength.SURE,
    "public_key": NameStrength.NONE,
    "PublicKeyToken": NameStrength.NONE,
    "publicToken": NameStrength.NONE,
    "STAPSK": NameStrength.FAIR,
    "SecureString": NameStrength.SURE,
    "string": NameStrength.NONE,
    "compass": NameStrength.NONE,
}


@pytest.mark.parametrize(("name", "strength"), STRENGTHS.items())
def test_the_last_word_of_a_secret_and_what_is_beside_it_count(name: str, strength: NameStrength) -> None:
    assert name_strength(name) is strength


@pytest.mark.parametrize(
    ("name", "is_key"), [("aesKey", True), ("key_hex", True), ("monkey", False), ("keyword", False)]
)
def test_a_key_is_a_word_of_its_own(name: str, is_key: bool) -> None:
    assert (OF_A_KEY.search(name) is not None) == is_key
