"""Random literals: one that stands alone is a secret, a table of them is data, and a digest beside its name is none."""

import hashlib
import random
import string

from pipeline.stages.normalize.scrub.credentials.random_literals import (
    LeftBecause,
    find_random_literals,
    left_literals,
)

LETTERS = string.ascii_letters + string.digits


def value(seed: int, length: int = 40) -> str:
    return "".join(random.Random(seed).choices(LETTERS, k=length))


def test_one_that_stands_alone_is_found() -> None:
    line = f'auto login = connect("{value(1)}");'
    assert [line[found.start : found.end] for found in find_random_literals(line)] == [value(1)]


def test_a_table_of_them_stays() -> None:
    text = "const char* table[] = {\n" + "".join(f'    "{value(seed)}",\n' for seed in range(40)) + "};\n"
    assert list(find_random_literals(text)) == []
    assert list(left_literals(text)) == [(line, LeftBecause.ONE_OF_MANY) for line in range(2, 42)]


def test_the_digest_of_nothing_is_left_and_counted() -> None:
    text = f'int a;\nauto empty = "{hashlib.sha256(b"").hexdigest()}";\n'
    assert list(left_literals(text)) == [(2, LeftBecause.HEXADECIMAL)]


def test_numbers_of_public_keys_and_known_forms_stay() -> None:
    digits = "".join(random.Random(5).choices("0123456789abcdef", k=32))
    lines = [f'"x":"{value(1)}","y":"{value(2)}"', f"id: 'system_{digits}'", f'auto good_sig = "{value(3)}";']
    lines += [f'const char* names = "Err{"JanFebMarAprMayJunJulAugSep"}";', f'k("A{digits[:16]}0BBF09h");']
    assert [line for line in lines if list(find_random_literals(line))] == []


def test_numbers_of_a_private_json_web_key_are_found() -> None:
    line = "".join(f'"{name}":"{value(seed)}",' for seed, name in enumerate(("n", "d", "p", "q", "dp", "dq", "qi")))
    found = {each.value for each in find_random_literals(line)}
    assert found >= {value(1), value(4), value(5), value(6)}
    assert value(0) not in found


def test_an_alphabet_and_words_stay() -> None:
    assert (
        list(find_random_literals(f'auto a = "{LETTERS}";\nauto b = "thisIsAnOrdinaryIdentifierOfManyWords";\n')) == []
    )
