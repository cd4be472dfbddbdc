"""Tokens, shingles and signatures, held against plain Python and datasketch."""

import numpy as np
import pytest
from datasketch import MinHash
from hypothesis import given
from hypothesis import strategies as st

from pipeline.lexing.language_lexers import lexer_of
from pipeline.stages.normalize.duplicates.shingles import (
    hashes_for_minhash,
    jaccard,
    shingle_hashes,
    signature,
    without_includes,
)
from tests.support.plain_lexing.cpp_tokens import tokens

TOKENS = {
    "a->b": ["a", "->", "b"],
    "a.b": ["a", ".", "b"],
    "a<<=b>>c": ["a", "<<=", "b", ">>", "c"],
    "a<=>b": ["a", "<=>", "b"],
    "x::y->*z": ["x", "::", "y", "->*", "z"],
    "f(a...)": ["f", "(", "a", "...", ")"],
    "1'000.5e-3f + .5": ["1'000.5e-3f", "+", ".5"],
    '"a // b" + \'"\'': ['"a // b"', "+", "'\"'"],
    "a /* b */ c // d\ne": ["a", "c", "e"],
    "#define A(x) \\\n  x##1": ["#", "define", "A", "(", "x", ")", "x", "##", "1"],
    "naïve = größe;": ["naïve", "=", "größe", ";"],
    "": [],
}


def plain_shingles(text: str) -> set[tuple[str, ...]]:
    """The oracle: sets of tuples."""
    found = tokens(text)
    return {tuple(found[start : start + 5]) for start in range(len(found) - 4)}


def plain_jaccard(first: str, second: str) -> float:
    left, right = plain_shingles(first), plain_shingles(second)
    return len(left & right) / len(left | right) if left | right else 0.0


@pytest.mark.parametrize(("text", "expected"), TOKENS.items())
def test_operators_are_whole_and_comments_are_out(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_a_raw_string_is_one_token_by_its_content() -> None:
    assert len(tokens('x = R"y(a " b // c)y";')) == 4
    assert tokens('R"(a)"') == tokens('R"y(a)y"') != tokens('R"(b)"')


def test_the_license_header_does_not_count() -> None:
    body = "int a = b + c;"
    assert tokens("// Copyright 2020\n" + body) == tokens("/* SPDX */" + body)


@given(st.lists(st.sampled_from(["a", "b", "c", "d", "+", "-", "(", ")", ";", "1"]), max_size=60).map(" ".join))
def test_there_are_as_many_shingles_as_the_oracle_has(text: str) -> None:
    assert len(shingle_hashes("a.cpp", text)) == len(plain_shingles(text))


@given(*[st.lists(st.sampled_from(["a", "b", "c", "+", ";"]), max_size=60).map(" ".join)] * 2)
def test_jaccard_is_that_of_plain_sets(first: str, second: str) -> None:
    assert jaccard(shingle_hashes("a.cpp", first), shingle_hashes("a.cpp", second)) == plain_jaccard(first, second)


@pytest.mark.parametrize("seed", [1, 7])
@pytest.mark.parametrize("num_hashes", [0, 1, 511, 512, 513, 3_000])
def test_the_signature_is_datasketch_s_bit_for_bit(num_hashes: int, seed: int) -> None:
    hashes = np.random.default_rng(num_hashes).integers(0, 2**32, num_hashes, dtype=np.uint32)
    oracle = MinHash(num_perm=256, scheme="affine32", seed=seed, hashfunc=int)
    oracle.update_batch(hashes.tolist())
    assert np.array_equal(signature(hashes, seed), oracle.hashvalues)


def test_hashes_for_minhash_are_the_upper_halves() -> None:
    assert hashes_for_minhash(np.array([0x0123456789ABCDEF], np.uint64)).tolist() == [0x01234567]


def test_the_signature_estimates_the_similarity() -> None:
    words = [f"name_{number} = value_{number};" for number in range(400)]
    first, second = " ".join(words), " ".join(words[60:])
    signatures = [signature(hashes_for_minhash(shingle_hashes("a.cpp", text)), 1) for text in (first, second)]
    assert abs(np.mean(signatures[0] == signatures[1]) - plain_jaccard(first, second)) < 0.1


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("#include <a/b.h>\nint x;", "int x;"),
        ('#include "a.h"\n# include <b>\nint x;', "int x;"),
        ("int x;\n#include", "int x;"),
        ("#include <vector\nint x;", "vector\nint x;"),
        ("int include; # x", "int include; # x"),
        ("int x;\n#include <a", "int x;\na"),
        ("", ""),
    ],
)
def test_include_directives_are_left_out(text: str, left: str) -> None:
    lexer = lexer_of("a.c")
    assert without_includes(lexer.token_hashes(text)).tolist() == lexer.token_hashes(left).tolist()
