"""Loops over bytes, tokens and shingles, as machine code. Import this module late: numba takes half a second.

`lex` is the scanner of C and C++; the loops below `blank` are those of all lexers. All arithmetic is on integers, so the
bits are the same on every processor.
"""

import numpy as np

from pipeline.lexing.jit import compiled as _compiled

# ruff: noqa: SIM109, SIM110, SIM114  (comparisons with each of a few compile to better code than `in`)

# Kind of a byte: below 0x80 the byte itself; for the bytes of other characters, the class of the character.
WORD, DIGIT, SPACE, SIGN, REST_OF_SIGN = 0x80, 0x81, 0x82, 0x83, 0x84

_IS_WORD, _IS_DIGIT, _IS_SPACE = 1, 2, 4
_FLAGS = np.zeros(256, np.uint8)
_FLAGS[[ord(each) for each in "ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"] + [WORD]] = _IS_WORD
_FLAGS[[ord(each) for each in "0123456789"] + [DIGIT]] = _IS_WORD | _IS_DIGIT
_FLAGS[[ord(each) for each in "\t\n\v\f\r\x1c\x1d\x1e\x1f "] + [SPACE]] = _IS_SPACE

_NEWLINE, _QUOTE, _APOSTROPHE, _BACKSLASH, _SLASH, _STAR, _DOT = (ord(each) for each in "\n\"'\\/*.")
_OPEN, _CLOSE, _BLANK, _TAB = (ord(each) for each in "() \t")
_MAX_DELIMITER = 16
_FNV_BASIS, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_RUN_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

_TRIPLES = ("<<=", ">>=", "<=>", "->*", "...")
_PAIRS = (*(sign + "=" for sign in "-+*/%&|^!=<>"), "::", "->", "++", "--", "&&", "||", "<<", ">>", ".*", "##")
_THREE = np.array([int.from_bytes(each.encode(), "big") for each in _TRIPLES], np.int64)
_TWO = np.zeros(1 << 14, np.bool_)
_TWO[[ord(each[0]) << 7 | ord(each[1]) for each in _PAIRS]] = True


