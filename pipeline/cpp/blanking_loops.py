"""Comments and literals of a text, as machine code: what stands in them is no code. Import this late: numba takes half a second.

What is not closed ends with its line, or with the text where it may hold line ends: a search never starts again behind it.
"""

import numpy as np

from pipeline.cpp.jit import compiled

_NEWLINE, _BLANK, _QUOTE, _APOSTROPHE = (ord(each) for each in "\n \"'")
_SLASH, _STAR, _BACKSLASH, _OPEN, _CLOSE, _RAW = (ord(each) for each in "/*\\()R")
_MAX_DELIMITER = 16
_ENDS_DELIMITER = np.isin(np.arange(256), [*b' \t\n\r\v\f()\\"'])


@compiled
def spaced(data):  # type: ignore[no-untyped-def]
    """The bytes with a space for each one in a comment or a literal, raw ones included. Line ends stay."""
    bare = data.copy()
    at = 0
    while at < len(data):
        end = at
        if data[at] == _SLASH:
            end = _end_of_comment(data, at, True)
        elif data[at] == _RAW:
            end = _end_of_raw(data, at)
        elif data[at] == _QUOTE or data[at] == _APOSTROPHE:
            end = _end_of_quoted(data, at)
        for place in range(at, end):
            bare[place] = _NEWLINE if data[place] == _NEWLINE else _BLANK
        at = max(end, at + 1)
    return bare


@compiled
def shortened(data):  # type: ignore[no-untyped-def]
    """The bytes with one space for each comment, string and character; the apostrophes of long numbers stay."""
    bare = np.empty(len(data), np.uint8)
    at = num = 0
    while at < len(data):
        end = at
        if data[at] == _SLASH:
            end = _end_of_comment(data, at, False)
        elif data[at] == _QUOTE:
            end = _end_of_quoted(data, at)
        elif data[at] == _APOSTROPHE:
            end = _end_of_character(data, at)
        bare[num] = data[at] if end == at else _BLANK
        num += 1
        at = max(end, at + 1)
    return bare[:num]


@compiled
def _end_of_comment(data, at, is_continued):  # type: ignore[no-untyped-def]
    """Behind the comment that begins with the slash at `at`, or `at`. If continued, a backslash takes what follows along."""
    num = len(data)
    if at + 1 == num:
        return at
    if data[at + 1] == _STAR:
        for place in range(at + 2, num - 1):
            if data[place] == _STAR and data[place + 1] == _SLASH:
                return place + 2
        return num
    if data[at + 1] != _SLASH:
        return at
    return _end_on_line(data, at + 2, _NEWLINE, is_continued)


@compiled
def _end_of_quoted(data, at):  # type: ignore[no-untyped-def]
    """Behind the closing quote of the kind at `at`, or where the line ends before one."""
    return _end_on_line(data, at + 1, data[at], True)


@compiled
def _end_on_line(data, at, closing, has_escapes):  # type: ignore[no-untyped-def]
    """Behind the closing sign, or where the line ends before one; with escapes, a backslash takes what follows along."""
    num = len(data)
    while at < num and data[at] != _NEWLINE:
        if data[at] == closing:
            return at + 1
        if has_escapes and data[at] == _BACKSLASH:
            if at + 1 == num:
                break
            at += 1
        at += 1
    return at


@compiled
def _end_of_character(data, at):  # type: ignore[no-untyped-def]
    """Behind a literal of one byte or one escaped byte, or `at`."""
    close = at + 3 if at + 1 < len(data) and data[at + 1] == _BACKSLASH else at + 2
    if close >= len(data) or data[close] != _APOSTROPHE:
        return at
    is_empty = close == at + 2 and (data[at + 1] == _APOSTROPHE or data[at + 1] == _NEWLINE)
    return at if is_empty else close + 1


@compiled
def _end_of_raw(data, at):  # type: ignore[no-untyped-def]
    """Behind the raw literal that begins with the R at `at`, or `at`."""
    num = len(data)
    if at + 1 == num or data[at + 1] != _QUOTE:
        return at
    first = opening = at + 2
    while opening < num and data[opening] != _OPEN:
        if opening - first == _MAX_DELIMITER or _ENDS_DELIMITER[data[opening]]:
            return at
        opening += 1
    if opening == num:
        return at
    length = opening - first
    for close in range(opening + 1, num - length - 1):
        if data[close] == _CLOSE and data[close + length + 1] == _QUOTE:
            equal = 0
            while equal < length and data[close + 1 + equal] == data[first + equal]:
                equal += 1
            if equal == length:
                return close + length + 2
    return num
