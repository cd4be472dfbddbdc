"""The grammar of a header is found in time that grows with the text alone, whatever is in it."""

import pytest

from pipeline.core.languages import C
from pipeline.stages.enrich.syntax.grammar import languages_to_parse


@pytest.mark.parametrize(
    "piece",
    ["x &, ", "x & y, ", "x &          ", "x& ", "& ", '"\\', "/*", "#if\n", "public ", "R'(", "#ifdef __cplusplus\n"],
)
def test_a_large_header_without_code_takes_linear_time(piece: str) -> None:
    """A search that starts again at each piece would take hours."""
    assert languages_to_parse("a.h", (piece * (2_000_000 // len(piece))).encode())[0] is C


def test_a_million_open_conditionals_take_linear_time() -> None:
    """A look at all that are open, at each of them, would take hours."""
    assert languages_to_parse("a.h", b"#if\n" * 1_000_000 + b"__cplusplus")[0] is C
