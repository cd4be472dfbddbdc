"""Shapes of lines, by the tokens in them and those before them."""

import numpy as np
import pytest

from pipeline.lexing.cpp import CPP_LEXER
from pipeline.lexing.lexer import lexed
from pipeline.stages.normalize.filters import text_loops
from pipeline.stages.normalize.filters.assembly_parts import ASSEMBLER_PART, BLOCK
from pipeline.stages.normalize.filters.code_shapes import shapes_of
from pipeline.stages.normalize.filters.text_loops import SHAPES

FOREIGN = {
    "#frobnicate it\n": "a directive that C does not have",
    "these are four words here\n": "words in a row",
    "x = 5 apples;\n": "a number before an operand",
    "chapter 12;\n": "a word before a number",
    '"text" follows;\n': "a string before an operand",
    "x = 'hello world, again';\n": "a word in apostrophes",
    "x = $name;\n": "a character that C does not have",
    "x := 5;\n": "an operator that C does not have",
    "x <- length(y)\n": "an operator that C does not have",
    "start(Name, State) ->\n": "an operator that C does not have",
    "if x > 5 {\n": "a condition without parentheses",
    "import os\n": "a statement that C does not have",
    "      CALL DSWAP( N, X, 1 )\n": "a statement that C does not have",
    "      END IF\n": "a statement that C does not have",
    "public void run() {\n": "an access before a declaration",
    "const limit = 5;\n": "a constant without a type",
    "<div>\n": "markup",
    "- an item;\n": "a mark at the beginning of the line",
    '"key": 5,\n': "a string before a colon",
    "x = limit\ny = 5;\n": "no semicolon between operands",
    "[3%] compiling;\n": "a bracket before a name",
    ".globl start\n": "a dot before a command",
    ". = start;\n": "a dot before a command",
    "= Title\n": "a mark at the beginning of the line",
    "! int changed;\n": "a mark at the beginning of the line",
    "; a comment\n": "a mark at the beginning of the line",
    "        -:   12:    x = 5;\n": "a mark at the beginning of the line",
    "       62:   13:    y = 6;\n": "a string before a colon",
    "split the stack and then bind it;\n": "words in a row",
    "rule : kind ( '+' word )* | NAME ;\n": "an operator that C does not have",
}
OF_C = (
    "object type_var(Args&&... args) {\n    return f(args...);\n}",
    "value type(int a) { return set(a); }",
    "#define LIMIT 5\n",
    "#include <vector>\n",
    "unsigned long long int x;\n",
    "x = 'a';\n",
    "if (x > 5) {\n",
    "if constexpr (is_known) {\n",
    "import <vector>;\n",
    "public:\n",
    "const int limit = 5;\n",
    "class A : public B {\n",
    "x = a < b;\n",
    "x <-1;\n",
    "p->next;\n",
    "    - b;\n",
    "x = is_known ?\n  1 : 2;\n",
    "return first and second and third and fourth or fifth;\n",
    "y = *x | *z;\n",
    "int x[] = {\n-39,\n57};\n",
    "x = a\n    + b;\n",
    'const char *a = "b"\n    "c";\n',
    "MACRO(a)\nint b;\n",
    "case 'a' ... 'z':\n",
    "template <class T>\nT f(T x);\n",
    "struct point p = {\n  .x = 1,\n  .y[0] = 2,\n};\nq = p\n  .template next<int>()\n  .last.first();\n",
    "for (int i = 0\n     ; is_open; ++i)\n  f();\n",
    "delete[] first;\n[[maybe_unused]] int second;\nchar third[4] __packed;\n",
    "__asm {\n  mov eax, ebx\n  emms\n}\n",
    "#ifndef __ASSEMBLER__\n" + "f();\n" * 20 + "#else\n.macro enter\n  mov r0, #3\n#endif\n",
)


def counts(text: str) -> dict[str, int]:
    found = shapes_of(lexed(CPP_LEXER, text), True).foreign
    return {SHAPES[shape]: int(found[shape]) for shape in np.flatnonzero(found) if shape}


