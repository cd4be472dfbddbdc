"""Named parts: a token over two macros or constants goes in both; names that only begin like one stay."""

import pytest

from pipeline.stages.normalize.scrub.vendor_tokens import find_named_tokens

HEAD, TAIL = "gh" + "p_a1B2c3D4e5F6", "g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.mark.parametrize("use", ["A B", "std::string(A) + B", 'f(A "g7H8i9J0k1L2m3N4o5P6q7R8")'])
def test_both_parts_go(use: str) -> None:
    text = f'#define A "{HEAD}"\n#define B "{TAIL}"\nauto t = {use};'
    assert {text[found.start : found.end] for found in find_named_tokens(text)} == {HEAD, TAIL}


def test_parts_that_make_no_token_stay() -> None:
    assert list(find_named_tokens('#define A "ghp_"\n#define B "suffix_2"\nauto t = A B;')) == []
