"""The grammar of a header is found in time that grows with the text alone, whatever is in it."""

import pytest

from pipeline.core.languages import C
from pipeline.enrich.syntax.grammar import languages_to_parse


@pytest.mark.parametrize(
    "piece",
    ["x &, ", "x & y, ", "x &          ", "x& ", "& ", '"\\', "/*", "#if\n", "public ", "R'(", "#ifdef __cplusplus\n"],
)
def test_a_large_header_without_any_code_is_judged(piece: str) -> None:
    """A search that starts again at each piece would take hours."""
    assert languages_to_parse("a.h", (piece * (2_000_000 // len(piece))).encode())[0] is C


def test_a_heap_of_conditionals_that_nobody_closes_is_judged() -> None:
    """A look at all that are open, at each of them, would take hours."""
    assert languages_to_parse("a.h", b"#if\n" * 1_000_000 + b"__cplusplus")[0] is C
