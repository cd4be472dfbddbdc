"""Statements that only hold strings, and arguments that a macro makes into one: texts of other languages among names of C.

Import this module late: numba takes half a second. Each loop reads every token a fixed number of times.
"""
# ruff: noqa: SIM109, SIM110  (loops and single comparisons compile, or to better code)

import numpy as np

from pipeline.lexing.jit import compiled

NUMBERS = _OTHER_SIGN, _IDENTIFIER, _STRING, _DIRECTIVE, _LINE = 0, 1, 3, 6, 1
"""Kinds and a state of `text_loops`, which a test compares: machine code is cached by its own file."""
_OPEN, _CLOSE, _HASH, _SEMICOLON, _OPEN_BRACE, _CLOSE_BRACE, _EQUAL, _NEWLINE, _BACKSLASH = b"()#;{}=\n\\"
_COMMA, _OPEN_BRACKET, _CAPITAL, _SMALL = b",[Aa"


@compiled
def quote_arguments(data, tokens, hashes, kinds, define):  # type: ignore[no-untyped-def]
    """Make the arguments of macros that only quote them strings: `#define TEXT(a) "..." #a`. `define` is the hash of that word.

    Arguments without a semicolon are names. A macro that hands its arguments to such a macro quotes them too, and so does one
    in capitals of another file that gives a value: only a lambda has a semicolon there.
    """
    num = len(tokens)
    names = np.zeros(16, np.uint64)
    num_names = index = 0
    while index < num:
        if hashes[index] == define and index > 0 and data[tokens[index - 1, 0]] == _HASH and index + 2 < num:
            if num_names < len(names) and _quotes(data, tokens, hashes, names[:num_names], index + 2):
                names[num_names] = hashes[index + 1]
                num_names += 1
            index += 2
            continue
        is_known = _is_among(names[:num_names], hashes[index])
        is_value = index > 0 and data[tokens[index - 1, 0]] == _EQUAL and _is_in_capitals(data, tokens[index])
        index += 1
        if (is_known or is_value) and index < num and data[tokens[index, 0]] == _OPEN:
            end, depth, is_text, is_code = index + 1, 1, False, False
            while end < num and depth > 0:
                first = data[tokens[end, 0]]
                depth += (first == _OPEN) - (first == _CLOSE)
                is_text = is_text or first == _SEMICOLON
                is_argument = data[tokens[end - 1, 0]] == _OPEN or data[tokens[end - 1, 0]] == _COMMA
                is_code = is_code or (is_argument and (first == _OPEN_BRACKET or first == _OPEN_BRACE))
                end += 1
            if is_text and (is_known or not is_code):
                kinds[index + 1 : end - 1] = _STRING
                index = end


@compiled
def _is_among(names, value):  # type: ignore[no-untyped-def]
    for name in names:
        if name == value:
            return True
    return False


@compiled
def _is_in_capitals(data, token):  # type: ignore[no-untyped-def]
    for place in range(token[0], token[1]):
        if data[place] >= _SMALL:
            return False
    return data[token[0]] >= _CAPITAL and token[1] - token[0] > 1


@compiled
def _quotes(data, tokens, hashes, names, index):  # type: ignore[no-untyped-def]
    """Return whether a macro has parameters, and what follows in its line quotes one and does nothing else with it, or one of
    some names is in it.
    """
    num = len(tokens)
    if data[tokens[index, 0]] != _OPEN:
        return False
    while index < num and data[tokens[index, 0]] != _CLOSE:
        if _is_new_line(data, tokens, index):
            return False
        index += 1
    index += 1
    quoted = np.uint64(0)
    is_quoted = False
    begin = index
    while index < num and not _is_new_line(data, tokens, index):
        if _is_among(names, hashes[index]):
            return True
        if data[tokens[index, 0]] == _HASH and tokens[index, 1] - tokens[index, 0] == 1 and index + 1 < num:
            quoted, is_quoted = hashes[index + 1], True
        index += 1
    num_uses = 0
    for place in range(begin, index):
        num_uses += hashes[place] == quoted
    return is_quoted and num_uses == 1


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

    A statement ends with a semicolon, a brace, or the line of a directive. The head of a function that only returns such a
    statement is a part of it, if strings are half of both.
    """
    found = framing = in_strings = total = head = last = 0
    is_line = False
    for index in range(len(tokens)):
        first, kind = data[tokens[index, 0]], kinds[index]
        length = tokens[index, 1] - tokens[index, 0]
        is_hash = before[index] == _LINE and first == _HASH
        if is_hash or (is_line and before[index] == _LINE):
            found += framing if 2 * in_strings >= total else 0
            framing = in_strings = total = head = last = 0
            is_line = is_hash
        is_list = first == _OPEN_BRACE and index > 0 and data[tokens[index - 1, 0]] == _EQUAL
        is_brace = kind != _STRING and not is_list and first in (_OPEN_BRACE, _CLOSE_BRACE)
        if is_brace and first == _CLOSE_BRACE and total == 0 and last >= head:
            found += head
        total += length
        in_strings += length if kind == _STRING else 0
        framing += length if kind in (_IDENTIFIER, _OTHER_SIGN) else 0
        if kind == _DIRECTIVE or (not is_line and kind != _STRING and (is_brace or first == _SEMICOLON)):
            is_text = 2 * in_strings >= total and kind != _DIRECTIVE
            found += framing if is_text else 0
            if is_brace and first == _OPEN_BRACE:
                head, last = framing, 0
            elif is_text and last == 0:
                last = in_strings - framing
            else:
                head = 0
            framing = in_strings = total = 0
    return found + (framing if 2 * in_strings >= total else 0)
