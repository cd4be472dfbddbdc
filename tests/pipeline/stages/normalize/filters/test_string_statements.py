"""Texts in strings under names of C are data, however short each is; code beside them makes them none."""

import pytest

from pipeline.lexing.cpp import CPP_LEXER
from pipeline.lexing.lexer import lexed
from pipeline.stages.normalize.filters import string_statements, text_loops
from pipeline.stages.normalize.filters.code_shapes import shapes_of
from pipeline.stages.normalize.filters.filters import MeasuredText, first_broken, score
from pipeline.stages.normalize.params import FilterParams

PROGRAM = """TEMP R§, Q§;
PARAM c§ = { 0.5, §.0, 0.25, 1.0 };
TEX R§, fragment.texcoord[0], texture[0], 2D;
MUL R§, R§, fragment.color;
MAD Q§.xyz, R§, c§.x, c§.y;
MOV result.color, Q§;
"""
CODE = "".join(f"int add_{n}(int a, int b) {{\n  return a + b * {n};\n}}\n" for n in range(40))


def _each(line: str, before: str, after: str, count: int = 40) -> str:
    """Return definitions, each of the lines of PROGRAM in a form of their own."""
    return "".join(
        before.replace("§", str(n))
        + "".join(
            line.replace("¤", one)
            for one in "".join(PROGRAM.replace("§", f"{n}{part}") for part in range(4)).split("\n")
        )
        + after
        for n in range(count)
    )


FORMS = {
    "lines": _each('    "¤\\n"\n', "static const char *const program_§ =\n", ";\n\n"),
    "calls": _each('        "¤\\n"\n', "QString program§() {\n    return QString::fromLatin1(\n", ");\n}\n"),
    "appended": _each(
        '    text += "¤\\n";\n', "std::string program_§() {\n    std::string text;\n", "    return text;\n}\n"
    ),
    "in_braces": _each('    "¤\\n"\n', "const std::string Program§::text = {\n", "};\n"),
    "returned": _each('        "¤\\n"\n', "const char *Program§::text() const\n{\n    return\n", ";\n}\n"),
    "macro_of_a_macro": "#define TEXT_(...) #__VA_ARGS__\n#define TEXT(...) TEXT_(__VA_ARGS__)\n"
    + _each("¤\n", "const char *program_§ = TEXT(\n", ");\n"),
    "macro_of_another_file": _each("¤\n", "const char *program_§ = TEXT(\n", ");\n"),
    "macro_that_defines": "#define PROGRAM(name, ...) const char *name = #__VA_ARGS__;\n"
    + _each("¤\n", "PROGRAM(program_§,\n", ")\n"),
    "raw": _each("¤\n", 'inline constexpr std::string_view kProgram§ = R"(', ')";\n'),
    "macro": "#define TEXT(...) #__VA_ARGS__\n" + _each("¤\n", "const char *program_§ = TEXT(\n", ");\n"),
    "macro_after_a_string": '#define SHADER(src) "#version 330\\n" \\\n  #src\n'
    + _each("¤\n", "const char *program_§ = SHADER(\n", ");\n"),
}


def _reason(text: str) -> str:
    broken = first_broken(score("a.cpp", text), FilterParams(), text=MeasuredText.of("a.cpp", text))
    return broken.reason if broken else "kept"


@pytest.mark.parametrize("form", sorted(FORMS))
def test_a_file_of_texts_is_data(form: str) -> None:
    assert _reason(FORMS[form]) == "string_data"


@pytest.mark.parametrize("form", sorted(FORMS))
def test_texts_beside_code_are_none(form: str) -> None:
    assert _reason(FORMS[form][:1_500] + ");\n" + CODE) == "kept"


def test_what_a_macro_that_does_more_is_given_is_code() -> None:
    text = "#define TEXT(...) #__VA_ARGS__, log(__VA_ARGS__)\n" + _each("¤\n", "TEXT(\n", ");\n")

    assert shapes_of(lexed(CPP_LEXER, text), True).strings == 0


def test_names_that_a_macro_quotes_are_code() -> None:
    assert shapes_of(lexed(CPP_LEXER, "#define TEXT(a) #a\nchar *a = TEXT(name);\n"), True).strings == 0


def test_a_lambda_in_the_arguments_of_a_macro_is_code() -> None:
    assert shapes_of(lexed(CPP_LEXER, "auto a = TIMED([&] { run(); return 1; });\n"), True).strings == 0


def test_a_function_that_does_more_than_to_return_a_text_keeps_its_head() -> None:
    alone, after = (
        shapes_of(lexed(CPP_LEXER, f'const char *text() {{ {code} return "abcdefghijklmnopqrstuvw"; }}'), True)
        for code in ("", "count(); ")
    )

    assert after.strings < alone.strings


def test_names_and_signs_count_beside_strings_that_are_half() -> None:
    half, less = (shapes_of(lexed(CPP_LEXER, f'const char *a = "{text}";'), True) for text in ("0123456789abcd", "0"))

    assert half.strings == half.num_bytes == len('constchar*a="0123456789abcd";')
    assert less.strings == len('"0"')


def test_numbers_of_tokens_are_those_of_the_other_loops() -> None:
    names = ("OTHER_SIGN", "IDENTIFIER", "STRING", "DIRECTIVE", "LINE")
    assert tuple(getattr(text_loops, name) for name in names) == string_statements.NUMBERS