@_compiled
def _mix(value):  # type: ignore[no-untyped-def]
    """Apply MurmurHash3's 64-bit finalizer."""
    value = (value ^ (value >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    value = (value ^ (value >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return value ^ (value >> np.uint64(33))


@_compiled
def _add_bytes(value, data, start, end):  # type: ignore[no-untyped-def]
    """Continue FNV-1a over some bytes."""
    for place in range(start, end):
        value = (value ^ np.uint64(data[place])) * _FNV_PRIME
    return value


@_compiled
def _end_of_block_comment(kinds, at):  # type: ignore[no-untyped-def]
    num = len(kinds)
    while at + 1 < num:
        if kinds[at] == _STAR and kinds[at + 1] == _SLASH:
            return at + 2
        at += 1
    return num


@_compiled
def _end_of_literal(kinds, at, quote):  # type: ignore[no-untyped-def]
    """Return the end of a literal: after the closing quote, or at the end of its line. That ends a `//` comment."""
    num = len(kinds)
    while at < num and kinds[at] != _NEWLINE:
        if kinds[at] == quote:
            return at + 1
        if kinds[at] != _BACKSLASH:
            at += 1
        elif at + 1 < num:
            at += 2
        else:
            break
    return min(at, num)


@_compiled
def _end_of_number(kinds, at):  # type: ignore[no-untyped-def]
    num = len(kinds)
    while at < num:
        kind = kinds[at]
        following = kinds[at + 1] if at + 1 < num else np.uint8(0)
        if (kind | 0x20 == 0x65 or kind | 0x20 == 0x70) and (following == 0x2B or following == 0x2D):
            at += 2
        elif kind == _APOSTROPHE and _FLAGS[following] & _IS_WORD:
            at += 2
        elif _FLAGS[kind] & _IS_WORD or kind == _DOT:
            at += 1
        else:
            break
    return at


@_compiled
def _end_of_sign(kinds, at):  # type: ignore[no-untyped-def]
    num = len(kinds)
    first = kinds[at]
    if first >= 0x80:
        at += 1
        while at < num and kinds[at] == REST_OF_SIGN:
            at += 1
        return at
    if at + 1 < num and kinds[at + 1] < 0x80:
        pair = np.int64(first) << 8 | np.int64(kinds[at + 1])
        if at + 2 < num:
            for three in _THREE:
                if three == (pair << 8 | np.int64(kinds[at + 2])):
                    return at + 3
        if _TWO[np.int64(first) << 7 | np.int64(kinds[at + 1])]:
            return at + 2
    return at + 1


@_compiled
def _is_raw_prefix(kinds, start, end):  # type: ignore[no-untyped-def]
    """Return whether a word is R, LR, uR, UR or u8R."""
    if kinds[end - 1] != 0x52:
        return False
    length = end - start
    if length == 1:
        return True
    first = kinds[start]
    if length == 2:
        return first == 0x4C or first == 0x75 or first == 0x55
    return length == 3 and first == 0x75 and kinds[start + 1] == 0x38


@_compiled
def _raw_content(kinds, quote):  # type: ignore[no-untyped-def]
    """Return start and end of a raw string's content, and the string's end: 0 if it is not closed, -1 if none opens here."""
    num = len(kinds)
    opening = quote + 1
    while opening < num and opening - quote <= _MAX_DELIMITER:
        kind = kinds[opening]
        if kind == _OPEN:
            break
        if kind == _BLANK or kind == _CLOSE or kind == _BACKSLASH or kind == _TAB or kind == _NEWLINE or kind >= 0x80:
            return 0, 0, -1
        opening += 1
    if opening >= num or kinds[opening] != _OPEN:
        return 0, 0, -1
    length = opening - quote - 1
    for close in range(opening + 1, num - length - 1):
        if kinds[close] == _CLOSE and kinds[close + length + 1] == _QUOTE:
            equal = 0
            while equal < length and kinds[close + 1 + equal] == kinds[quote + 1 + equal]:
                equal += 1
            if equal == length:
                return opening + 1, close, close + length + 2
    return 0, 0, 0


@_compiled
def lex(data, kinds, hashes, spans, comments):  # type: ignore[no-untyped-def]
    """Fill in the hash and span of each token, and the span of each comment; return how many of both there are.

    `data` are the bytes of UTF-8, `kinds` the kind of each. The arrays to fill have a place for every byte.
    """
    num = len(kinds)
    at = num_tokens = num_comments = 0
    has_raw = True
    while at < num:
        kind = kinds[at]
        flags = _FLAGS[kind]
        start = at
        if flags & _IS_SPACE:
            at += 1
            continue
        following = kinds[at + 1] if at + 1 < num else np.uint8(0)
        if kind == _BACKSLASH and following == _NEWLINE:
            at += 2
            continue
        if kind == _SLASH and (following == _SLASH or following == _STAR):
            at = (
                _end_of_literal(kinds, at + 2, _NEWLINE)
                if following == _SLASH
                else _end_of_block_comment(kinds, at + 2)
            )
            comments[num_comments, 0], comments[num_comments, 1] = start, at
            num_comments += 1
            continue
        value = _FNV_BASIS
        hashed = start
        if flags & _IS_DIGIT or (kind == _DOT and _FLAGS[following] & _IS_DIGIT):
            at = _end_of_number(kinds, at + 1)
        elif flags & _IS_WORD:
            at += 1
            while at < num and _FLAGS[kinds[at]] & _IS_WORD:
                at += 1
            if has_raw and at < num and kinds[at] == _QUOTE and _is_raw_prefix(kinds, start, at):
                first, last, end = _raw_content(kinds, at)
                has_raw = end != 0  # after an unclosed one none is searched for: hostile text would cost its square
                if end > 0:
                    value = _add_bytes(_add_bytes(value, data, start, at + 1), data, first, last)
                    hashed, at = end - 1, end
        elif kind == _QUOTE or kind == _APOSTROPHE:
            at = _end_of_literal(kinds, at + 1, kind)
        else:
            at = _end_of_sign(kinds, at)
        hashes[num_tokens] = _mix(_add_bytes(value, data, hashed, at))
        spans[num_tokens, 0], spans[num_tokens, 1] = start, at
        num_tokens += 1
    return num_tokens, num_comments


@_compiled
def blank(data, kinds, tokens, comments):  # type: ignore[no-untyped-def]
    """Return the bytes with a space for each one in a comment or a literal but line ends; and which are code or come first."""
    bare, is_kept = data.copy(), np.ones(len(data), np.bool_)
    for index in range(len(comments)):
        _blank(bare, is_kept, comments[index, 0], comments[index, 1])
    for index in range(len(tokens)):
        first, last = kinds[tokens[index, 0]], kinds[tokens[index, 1] - 1]
        if first == _QUOTE or first == _APOSTROPHE or last == _QUOTE:
            _blank(bare, is_kept, tokens[index, 0], tokens[index, 1])
    return bare, is_kept


@_compiled
def _blank(data, is_kept, start, end):  # type: ignore[no-untyped-def]
    for place in range(start, end):
        is_kept[place] = place == start
        if data[place] != _NEWLINE:
            data[place] = _BLANK


@_compiled
def num_visible(data, spans):  # type: ignore[no-untyped-def]
    """Count the characters of each span that are not a blank, tab or line end."""
    counts = np.zeros(len(spans), np.int64)
    for index in range(len(spans)):
        count = 0
        for place in range(spans[index, 0], spans[index, 1]):
            byte = data[place]
            count += byte != _BLANK and byte != _TAB and byte != _NEWLINE and byte & 0xC0 != 0x80
        counts[index] = count
    return counts


@_compiled
def hashes_of_spans(data, spans):  # type: ignore[no-untyped-def]
    """Return the hash of each token, given by its place in the bytes."""
    hashes = np.empty(len(spans), np.uint64)
    for index in range(len(spans)):
        hashes[index] = _mix(_add_bytes(_FNV_BASIS, data, spans[index, 0], spans[index, 1]))
    return hashes


@_compiled
def _is_at(data, place, sign):  # type: ignore[no-untyped-def]
    """Return whether the bytes of a sign are at a place, which may not be near the end."""
    for offset in range(len(sign)):
        if data[place + offset] != sign[offset]:
            return False
    return True


@_compiled
def bare_comments(data, comments, is_margin_byte, opening, closing, bare):  # type: ignore[no-untyped-def]
    """Copy comments without markers and margins, a line end after each; return the number of bytes."""
    length = 0
    for index in range(len(comments)):
        start, end = comments[index, 0], comments[index, 1]
        is_block = end - start >= len(opening) + len(closing) and _is_at(data, start, opening)
        if is_block and _is_at(data, end - len(closing), closing):
            end -= len(closing)
        is_margin = True
        for place in range(start, end):
            byte = data[place]
            is_margin = is_margin and is_margin_byte[byte]
            if not is_margin:
                bare[length] = byte
                length += 1
                is_margin = byte == _NEWLINE
        bare[length] = _NEWLINE
        length += 1
    return length


@_compiled
def runs(hashes, length):  # type: ignore[no-untyped-def]
    """Return the 64-bit hash of each run of `length` tokens, in order."""
    found = np.empty(max(0, len(hashes) - length + 1), np.uint64)
    for start in range(len(found)):
        mixed = np.uint64(0)
        for offset in range(length):
            mixed = mixed * _RUN_MULTIPLIER + hashes[start + offset]
        found[start] = _mix(mixed)
    return found


@_compiled
def prefixed_runs(hashes, length, prefixes):  # type: ignore[no-untyped-def]
    """Return the runs whose leading 16 bits are set in a table."""
    every = runs(hashes, length)
    num_found = 0
    for index in range(len(every)):
        if prefixes[every[index] >> np.uint64(48)]:
            every[num_found] = every[index]
            num_found += 1
    return every[:num_found].copy()


@_compiled
def lowest(hashes, multipliers, increments):  # type: ignore[no-untyped-def]
    """Return for each permutation the lowest `fmix32(h) * multiplier + increment` modulo 2^32 over the 32-bit hashes."""
    mixed = np.empty(len(hashes), np.uint32)
    for index in range(len(hashes)):
        value = hashes[index]
        value = np.uint32((value ^ (value >> np.uint32(16))) * np.uint32(0x85EBCA6B))
        value = np.uint32((value ^ (value >> np.uint32(13))) * np.uint32(0xC2B2AE35))
        mixed[index] = value ^ (value >> np.uint32(16))
    found = np.empty(len(multipliers), np.uint32)
    for place in range(0, len(multipliers), 2):  # two at a time hide each other's latency
        first_multiplier, second_multiplier = multipliers[place], multipliers[place + 1]
        first_increment, second_increment = increments[place], increments[place + 1]
        first = second = np.uint32(0xFFFFFFFF)
        for index in range(len(mixed)):
            first = min(first, np.uint32(mixed[index] * first_multiplier + first_increment))
            second = min(second, np.uint32(mixed[index] * second_multiplier + second_increment))
        found[place], found[place + 1] = first, second
    return found
