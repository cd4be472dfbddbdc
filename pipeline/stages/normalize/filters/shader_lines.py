"""Declarations that only languages of shaders have, GLSL and HLSL: what else is in such a text is C by its shapes.

Import this module late: numba takes half a second. The loop reads every token a fixed number of times.
"""
# ruff: noqa: SIM109  (comparisons with each of a few compile to better code than `in`)

import numpy as np

from pipeline.lexing.jit import compiled

IDENTIFIER_KIND, LINE_STATE = 1, 1
"""Numbers of `text_loops`, which a test compares: machine code is cached by its own file, and holds no value of another."""
QUALIFIER, DIRECTION, TYPE, LAYOUT, PRECISION, BUFFER, REGISTER, VERSION = (1 << bit for bit in range(8))
"""Flags of a word."""
WORDS = (
    (QUALIFIER, "uniform varying attribute in out flat centroid smooth noperspective patch"),
    (DIRECTION, "in out inout"),
    (TYPE, "vec2 vec3 vec4 ivec2 ivec3 ivec4 uvec2 uvec3 uvec4 mat2 mat3 mat4 sampler2D samplerCube sampler3D"),
    (TYPE, "float2 float3 float4 float2x2 float3x3 float4x4 half2 half3 half4 Texture2D SamplerState"),
    (LAYOUT, "layout"),
    (PRECISION, "precision highp mediump lowp"),
    (BUFFER, "cbuffer tbuffer"),
    (REGISTER, "register packoffset"),
    (VERSION, "version"),
)

_OPEN, _CLOSE, _HASH, _SEMICOLON, _OPEN_BRACE, _COMMA, _COLON, _EQUAL, _OPEN_BRACKET = b"()#;{,:=["
_QUESTION, _CAPITAL_S, _CAPITAL_V, _UNDERSCORE = b"?SV_"


@compiled
def shader_lines(data, tokens, kinds, flags, before):  # type: ignore[no-untyped-def]
    """Count the lines outside of parentheses that C has none of; `#version 330` is two. `flags` are of WORDS."""
    num = len(tokens)
    found = depth = index = 0
    while index < num:
        end = index + 1
        while end < num and before[end] != LINE_STATE:
            end += 1
        is_outside = depth == 0
        if data[tokens[index, 0]] == _HASH:
            is_version = index + 2 < end and flags[index + 1] & VERSION and 48 <= data[tokens[index + 2, 0]] <= 57
            found += 2 if is_outside and is_version else 0
        else:
            is_one = _is_declaration(data, tokens, kinds, flags, index, min(end + 1, num))
            is_choice = False
            for place in range(index, end):
                is_choice = is_choice or data[tokens[place, 0]] == _QUESTION
                depth += (data[tokens[place, 0]] == _OPEN) - (data[tokens[place, 0]] == _CLOSE and depth > 0)
                is_one = is_one or (not is_choice and _is_marked(data, tokens, flags, place, end))
            found += is_outside and is_one
        index = end
    return found


@compiled
def _is_declaration(data, tokens, kinds, flags, begin, end):  # type: ignore[no-untyped-def]
    """Return whether a line is `uniform vec4 a;`, `in vec3 a`, `layout(...) in`, `precision highp float;` or `cbuffer A {`."""
    first = flags[begin]
    if first & LAYOUT and begin + 1 < end and data[tokens[begin + 1, 0]] == _OPEN:
        place = begin + 2
        while place < end and data[tokens[place, 0]] != _CLOSE:
            place += 1
        return place + 1 < end and (flags[place + 1] & QUALIFIER) != 0
    place = begin
    while place < end and flags[place] & (QUALIFIER | PRECISION):
        place += 1
    num_before = place - begin
    while place < end and kinds[place] == IDENTIFIER_KIND:
        place += 1
    num_names = place - begin - num_before
    sign = data[tokens[place, 0]] if place < end else np.uint8(0)
    if first & BUFFER:
        return num_names == 2 and (sign == _OPEN_BRACE or sign == _COLON)
    if first & PRECISION:
        return num_before == 2 and num_names == 1 and sign == _SEMICOLON
    is_ended = sign == _SEMICOLON or sign == _EQUAL or sign == _OPEN_BRACKET or sign == _COMMA
    return num_before > 0 and ((num_names == 2 and is_ended) or (num_names == 1 and sign == _OPEN_BRACE))


@compiled
def _is_marked(data, tokens, flags, place, end):  # type: ignore[no-untyped-def]
    """Return whether a token begins `(in vec3 a`, `: register(t0)` or `: SV_Target`."""
    if place + 2 > end - (data[tokens[place, 0]] != _COLON):
        return False
    first, start, stop = data[tokens[place, 0]], tokens[place + 1, 0], tokens[place + 1, 1]
    if first == _OPEN or first == _COMMA:
        return (flags[place + 1] & DIRECTION) != 0 and (flags[place + 2] & TYPE) != 0
    if first != _COLON or tokens[place, 1] - tokens[place, 0] > 1:
        return False
    if flags[place + 1] & REGISTER:
        return place + 2 < end and data[tokens[place + 2, 0]] == _OPEN
    is_semantic = stop - start > 3 and data[start] == _CAPITAL_S and data[start + 1] == _CAPITAL_V
    return is_semantic and data[start + 2] == _UNDERSCORE and (place + 2 == end or data[tokens[place + 2, 0]] != _OPEN)