@pytest.mark.parametrize("text", FOREIGN)
def test_a_line_that_no_c_has_is_counted_for_what_it_is(text: str) -> None:
    assert counts(f"int before;\n{text}") == {FOREIGN[text]: 1}


def test_every_shape_has_an_example() -> None:
    assert set(FOREIGN.values()) == set(SHAPES[1:])


@pytest.mark.parametrize("text", OF_C)
def test_a_line_of_c_is_none_of_another_language(text: str) -> None:
    assert counts(f"int before;\n{text}") == {}


@pytest.mark.parametrize(("num", "is_table"), [(15, False), (16, True)])
def test_a_table_has_sixteen_literals_at_least(num: int, is_table: bool) -> None:
    found = shapes_of(lexed(CPP_LEXER, "int a[] = {" + "1," * num + "}; f(2);"), True)

    assert (found.numeric >= 2 * num) == is_table
    assert found.strings == 0


@pytest.mark.parametrize("period", [1, 2, 3, 4])
@pytest.mark.parametrize(("end", "num", "is_table"), [(",", 20, True), (";", 20, False), (";", 130, True)])
def test_lines_that_repeat_a_few_shapes_with_literals_are_a_table(
    period: int, end: str, num: int, is_table: bool
) -> None:
    rows = ['  add(12345, "abcdef");\n', "  put(1, 2, 3456789);\n", "  x = 123456789012;\n", "  y[1234567] = 3;\n"][
        :period
    ]
    text = "".join(rows).replace(";", end) * num
    found = shapes_of(lexed(CPP_LEXER, text), True)

    assert (found.tables == found.num_bytes) == is_table
    assert found.numeric == 0


@pytest.mark.parametrize(("num", "is_table"), [(256, False), (600, True)])
def test_a_switch_over_opcodes_is_code_and_one_over_all_words_a_table(num: int, is_table: bool) -> None:
    cases = "".join(f'    case 0x{number:02x}: return "lda";\n' for number in range(num))
    found = shapes_of(lexed(CPP_LEXER, f"const char *name(int op)\n{{\n    switch (op) {{\n{cases}    }}\n}}\n"), True)

    assert (found.tables > 0.9 * found.num_bytes) == is_table


@pytest.mark.parametrize(("line", "is_table"), [("#define A_§ B_§ C\n", False), ("  { a_§, b_§, c },\n", True)])
def test_many_lines_of_names_are_a_table_unless_they_define_macros(line: str, is_table: bool) -> None:
    text = "".join(line.replace("§", str(number)) for number in range(2_000))
    assert (shapes_of(lexed(CPP_LEXER, text), True).tables > 0) == is_table


def test_of_what_is_for_an_assembler_alone_most_of_a_file_is_judged() -> None:
    assert counts("#if defined(__ASSEMBLY__)\n  mov r0, #3\n#else\nint x;\n#endif\n") == {
        "a character that C does not have": 1
    }


def test_a_short_list_that_gives_each_literal_its_name_is_no_table() -> None:
    for line in ('DEF(name_§, "name_§")\n', '#define TEXT_OF_NAME_§ "a text: §"\n'):
        text = "".join(line.replace("§", str(number)) for number in range(200))
        assert shapes_of(lexed(CPP_LEXER, text), True).tables == shapes_of(lexed(CPP_LEXER, text), True).strings
        longer = text * 5
        assert shapes_of(lexed(CPP_LEXER, longer), True).tables > 0.9 * len(longer.replace(" ", "").replace("\n", ""))


def test_equal_lines_without_literals_are_no_table() -> None:
    assert shapes_of(lexed(CPP_LEXER, "  first = second->third;\n" * 100), True).tables == 0


def test_parts_of_assembly_have_the_numbers_of_the_file_that_finds_them() -> None:
    assert (text_loops._BLOCK, text_loops._ASSEMBLER_PART) == (BLOCK, ASSEMBLER_PART)
