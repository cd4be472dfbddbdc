"""Chunks: the kinds, the owners of comments, and that no byte is ever lost."""

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.lexing.languages import CPP, C, Language, is_source
from pipeline.stages.enrich.chunking.chunks import chunks_of
from pipeline.stages.enrich.chunking.spans import MAX_LEVEL, Chunk
from pipeline.stages.enrich.params import SyntaxParams
from pipeline.stages.enrich.syntax.grammar import languages_to_parse
from pipeline.stages.enrich.syntax.parse import parse_text
from tests.support.paths import MADE_CORPUS

CORPUS = MADE_CORPUS.parent
DECODED = [
    path
    for path in sorted(CORPUS.rglob("*"))
    if is_source(str(path)) and path.parent.name != "encodings" and path.stat().st_size
]
FRAGMENTS = [
    *("{", "}", "(", ")", ";", "\n", " ", '"', "'", "/*", "*/", "//", "\\\n", 'R"(', ')"', "<:", ":>", "??<", "%:"),
    *("#if A\n", "#else\n", "#endif\n", "#include <a>\n", "#define X {\n", "class A", "namespace n", "template <", ">"),
    *("é", "漢", "🦆", "\x00", "\r", 'extern "C" {', "int f()", "typedef int", "public:", "operator", "= default;"),
]


def cut(text: str, language: Language = CPP) -> list[Chunk]:
    return chunks_of(parse_text(text.encode(), language, SyntaxParams()))


def kinds_and_texts(text: str, language: Language = CPP) -> list[tuple[str, str]]:
    content = text.encode()
    return [(chunk.kind.value, content[chunk.start : chunk.end].decode()) for chunk in cut(text, language)]


def assert_conserved(content: bytes, chunks: list[Chunk]) -> None:
    """Assert that the ranges cover the text without gap or overlap, that none is empty, and that none cuts a character."""
    edges = [0, *(chunk.end for chunk in chunks)]
    assert [chunk.start for chunk in chunks] == edges[:-1]
    assert edges[-1] == len(content)
    for chunk in chunks:
        assert chunk.start < chunk.end
        content[chunk.start : chunk.end].decode()


