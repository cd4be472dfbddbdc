"""The grammar of a header is found in time that grows with the text alone; one that is not there is refused by its language."""

import re

import pytest

from pipeline.build.build_context import stage_identity
from pipeline.build.recipes import TINY
from pipeline.core.errors import ParamsError
from pipeline.lexing.languages import C_NODES, LANGUAGES, C, Grammar, Language
from pipeline.stages.enrich.syntax.grammar import languages_to_parse, load_grammar
from pipeline.stages.stages import STAGES


def language_with(distribution: str, function: str) -> Language:
    return Language("made", frozenset({".made"}), Grammar(distribution, function, C_NODES))


def no_grammar() -> None:
    """Give nothing where a grammar is expected."""


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


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("tree_sitter_made:language", "'tree_sitter_made:language' cannot be imported (ModuleNotFoundError: No module"),
        ("tree_sitter_c:tongue", "'tree_sitter_c:tongue' cannot be imported (AttributeError: "),
        (f"{__name__}:no_grammar", f"'{__name__}:no_grammar' returned None, which tree-sitter does not load"),
    ],
)
def test_a_grammar_that_cannot_be_loaded_is_refused_by_its_language(function: str, message: str) -> None:
    with pytest.raises(ParamsError, match=f"^language made: its grammar {re.escape(message)}"):
        load_grammar(language_with("tree-sitter-c", function))


def test_a_distribution_that_is_not_installed_is_refused_by_its_language_before_a_part_is_made() -> None:
    with (
        LANGUAGES.registered(language_with("tree-sitter-made", "tree_sitter_c:language")),
        pytest.raises(ParamsError, match=r"^language made: tree-sitter-made, whose version .* is not installed"),
    ):
        stage_identity(STAGES["enrich"], TINY.params.enrich)


def test_a_text_is_not_decided_by_a_function_that_is_missing() -> None:
    entry = Language("either", frozenset({".mh"}), one_of=("c",), decided_by="no_such_package:decide")
    with LANGUAGES.registered(entry), pytest.raises(ParamsError, match="language either: its decided_by 'no_such_pack"):
        languages_to_parse("a.mh", b"")
