"""Shaders under names of C are seen by their declarations, and code that has their words is not."""

import pytest

from pipeline.lexing.cpp import CPP_LEXER
from pipeline.lexing.lexer import lexed
from pipeline.stages.normalize.filters import shader_lines, text_loops
from pipeline.stages.normalize.filters.code_shapes import CodeShapes, shapes_of

DECLARATIONS = (
    "uniform sampler2D image;",
    "uniform mat4 bones[32];",
    "uniform Camera {\n  mat4 view;\n};",
    "flat in int kind;",
    "varying highp vec2 at;",
    "in vec3 position, normal;",
    "layout(location = 0) out vec4 color;",
    "layout(std140, binding = 1) uniform Light\n{\n  vec4 at;\n};",
    "layout(local_size_x = 64) in;",
    "precision mediump float;",
    "cbuffer Scene : register(b0) {\n  float4x4 view;\n};",
    "cbuffer Scene\n{\n  float4x4 view;\n};",
    "Texture2D<float4> image : register(t0);",
    "float4 main(float2 at) : SV_Target {\n  return 0;\n}",
    "float4 main(float2 at) : SV_TARGET\n{\n  return 0;\n}",
    "vec3 mixed(in vec3 a, float b) {\n  return a * b;\n}",
)
CODE = (
    "struct layout { int in, out, uniform, varying; };",
    "uniform<double> layout(double in, double out);",
    "uniform make(int low, int high);",
    "int in = 0, out = 1;",
    "layout(in, out);",
    "patch.apply(in, out);",
    "smooth = flat;",
    "int seek_to(in struct stream *s,\n            in long offset,\n            out long *found);",
    "register_t a : 4;",
    "value = is_open ? SV_ONE : SV_TWO;",
    "Reader::Reader() : SV_Base(1) {}",
    "#define version 3",
    'const char *text = "#version 330\\n" "uniform vec4 color;\\n" "in vec2 at;\\n";',
    'const char *text = R"(\n#version 330\nuniform vec4 color;\nin vec2 at;\n)";',
    "const char *text = SHADER(\nuniform vec4 color;\nin vec2 at;\n);",
    "asm {\n  in al, dx\n}",
)


def _shapes(text: str) -> CodeShapes:
    return shapes_of(lexed(CPP_LEXER, text + "\n"), True)


@pytest.mark.parametrize("text", DECLARATIONS)
def test_a_declaration_of_a_shader_is_one(text: str) -> None:
    assert _shapes(f"int a;\n{text}\nint b;").num_shader_lines == 1


@pytest.mark.parametrize("text", CODE)
def test_code_with_the_words_of_shaders_has_none(text: str) -> None:
    assert _shapes(f"int a;\n{text}\nint b;").num_shader_lines == 0


def test_two_declarations_or_a_version_make_a_shader() -> None:
    one, two, version = (
        _shapes(f"{start}\nvoid main() {{\n  shade();\n}}")
        for start in (DECLARATIONS[0], "\n".join(DECLARATIONS[:2]), "#version 330 core")
    )

    assert (one.is_shader, two.is_shader, version.is_shader) == (False, True, True)
    assert (one.foreign_fraction, two.foreign_fraction) == (0, 1)
    assert two.most_foreign == "declarations of a shader, 2"


def test_what_is_not_read_as_c_is_no_shader() -> None:
    assert not shapes_of(lexed(CPP_LEXER, "#version 330\n"), False).is_shader


def test_numbers_of_tokens_are_those_of_the_other_loops() -> None:
    numbers = shader_lines.IDENTIFIER_KIND, shader_lines.LINE_STATE
    assert numbers == (text_loops.IDENTIFIER, text_loops.LINE)
