"""Statements that only hold strings, and arguments that a macro makes into one: texts of other languages among names of C.

Import this module late: numba takes half a second. Each loop reads every token a fixed number of times.
"""
# ruff: noqa: SIM110  (a loop compiles, a generator does not)

import numpy as np

from pipeline.lexing.jit import compiled

NUMBERS = _OTHER_SIGN, _IDENTIFIER, _STRING, _DIRECTIVE, _LINE = 0, 1, 3, 6, 1
"""Kinds and a state of `text_loops`, which a test compares: machine code is cached by its own file."""
_OPEN, _CLOSE, _HASH, _SEMICOLON, _OPEN_BRACE, _CLOSE_BRACE, _NEWLINE, _BACKSLASH = b"()#;{}\n\\"


@compiled
def quote_arguments(data, tokens, hashes, kinds, define):  # type: ignore[no-untyped-def]
    """Make the arguments of macros that only quote them strings: `#define TEXT(a) "..." #a`. `define` is the hash of that word."""
    num = len(tokens)
    names = np.zeros(16, np.uint64)
    num_names = index = 0
    while index < num:
        if hashes[index] == define and index > 0 and data[tokens[index - 1, 0]] == _HASH and index + 1 < num:
            if num_names < len(names) and _quotes(data, tokens, kinds, index + 2):
                names[num_names] = hashes[index + 1]
                num_names += 1
            index += 2
            continue
        is_quoting = False
        if kinds[index] == _IDENTIFIER and index + 1 < num and data[tokens[index + 1, 0]] == _OPEN:
            for place in range(num_names):
                is_quoting = is_quoting or names[place] == hashes[index]
        index += 1
        if is_quoting:
            depth = 1
            index += 1
            while index < num and depth > 0:
                depth += (data[tokens[index, 0]] == _OPEN) - (data[tokens[index, 0]] == _CLOSE)
                if depth > 0:
                    kinds[index] = _STRING
                index += 1


@compiled
def _quotes(data, tokens, kinds, index):  # type: ignore[no-untyped-def]
    """Return whether a macro has parameters, and only strings and `#` with a name follow in its line."""
    num = len(tokens)
    if index >= num or data[tokens[index, 0]] != _OPEN:
        return False
    while index < num and data[tokens[index, 0]] != _CLOSE:
        if _is_new_line(data, tokens, index):
            return False
        index += 1
    index += 1
    num_quoted = 0
    while index < num and not _is_new_line(data, tokens, index):
        if data[tokens[index, 0]] == _HASH and tokens[index, 1] - tokens[index, 0] == 1 and index + 1 < num:
            num_quoted += 1
            index += 1
        elif kinds[index] != _STRING:
            return False
        index += 1
    return num_quoted > 0


@compiled
def _is_new_line(data, tokens, index):  # type: ignore[no-untyped-def]
    """Return whether a line end without a backslash is before a token."""
    for place in range(tokens[index - 1, 1], tokens[index, 0]):
        if data[place] == _NEWLINE and data[place - 1] != _BACKSLASH:
            return True
    return False


@compiled
def framing_bytes(data, tokens, kinds, before):  # type: ignore[no-untyped-def]
    """Return the bytes of names and signs in statements of which strings are half at least: `const char *a = "...";`.

    A statement ends with a semicolon, a brace, or the line of a directive.
    """
    found = framing = in_strings = total = 0
    is_line = False
    for index in range(len(tokens)):
        first, kind = data[tokens[index, 0]], kinds[index]
        length = tokens[index, 1] - tokens[index, 0]
        is_hash = before[index] == _LINE and first == _HASH
        if is_hash or (is_line and before[index] == _LINE):
            found += framing if 2 * in_strings >= total else 0
            framing = in_strings = total = 0
            is_line = is_hash
        total += length
        in_strings += length if kind == _STRING else 0
        framing += length if kind in (_IDENTIFIER, _OTHER_SIGN) else 0
        if kind == _DIRECTIVE or (not is_line and kind != _STRING and first in (_SEMICOLON, _OPEN_BRACE, _CLOSE_BRACE)):
            found += framing if 2 * in_strings >= total and kind != _DIRECTIVE else 0
            framing = in_strings = total = 0
    return found + (framing if 2 * in_strings >= total else 0)
