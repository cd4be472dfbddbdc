"""The syntax parse: how much of a text did not parse, what it includes, and where it gives up."""

import pytest

from pipeline.lexing.languages import CPP, C, Language
from pipeline.stages.enrich.params import SyntaxParams
from pipeline.stages.enrich.syntax.grammar import languages_to_parse
from pipeline.stages.enrich.syntax.parse import Syntax, parse_text


def syntax_of(text: str, language: Language = CPP, **params: int | bool) -> Syntax:
    return parse_text(text.encode(), language, SyntaxParams.model_validate(params))


@pytest.mark.parametrize(
    ("path", "text", "language"),
    [
        ("a/b.c", "class A;", "c"),
        *((path, "int x;", "cpp") for path in ("a/b.cc", "a/b.C", "b.c/a.inl", "b.cu", "a.hpp")),
        ("a.h", "int f(void);\n", "c"),
        ("a.h", '/* class A; */ // std::\nconst char *s = "template <class T>";\n', "c"),
        ("a.h", '#ifdef __cplusplus\nnamespace n {\nextern "C" {\n#endif\nint f(void);\n', "c"),
        ("a.h", "#ifdef __cplusplus\nint a;\n#else\nint b;\n#endif\nclass A;\n", "cpp"),
        ("a.h", "int class;\nint new, namespace = 1;\n", "c"),
        ("a.h", "#include <vector>\n", "cpp"),
        ("a.h", "void f(const T &x);\n", "cpp"),
        ("a.h", "struct A { A(); virtual ~A(); };\n", "cpp"),
        ("a.H", "namespace a {}\n", "cpp"),
    ],
)
def test_the_grammar_is_that_of_the_extension_and_of_a_header_that_of_its_content(
    path: str, text: str, language: str
) -> None:
    assert languages_to_parse(path, text.encode())[0].name == language


def test_a_class_is_one_in_cpp_alone() -> None:
    trees = [syntax_of("class A { int x; };\n", language).tree for language in (CPP, C)]

    assert ["class_specifier" in str(tree and tree.root_node) for tree in trees] == [True, False]


def test_a_sound_text_has_no_errors() -> None:
    syntax = syntax_of("int f() { return 1; }\n")

    assert (syntax.num_error_bytes, syntax.num_missing_nodes, syntax.error_fraction) == (0, 0, 0.0)


def test_the_bytes_of_an_error_are_counted_once() -> None:
    syntax = syntax_of("int a;\n@@@@\nint b;\n")

    assert syntax.num_error_bytes == 4
    assert syntax.error_fraction == 4 / 19


def test_a_missing_token_is_counted_and_has_no_bytes() -> None:
    syntax = syntax_of("int f() { return 1 }\n")

    assert (syntax.num_error_bytes, syntax.num_missing_nodes) == (0, 1)


def test_includes_are_in_order_as_they_are_written() -> None:
    text = '#include <a/b.h>\n/* so */ # include "c.h"  // why\n#ifdef X\n#include "d.h"\n#endif\nint f() {\n#include "e.inc"\n}\n'

    assert syntax_of(text).includes == ("<a/b.h>", '"c.h"', '"d.h"', '"e.inc"')


@pytest.mark.parametrize(
    "text",
    [
        '/*\n#include "a.h"\n*/\n',
        'const char *s = R"(\n#include "a.h"\n)";\n',
        "#include NAME\n",
        '#define X \\\n#include "a.h"\n',
    ],
    ids=["comment", "raw string", "macro", "definition"],
)
def test_text_that_only_looks_like_an_include_is_not_one(text: str) -> None:
    assert syntax_of(text).includes == ()


@pytest.mark.parametrize("before", ["#define A \n\n", "#define A\t\n// b\n", "#ifndef A\n#define A \n\n\n"])
def test_an_include_that_the_grammar_gives_to_the_definition_before_is_one(before: str) -> None:
    end = "#endif\n" if "#if" in before else ""
    assert syntax_of(f"{before}#include <a.h>\n#include <b.h>\nint c;\n{end}").includes == ("<a.h>", "<b.h>")


def test_an_unbalanced_branch_is_blanked_where_that_leaves_fewer_errors() -> None:
    text = "int f() {\n#ifdef A\n  if (x) {\n#else\n  if (y) {\n#endif\n    g();\n  }\n}\nint h() { return 1; }\n"

    assert syntax_of(text).blanked
    assert syntax_of(text).num_error_bytes == 0
    assert syntax_of(text, blank_unbalanced_branches=False).num_error_bytes > 0


def test_nothing_is_blanked_in_a_text_that_parses() -> None:
    text = "#define OPEN {\n#ifdef A\nint f() OPEN\n#endif\nint x;\n"

    assert syntax_of("#ifdef A\nint f();\n#endif\n").blanked == ()
    assert syntax_of(text).blanked == ()


def test_includes_of_a_blanked_branch_are_still_found() -> None:
    text = '#ifdef A\n#include "a.h"\nvoid f() {\n#else\n#include "b.h"\nint f() {\n#endif\n}\n'
    syntax = syntax_of(text)

    assert syntax.blanked
    assert syntax.includes == ('"a.h"', '"b.h"')


def test_a_text_past_the_size_limit_has_no_tree_but_its_includes() -> None:
    syntax = syntax_of('#include "a.h"\n' * 100, max_num_bytes=1_000)

    assert (syntax.tree, syntax.limit, syntax.error_fraction) == (None, "max_num_bytes", 1.0)
    assert syntax.includes == ('"a.h"',) * 100


def test_a_parse_past_its_operations_is_given_up() -> None:
    hostile = "a<" * 20_000

    assert syntax_of(hostile, max_operations_per_byte=8).limit == "max_operations_per_byte"
    assert syntax_of(hostile).limit == ""


def test_the_same_text_hits_the_same_limit_each_time() -> None:
    hostile = "a<" * 5_000
    limits = [[syntax_of(hostile, max_operations_per_byte=limit).limit for limit in (8, 9, 10, 11)] for _ in range(2)]

    assert limits[0] == limits[1]


@pytest.mark.parametrize("opening", ["(", "{", "[", "<", "a(", "!", "*"])
def test_a_hundred_thousand_levels_do_not_crash(opening: str) -> None:
    syntax = syntax_of("int x = " + opening * 100_000)

    assert 0 <= syntax.error_fraction <= 1


def test_a_hundred_thousand_closed_parentheses_parse() -> None:
    assert syntax_of("int x = " + "(" * 100_000 + "1" + ")" * 100_000 + ";").error_fraction == 0


def test_a_balanced_branch_that_no_grammar_allows_there_is_blanked_too() -> None:
    text = "int f(int a)\n{\n  g(a,\n#ifdef A\n  b(),\n#else\n  c(),\n#endif\n  d);\n}\nint after() { return 1; }\n"
    syntax, unblanked = syntax_of(text), syntax_of(text, blank_unbalanced_branches=False)

    assert unblanked.num_error_bytes > 0
    assert (syntax.num_error_bytes, syntax.num_missing_nodes) == (0, 0)
    assert [text[start:end] for start, end in syntax.blanked] == ["#ifdef A\n", "#else\n  c(),\n#endif\n"]
