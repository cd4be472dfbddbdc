"""Comments and literals: the machine code finds what regular expressions find."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.build.recipes import MADE_CORPUS
from pipeline.cpp.blanking_loops import shortened, spaced

CORPUS = MADE_CORPUS.parent
CONTINUED = re.compile(
    rb"//(?:[^\\\n]|\\.)*"
    rb"|/\*.*?(?:\*/|\Z)"
    rb"|R\"([^()\\\s\"]{0,16})\(.*?(?:\)\1\"|\Z)"
    rb"|\"(?:[^\"\\\n]|\\.)*\"?"
    rb"|'(?:[^'\\\n]|\\.)*'?",
    re.DOTALL,
)
PLAIN = re.compile(rb"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)'", re.DOTALL)
PIECES = [*"/*\\()R\"'\n ax\v\x00", "//", "/*", "*/", 'R"(', ')"', 'R"ax(', ')ax"', '\\"', "'\\''", "''", "é", "a" * 17]


def assert_alike(content: bytes) -> None:
    data = np.frombuffer(content, np.uint8)
    assert spaced(data).tobytes() == CONTINUED.sub(lambda match: re.sub(rb"[^\n]", b" ", match[0]), content)
    assert shortened(data).tobytes() == PLAIN.sub(b" ", content)


@settings(max_examples=1_500, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_any_heap_of_quotes_and_comments_reads_as_the_expressions_do(pieces: list[str]) -> None:
    assert_alike("".join(pieces).encode())


@pytest.mark.parametrize("path", sorted(CORPUS.rglob("*.[ch]*")), ids=lambda path: path.name)
def test_real_files_read_as_the_expressions_do(path: Path) -> None:
    assert_alike(path.read_bytes())


@pytest.mark.parametrize("opening", ['R"(', 'R"a(', '"', "'", "/*", "//\\\n", "/", 'R"', "\\", 'R"aaaaaaaaaaaaaaaa)'])
def test_what_is_never_closed_costs_its_length_and_not_its_square(opening: str) -> None:
    data = np.frombuffer(opening.encode() * 200_000, np.uint8)

    assert len(spaced(data)) == len(data)
    assert len(shortened(data)) <= len(data)
