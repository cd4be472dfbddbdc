"""Sized chunks: nothing is lost, nothing is larger than necessary, and what fits is not split."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.records import ChunkKind
from pipeline.lexing.languages import CPP
from pipeline.stages.enrich.chunking.chunks import chunks_of
from pipeline.stages.enrich.chunking.sizes import sized_chunks
from pipeline.stages.enrich.params import SyntaxParams
from pipeline.stages.enrich.syntax.parse import parse_text
from tests.pipeline.stages.enrich.chunking.test_chunks import FRAGMENTS, assert_conserved

STATEMENTS = [f"  call_number_{number}(argument, {number});\n" for number in range(100)]
FUNCTION = "int f()\n{\n" + "".join(STATEMENTS) + "}\n"


def pieces(text: str, limit: int) -> list[tuple[ChunkKind, str]]:
    syntax = parse_text(text.encode(), CPP, SyntaxParams())
    sized = sized_chunks(syntax, chunks_of(syntax), limit)
    assert_conserved(text.encode(), sized)
    return [(chunk.kind, text.encode()[chunk.start : chunk.end].decode()) for chunk in sized]


def test_a_large_body_is_split_between_its_statements_and_the_pieces_are_filled() -> None:
    bodies = [text for kind, text in pieces(FUNCTION, 400) if kind is ChunkKind.FUNC_BODY]
    sizes = [len("".join(body.split())) for body in bodies]

    assert "".join(bodies) == FUNCTION.removeprefix("int f()\n")
    assert max(sizes) <= 400
    assert min(sizes[:-1]) > 400 - len("call_number_10(argument,10);")
    assert all(body.startswith("  call_number_") for body in bodies[1:])


def test_what_fits_without_its_blanks_is_one_chunk() -> None:
    text = FUNCTION.replace("  call", " " * 200 + "call")

    assert [kind for kind, _ in pieces(text, 4_000)] == [ChunkKind.FUNC_SIG, ChunkKind.FUNC_BODY]


def test_a_statement_that_is_too_large_is_opened_and_a_leaf_is_not() -> None:
    nested = "void g()\n{\n  if (x)\n  {\n" + "".join(STATEMENTS) + "  }\n}\n"
    assert max(len("".join(text.split())) for _, text in pieces(nested, 400)) <= 400
    string = 'const char *s = "' + "x" * 5_000 + '";\n'
    assert max(len(text) for _, text in pieces(string, 400)) >= 5_000


@settings(max_examples=100)
@given(st.lists(st.sampled_from([*FRAGMENTS, *STATEMENTS[:3]]), max_size=60), st.integers(1, 60))
def test_any_heap_of_fragments_keeps_its_bytes_at_any_size(fragments: list[str], limit: int) -> None:
    pieces("".join(fragments), limit)


def test_a_sum_of_many_terms_is_split_in_time_that_grows_with_the_text() -> None:
    """Each term is a level of the tree: to count the bytes of each again would take hours."""
    bodies = pieces("int x = a" + "+a\n" * 300_000 + ";\n", 400)

    assert max(len("".join(text.split())) for _, text in bodies) <= 400
