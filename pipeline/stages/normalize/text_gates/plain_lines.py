"""Lines of a text without the signs of comments, as machine code. Import this module late: numba takes half a second."""

import numpy as np

from pipeline.lexing.jit import compiled

_NEWLINE, _SPACE = ord("\n"), ord(" ")
_IS_SPACE = np.zeros(256, np.bool_)
_IS_SPACE[[_byte for _byte in range(128) if chr(_byte).isspace()]] = True
"""Blanks of ASCII, as `str.split` divides words at them."""


@compiled
def write_plain_lines(data, is_sign, plain, lengths):  # type: ignore[no-untyped-def]
    """Write the lines of a text in ASCII, without signs at both ends, words one blank apart and without empty lines.

    Return the bytes and the lines written: `lengths` has the bytes of each line of the text, also of those that are empty then.
    """
    num_bytes = num_lines = begin = 0
    size = len(data)
    while begin <= size:
        end = begin
        while end < size and data[end] != _NEWLINE:
            end += 1
        first, last = begin, end
        while first < last and is_sign[data[first]]:
            first += 1
        while last > first and is_sign[data[last - 1]]:
            last -= 1
        start = num_bytes + (num_bytes > 0)
        stop = start
        is_apart = False
        for place in range(first, last):
            if _IS_SPACE[data[place]]:
                is_apart = stop > start
            else:
                if is_apart:
                    plain[stop] = _SPACE
                    stop += 1
                    is_apart = False
                plain[stop] = data[place]
                stop += 1
        lengths[num_lines] = stop - start
        num_lines += 1
        if stop > start:
            if num_bytes > 0:
                plain[num_bytes] = _NEWLINE
            num_bytes = stop
        begin = end + 1
    return num_bytes, num_lines
