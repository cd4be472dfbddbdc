"""Assembly inside of C: which tokens are of a block such as `__asm { ... }`, or of a part that is for an assembler alone.

Headers for both have such a part, below a condition that names the assembler (`__ASSEMBLER__`, `__ASSEMBLY__`).
"""
# ruff: noqa: SIM110  (a loop compiles, a generator does not)

import numpy as np

from pipeline.lexing.jit import compiled

NO_ASSEMBLY, BLOCK, ASSEMBLER_PART = range(3)

_HASH, _NOT, _OPEN_BRACE, _CLOSE_BRACE, _UNDERSCORE = b"#!{}_"
_ASM, _ASSEMBL, _IF, _ELSE, _ELIF, _ENDIF = (
    np.frombuffer(word, np.uint8) for word in (b"asm", b"ASSEMBL", b"if", b"else", b"elif", b"endif")
)


@compiled
def assembly_parts(data, tokens, before, line):  # type: ignore[no-untyped-def]
    """Return the part of each token. `before` is `line` where a token is the first of a line that no backslash continues."""
    num = len(tokens)
    parts = np.zeros(num, np.uint8)
    index = depth = part_depth = block_end = 0  # of conditions; that of the one that names the assembler, or 0
    is_part = False
    while index < num:
        end = index + 1
        while end < num and before[end] != line:
            end += 1
        if data[tokens[index, 0]] == _HASH and index + 1 < end:
            start, stop = tokens[index + 1, 0], tokens[index + 1, 1]
            if _begins(data, start, stop, _IF):
                depth += 1
                if part_depth == 0 and _names(data, tokens, index + 2, end):
                    part_depth = depth
                    is_part = not (stop - start == 6 or _is_negated(data, tokens, index + 2, end))  # `ifndef`
            elif depth == part_depth and (_begins(data, start, stop, _ELSE) or _begins(data, start, stop, _ELIF)):
                is_part = not is_part
            elif _begins(data, start, stop, _ENDIF):
                if depth == part_depth:
                    part_depth, is_part = 0, False
                depth -= depth > 0
        elif index >= block_end:
            block_end = _block_end(data, tokens, index, end)
        parts[index:end] = BLOCK if index < block_end else (ASSEMBLER_PART if is_part else NO_ASSEMBLY)
        index = end
    return parts


@compiled
def _begins(data, start, stop, word):  # type: ignore[no-untyped-def]
    """Return whether a token begins with a word."""
    if stop - start < len(word):
        return False
    for offset in range(len(word)):
        if data[start + offset] != word[offset]:
            return False
    return True


@compiled
def _names(data, tokens, begin, end):  # type: ignore[no-untyped-def]
    """Return whether a token names the assembler, after any underscores."""
    for index in range(begin, end):
        start, stop = tokens[index, 0], tokens[index, 1]
        while start < stop and data[start] == _UNDERSCORE:
            start += 1
        if _begins(data, start, stop, _ASSEMBL):
            return True
    return False


@compiled
def _is_negated(data, tokens, begin, end):  # type: ignore[no-untyped-def]
    for index in range(begin, end):
        if data[tokens[index, 0]] == _NOT:
            return True
    return False


@compiled
def _block_end(data, tokens, begin, end):  # type: ignore[no-untyped-def]
    """Return the end of a block of assembly that begins in a line, or 0."""
    for index in range(begin, min(end, len(tokens) - 1)):
        if data[tokens[index + 1, 0]] == _OPEN_BRACE and _is_asm(data, tokens[index, 0], tokens[index, 1]):
            depth = 0
            for place in range(index + 1, len(tokens)):
                depth += data[tokens[place, 0]] == _OPEN_BRACE
                depth -= data[tokens[place, 0]] == _CLOSE_BRACE
                if depth == 0:
                    return place + 1
            return len(tokens)
    return 0


@compiled
def _is_asm(data, start, stop):  # type: ignore[no-untyped-def]
    """Return whether a word is `asm`, after any underscores."""
    while start < stop and data[start] == _UNDERSCORE:
        start += 1
    return _begins(data, start, min(stop, start + 3), _ASM) and (stop == start + 3 or data[start + 3] == _UNDERSCORE)
