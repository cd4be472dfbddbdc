"""Loops over the numbers of a tree, as machine code. Import this module late: numba takes half a second.

The compiled code is cached by this file alone and holds the values of its constants: those of other files are arguments.
"""

import numpy as np

from pipeline.lexing.jit import compiled

DOWN, UP = 1 << 16, (1 << 16) + 1
"""Moves of a walk: to the first child, and to the parent. A smaller number is the kind of a leaf; its end follows."""
MAX_DEPTH = 255
MAX_SIBLING_INDEX = 63

PLAIN, DOCUMENTED, COMMENT, PUNCTUATION = range(4)
"""Rows of `found`: a span, one that a comment right before it belongs to, a comment, and what belongs to the last."""
_NEWLINE, _BLANK, _TAB, _CARRIAGE_RETURN = (ord(each) for each in "\n \t\r")


@compiled
def leaf_columns(moves, buckets):  # type: ignore[no-untyped-def]
    """Return start, depth, sibling index and bucket of each leaf that owns bytes, from the moves of a walk over all nodes."""
    most = len(moves) // 2 + 1
    starts, depths = np.empty(most, np.uint32), np.empty(most, np.uint8)
    siblings, types = np.empty(most, np.uint8), np.empty(most, np.uint8)
    above = np.empty(len(moves), np.int64)  # the sibling index of the node at each depth above
    num = at = depth = sibling = 0
    start = np.int64(0)
    while at < len(moves):
        move = moves[at]
        at += 1
        if move == DOWN:
            above[depth] = sibling
            depth += 1
            sibling = 0
        elif move == UP:
            depth -= 1
            sibling = above[depth] + 1
        else:
            end = np.int64(moves[at])
            at += 1
            if end > start:
                starts[num], types[num] = start, buckets[move]
                depths[num], siblings[num] = min(depth, MAX_DEPTH), min(sibling, MAX_SIBLING_INDEX)
                num += 1
                start = end
            sibling += 1
    return starts[:num].copy(), depths[:num].copy(), siblings[:num].copy(), types[:num].copy()


@compiled
def joined_spans(content, found, blanked, kinds, max_level):  # type: ignore[no-untyped-def]
    """Return where the chunk of each span starts, its kind and its level: comments with their owners, neighbors joined.

    A row of `found` is what it is, start, end, kind and level, in the order of the text; the last one is empty and at
    its end. `blanked` are the byte ranges that are not in the tree. `kinds` are the codes of a preamble and of a
    comment, and for each kind whether it is never joined.
    """
    preamble, comment, is_separate = kinds
    spans = np.empty((len(found) + len(blanked), 4), np.int64)
    num = num_blanked = 0
    has_comment = False
    comment_start = comment_end = comment_level = 0
    for index in range(len(found)):
        what, start, end = found[index, 0], found[index, 1], found[index, 2]
        if what == PUNCTUATION:
            if num > 0 and not has_comment:
                spans[num - 1, 1] = max(spans[num - 1, 1], end)
            continue
        is_near = has_comment and not _has_lines(content, comment_end, start, 2)
        if is_near and what == COMMENT:
            comment_end = end
            continue
        has_owner = is_near and what == DOCUMENTED
        if has_owner:
            start = comment_start
        elif has_comment:
            num, num_blanked = _add_blanked(
                content, spans, num, blanked, num_blanked, (comment_start, preamble, comment_level), is_separate
            )
            num = _add(content, spans, num, (comment_start, comment_end, comment, comment_level), is_separate, False)
        ends_line = num > 0 and not _has_lines(content, spans[num - 1, 1], start, 1)
        has_comment = what == COMMENT and not ends_line
        if has_comment:
            comment_start, comment_end, comment_level = start, end, found[index, 4]
        elif what == COMMENT:
            spans[num - 1, 1] = end
        else:
            num, num_blanked = _add_blanked(
                content, spans, num, blanked, num_blanked, (start, preamble, found[index, 4]), is_separate
            )
            num = _add(content, spans, num, (start, end, found[index, 3], found[index, 4]), is_separate, not has_owner)
    spans = spans[:num]
    return _chunk_starts(content, spans), spans[:, 2].copy(), np.minimum(spans[:, 3], max_level)


@compiled
def _add_blanked(content, spans, num, blanked, num_blanked, how, is_separate):  # type: ignore[no-untyped-def]
    """Add what was blanked up to the end in `how`, of its kind and level. What is inside of a span is part of it."""
    end, kind, level = how
    while num_blanked < len(blanked) and blanked[num_blanked, 1] <= end:
        num = _add(
            content, spans, num, (blanked[num_blanked, 0], blanked[num_blanked, 1], kind, level), is_separate, True
        )
        num_blanked += 1
    return num, num_blanked


@compiled
def _add(content, spans, num, span, is_separate, may_join):  # type: ignore[no-untyped-def]
    """Add the part of a span after the last one, without the blanks at its end: directives end with their line end."""
    start, end, kind, level = span
    last_end = spans[num - 1, 1] if num else 0
    start = max(start, last_end)
    while end > start and _is_blank(content[end - 1]):
        end -= 1
    if end <= start:
        return num
    is_like = num > 0 and spans[num - 1, 2] == kind and spans[num - 1, 3] == level and not is_separate[kind]
    if may_join and is_like and not _has_lines(content, last_end, start, 2):
        spans[num - 1, 1] = end
        return num
    spans[num, 0], spans[num, 1], spans[num, 2], spans[num, 3] = start, end, kind, level
    return num + 1


@compiled
def _is_blank(byte):  # type: ignore[no-untyped-def]
    """Return `bytes.isspace` of a byte: a space, or a tab up to a carriage return."""
    return byte == _BLANK or _TAB <= byte <= _CARRIAGE_RETURN


@compiled
def _has_lines(content, start, end, wanted):  # type: ignore[no-untyped-def]
    """Return whether there are that many line ends between."""
    num = 0
    for place in range(start, end):
        if content[place] == _NEWLINE:
            num += 1
            if num == wanted:
                return True
    return False


@compiled
def _chunk_starts(content, spans):  # type: ignore[no-untyped-def]
    """Return where the chunk of each span starts: with its line if only blanks are before it there, the first with the text."""
    starts = np.zeros(len(spans), np.int64)
    for index in range(1, len(spans)):
        start, before = spans[index, 0], spans[index - 1, 1]
        line = start
        while line > before and (content[line - 1] == _BLANK or content[line - 1] == _TAB):
            line -= 1
        starts[index] = line if content[line - 1] == _NEWLINE else start
    return starts