EXAMPLES = {
    "preamble": (
        "#pragma once\n#include <a.h>\n\n#define N 3\n",
        [("preamble", "#pragma once\n#include <a.h>\n\n"), ("preamble", "#define N 3\n")],
    ),
    "comment": (
        "// A license.\n\n/* Of nothing. */\n\n",
        [("comment", "// A license.\n\n"), ("comment", "/* Of nothing. */\n\n")],
    ),
    "namespace": (
        "namespace a {\nusing std::swap;\nnamespace b = a;\n}  // a\n",
        [
            ("namespace", "namespace a {\n"),
            ("namespace", "using std::swap;\nnamespace b = a;\n"),
            ("namespace", "}  // a\n"),
        ],
    ),
    "extern C": (
        'extern "C" {\nvoid f(void);\n}\n',
        [("namespace", 'extern "C" {\n'), ("func_sig", "void f(void);\n"), ("namespace", "}\n")],
    ),
    "function": (
        "/// Doubles.\ntemplate <class T>\nT twice(T x) noexcept {\n  return 2 * x;\n}\n",
        [
            ("func_sig", "/// Doubles.\ntemplate <class T>\nT twice(T x) noexcept "),
            ("func_body", "{\n  return 2 * x;\n}\n"),
        ],
    ),
    "constructor": (
        "A::A() : x_(1) {}\nA::A(int) try : x_(2) { } catch (...) {\n}\n",
        [
            ("func_sig", "A::A() : x_(1) "),
            ("func_body", "{}\n"),
            ("func_sig", "A::A(int) "),
            ("func_body", "try : x_(2) { } catch (...) {\n}\n"),
        ],
    ),
    "prototypes": (
        "int f(int);\nconst char *g(void);\nint (*h)(int);\nA& A::operator=(const A&) = default;\n",
        [
            ("func_sig", "int f(int);\n"),
            ("func_sig", "const char *g(void);\n"),
            ("other", "int (*h)(int);\n"),
            ("func_sig", "A& A::operator=(const A&) = default;\n"),
        ],
    ),
    "class": (
        "class A : public B {\npublic:\n  int f() { return x; }\n  void g();\n  int x;  // tail\n};\nclass C;\n",
        [
            ("class_decl", "class A : public B {\n"),
            ("class_member", "public:\n"),
            ("func_sig", "  int f() "),
            ("func_body", "{ return x; }\n"),
            ("class_member", "  void g();\n  int x;  // tail\n"),
            ("class_decl", "};\n"),
            ("class_decl", "class C;\n"),
        ],
    ),
    "class in a class": (
        "struct A {\n  using T = int;\n  struct B {\n    T t;\n  } b;\n  enum { x };\n};\n",
        [
            ("class_decl", "struct A {\n"),
            ("typedef", "  using T = int;\n"),
            ("class_decl", "  struct B {\n"),
            ("class_member", "    T t;\n"),
            ("class_decl", "  } b;\n"),
            ("class_decl", "  enum { x };\n"),
            ("class_decl", "};\n"),
        ],
    ),
    "class after a macro": (
        "class EXPORT A : public B {\n  int x;\n};\n",
        [("class_decl", "class EXPORT A : public B {\n"), ("class_member", "  int x;\n"), ("class_decl", "};\n")],
    ),
    "typedef": (
        "typedef struct {\n  int a;\n} S;\n\nusing T = int;\ntypedef int I;\n",
        [("typedef", "typedef struct {\n  int a;\n} S;\n\n"), ("typedef", "using T = int;\ntypedef int I;\n")],
    ),
    "concept": (
        "template <class T>\nconcept C = true;\n",
        [("typedef", "template <class T>\nconcept C = true;\n")],
    ),
    "other": (
        "int x = 1;\nstatic_assert(true);\n\nMACRO(x);\n",
        [("other", "int x = 1;\nstatic_assert(true);\n\n"), ("other", "MACRO(x);\n")],
    ),
    "conditional": (
        "#ifdef A\nint x;\n#else\nint f();\n#endif\n",
        [
            ("preamble", "#ifdef A\n"),
            ("other", "int x;\n"),
            ("preamble", "#else\n"),
            ("func_sig", "int f();\n"),
            ("preamble", "#endif\n"),
        ],
    ),
    "blanked branch": (
        "#ifdef A\nint f() {\n  if (x) {\n#else\nint f() {\n  {\n#endif\n    g();\n  }\n}\nint y;\n",
        [
            ("preamble", "#ifdef A\n"),
            ("func_sig", "int f() "),
            ("func_body", "{\n  if (x) {\n#else\nint f() {\n  {\n#endif\n    g();\n  }\n}\n"),
            ("other", "int y;\n"),
        ],
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_kind_is_what_the_table_says(name: str) -> None:
    text, expected = EXAMPLES[name]

    assert kinds_and_texts(text) == expected


def test_the_examples_show_all_nine_kinds() -> None:
    shown = {kind for _, expected in EXAMPLES.values() for kind, _ in expected}

    assert shown == {
        *("other", "preamble", "func_sig", "func_body", "class_decl", "class_member", "comment", "typedef", "namespace")
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("// A\nint f();\n", [("func_sig", "// A\nint f();\n")]),
        ("// A\n\nint f();\n", [("comment", "// A\n\n"), ("func_sig", "int f();\n")]),
        ("// A\n// B\nint f();\n", [("func_sig", "// A\n// B\nint f();\n")]),
        ("int x; // A\nint f();\n", [("other", "int x; // A\n"), ("func_sig", "int f();\n")]),
        ("// A\n#include <b>\n", [("comment", "// A\n"), ("preamble", "#include <b>\n")]),
        ("// A\n#define B 1\n", [("preamble", "// A\n#define B 1\n")]),
        ("// A\nnamespace {}\n", [("comment", "// A\n"), ("namespace", "namespace {}\n")]),
        (
            "struct S {\n  int a;\n  // B\n  int b;\n  // C\n};\n",
            [
                ("class_decl", "struct S {\n"),
                ("class_member", "  int a;\n"),
                ("class_member", "  // B\n  int b;\n"),
                ("comment", "  // C\n"),
                ("class_decl", "};\n"),
            ],
        ),
    ],
)
def test_a_comment_belongs_to_the_declaration_it_touches(text: str, expected: list[tuple[str, str]]) -> None:
    assert kinds_and_texts(text) == expected


def test_the_level_counts_namespaces_and_classes_and_nothing_else() -> None:
    text = 'namespace a::b {\n#if X\nextern "C" {\nstruct S {\n  void f() { { int deep; } }\n};\n}\n#endif\n}\n'
    content = text.encode()

    levels = {content[chunk.start : chunk.end].decode().strip(): chunk.level for chunk in cut(text)}

    assert levels["namespace a::b {"] == 0
    assert levels['extern "C" {'] == 1
    assert levels["struct S {"] == 1
    assert levels["void f()"] == 2
    assert levels["{ { int deep; } }"] == 2
    assert levels["};"] == 1


def test_the_level_stops_at_its_cap() -> None:
    depth = MAX_LEVEL + 45
    chunks = cut("namespace a {\n" * depth + "int x;\n" + "}\n" * depth)

    assert max(chunk.level for chunk in chunks) == MAX_LEVEL
    assert [chunk.level for chunk in chunks[:3]] == [0, 1, 2]


def test_an_empty_text_has_no_chunks() -> None:
    assert cut("") == []


def test_a_text_of_blanks_is_one_chunk() -> None:
    assert kinds_and_texts(" \n\n\t") == [("other", " \n\n\t")]


def test_a_text_past_a_limit_is_one_chunk() -> None:
    content = b"int x;\n" * 1_000

    chunks = chunks_of(parse_text(content, CPP, SyntaxParams(max_num_bytes=1_000)))

    assert [(chunk.start, chunk.end, chunk.kind.value) for chunk in chunks] == [(0, 7_000, "other")]


@pytest.mark.parametrize("path", DECODED, ids=lambda path: path.name)
def test_real_files_keep_their_bytes(path: Path) -> None:
    content = path.read_bytes()

    assert_conserved(content, chunks_of(parse_text(content, languages_to_parse(path.name, content)[0], SyntaxParams())))


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=300))
@settings(max_examples=150)
def test_any_text_keeps_its_bytes(text: str) -> None:
    assert_conserved(text.encode(), cut(text))


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=60), st.sampled_from([C, CPP]))
@settings(max_examples=300)
def test_any_heap_of_fragments_keeps_its_bytes(fragments: list[str], language: Language) -> None:
    text = "".join(fragments)

    assert_conserved(text.encode(), cut(text, language))


