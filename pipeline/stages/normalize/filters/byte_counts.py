"""Counts of the bytes and lines of a text, in one pass of machine code. Import this module late: numba takes half a second."""

import numpy as np

from pipeline.lexing.jit import compiled

_NEWLINE = ord("\n")
_BLANK, _WORD = 1, 2
_KINDS = np.zeros(256, np.uint8)
_KINDS[list(b" \t\n")] = _BLANK
_KINDS[[_byte for _byte in range(256) if _byte >= 128 or chr(_byte).isalnum()]] = _WORD


@compiled
def count_bytes(data):  # type: ignore[no-untyped-def]
    """Return the letters and digits, the bytes that are no blanks, the lines, and the bytes of the longest and of all lines.

    Bytes beyond ASCII count as letters. Text after the last line end is a line, also an empty one.
    """
    num_words = num_blanks = num_lines = longest = start = 0
    for place in range(len(data)):
        kind = _KINDS[data[place]]
        num_words += kind == _WORD
        num_blanks += kind == _BLANK
        if data[place] == _NEWLINE:
            num_lines += 1
            longest = max(longest, place - start)
            start = place + 1
    num_in_lines = len(data) - num_lines
    if start < len(data) or len(data) == 0:
        num_lines += 1
        longest = max(longest, len(data) - start)
    return num_words, len(data) - num_blanks, num_lines, longest, num_in_lines
