"""Random literals: one that stands alone is a secret, a table of them is data, and a digest beside its name is none."""

import random
import string

from pipeline.stages.normalize.scrub.credentials.random_literals import find_random_literals

LETTERS = string.ascii_letters + string.digits


def value(seed: int, length: int = 40) -> str:
    return "".join(random.Random(seed).choices(LETTERS, k=length))


def test_one_that_stands_alone_is_found() -> None:
    line = f'auto login = connect("{value(1)}");'
    assert [line[found.start : found.end] for found in find_random_literals(line)] == [value(1)]


def test_a_table_of_them_stays() -> None:
    text = "const char* table[] = {\n" + "".join(f'    "{value(seed)}",\n' for seed in range(40)) + "};\n"
    assert list(find_random_literals(text)) == []


def test_an_alphabet_and_words_stay() -> None:
    assert (
        list(find_random_literals(f'auto a = "{LETTERS}";\nauto b = "thisIsAnOrdinaryIdentifierOfManyWords";\n')) == []
    )