@given(st.integers(0, len(DECODED) - 1), st.integers(0, 2**32))
@settings(max_examples=150)
def test_mutated_real_code_keeps_its_bytes(index: int, seed: int) -> None:
    random = Random(seed)
    text = DECODED[index].read_bytes().decode()
    for _ in range(random.randrange(1, 6)):
        start = random.randrange(len(text) + 1)
        end = min(len(text), start + random.randrange(40))
        text = text[:start] + random.choice(["", *FRAGMENTS]) + text[end:]

    assert_conserved(text.encode(), cut(text, languages_to_parse(DECODED[index].name, text.encode())[0]))


@pytest.mark.parametrize(
    "text",
    [
        "int f() {\n  if (x) {\n    g();\n",
        "class A { class B { void f() {",
        "int x = " + "(" * 100_000 + "1" + ")" * 100_000 + ";\n",
        "(" * 100_000,
        "namespace a {" * 20_000,
        "class a {" * 20_000,
        "template <" * 20_000,
        "#if A\n" * 20_000,
        "int x[] = {" + "1, " * 330_000 + "};\n",
        "#define BEGIN {\n#define END }\nint f() BEGIN return 1; END\nint g() BEGIN END\n",
        "int f() ??<\n  int a??(3??) = ??<1??>;\n??>\n",
        "%:include <a>\nint a<:3:> = <%1%>;\n",
        'const char *s = R"x(a\r\nb)y" \r\n)x";\r\nint y;\r\n',
        'const char *s = R"x(never closed\n',
        "int größe = 1;\nstruct 形 { int π; };\n",
        "}" * 50_000,
    ],
    ids=lambda text: text[:12].strip(),
)
def test_hostile_text_keeps_its_bytes(text: str) -> None:
    assert_conserved(text.encode(), cut(text))
