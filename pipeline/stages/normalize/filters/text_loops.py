"""Loops over the tokens of a text, as machine code: which bytes are data, and which lines are no C.

Import this module late: numba takes half a second. Each loop reads every token a fixed number of times.
"""
# ruff: noqa: SIM102, SIM109, SIM110  (comparisons with each of a few compile to better code than `in`)

import numpy as np

from pipeline.lexing.jit import compiled

_BLOCK, _ASSEMBLER_PART = 1, 2
"""Numbers of `assembly_parts`, which a test compares: machine code is cached by its own file, and holds no value of another."""

# Kind of a token.
OTHER_SIGN, IDENTIFIER, NUMBER, STRING, CHARACTER, JOINER, DIRECTIVE = range(7)
"""JOINER is what is between the literals of a table; DIRECTIVE is any token of a directive that is no `#define`."""

# Flags of a word, one bit each, as `foreign_lines` sets them.
KEYWORD, CONDITION, STARTER, ALONE, ACCESS, DIRECTIVE_NAME, AFTER_CONDITION, CONST = (1 << bit for bit in range(8))
OF_TYPE = STARTER | CONST
"""Flags of a starter of a type or value, after whose name no arguments stand: where they do, it is a type of C++."""
CONJUNCTION = ALONE | CONST
"""Flags of a word that is between operands, and in prose: no other word has both."""

_NO_LINE, LINE, _CONTINUED = range(3)
"""The state before a token: no line end, a line end, a line end after a backslash."""

SHAPES = (
    "no line of another language",
    "a directive that C does not have",
    "words in a row",
    "a number before an operand",
    "a word before a number",
    "a string before an operand",
    "a word in apostrophes",
    "a character that C does not have",
    "an operator that C does not have",
    "a condition without parentheses",
    "a statement that C does not have",
    "an access before a declaration",
    "a constant without a type",
    "markup",
    "a mark at the beginning of the line",
    "a string before a colon",
    "no semicolon between operands",
    "a bracket before a name",
    "a dot before a command",
)
"""Names of lines by their number: 0 is C."""
(
    _C, _UNKNOWN_DIRECTIVE, _WORDS, _NUMBER_OPERAND, _WORD_NUMBER, _STRING_OPERAND, _APOSTROPHES, _CHARACTER, _OPERATOR,
    _CONDITION, _STATEMENT, _ACCESS, _CONSTANT, _MARKUP, _MARK, _PAIR, _NO_SEMICOLON, _BRACKET_NAME, _DOT_COMMAND,
) = range(len(SHAPES))  # fmt: skip

_NEWLINE, _QUOTE, _APOSTROPHE, _BACKSLASH, _DOT, _COMMA, _HASH, _SEMICOLON = b"\n\"'\\.,#;"
_OPEN, _CLOSE, _NOT, _LESS, _MORE, _EQUAL, _COLON, _TILDE = b"()!<>=:~"
_PLUS, _MINUS, _PERCENT, _SLASH, _QUESTION, _STAR, _BAR = b"+-%/?*|"
_OPEN_BRACKET, _CLOSE_BRACKET, _UNDERSCORE = b"[]_"
_IS_JOINER, _IS_FOREIGN, _IS_LETTER, _IS_DIGIT = (np.zeros(256, np.bool_) for _ in range(4))
_IS_JOINER[list(b",{}()[]+-")] = True
_IS_FOREIGN[list(b"$@`\\#")] = True
_IS_LETTER[list(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")] = True
_IS_LETTER[128:] = True
_IS_DIGIT[list(b"0123456789")] = True

_FNV_BASIS, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_MIN_LITERALS = 16
"""Literals of a run with nothing but joiners between them, from which it is a table."""
_MIN_LINES = 16
"""Lines of equal shapes from which they are a table, if literals are a part of them or they are many."""
_MIN_STATEMENTS = 128
"""The same of lines that end with a semicolon."""
_MIN_CASES = 512
"""The same of lines that begin with `case`: a switch over opcodes is code, and has one for each."""
_CASE = tuple(b"case")
_MAX_PERIOD = 4
_MIN_LITERAL_SHARE = 0.35
_MIN_NAMED_SHARE = 0.5
"""The same of lines that define or invoke macros, unless they are many: hand-written lists give each literal its name."""
_MANY_BYTES = 16_384
_MAX_CHARACTER = 8
"""Bytes of a character literal that begins with no escape: longer ones are strings of another language, or apostrophes."""
_WORDS_IN_A_ROW = 4
_MIN_LINES_OF_C = 20
"""Lines of C from which what is for an assembler alone is not judged."""


@compiled
def _kind(data, start, end):  # type: ignore[no-untyped-def]
    first = data[start]
    if _IS_DIGIT[first] or (first == _DOT and end - start > 1 and _IS_DIGIT[data[start + 1]]):
        return NUMBER
    if first == _QUOTE or (data[end - 1] == _QUOTE and _IS_LETTER[first]):
        return STRING
    if _IS_LETTER[first]:
        return IDENTIFIER
    if first == _APOSTROPHE:
        return CHARACTER
    return JOINER if end - start == 1 and _IS_JOINER[first] else OTHER_SIGN


@compiled
def _is_macro(data, start, end):  # type: ignore[no-untyped-def]
    """Return whether a word has no small letter: by custom it is a macro, which may be anywhere as keywords do."""
    for place in range(start, end):
        if data[place] >= 97:
            return False
    return end - start > 1


@compiled
def _before(data, start, end):  # type: ignore[no-untyped-def]
    """Return what is between two tokens."""
    for place in range(start, end):
        if data[place] == _NEWLINE:
            return _CONTINUED if place > 0 and data[place - 1] == _BACKSLASH else LINE
    return _NO_LINE


@compiled
def flags_of(hashes, words, flags):  # type: ignore[no-untyped-def]
    """Return the flags of each token, from a table of hashes whose length is a power of two."""
    found = np.zeros(len(hashes), np.uint8)
    mask = np.uint64(len(words) - 1)
    for index in range(len(hashes)):
        place = hashes[index] & mask
        while flags[place] != 0:
            if words[place] == hashes[index]:
                found[index] = flags[place]
                break
            place = (place + np.uint64(1)) & mask
    return found


@compiled
def describe_tokens(data, tokens, hashes, words, flags, define):  # type: ignore[no-untyped-def]
    """Return the kind of each token, its flags, and what is before it. `define` is the hash of that word."""
    num = len(tokens)
    kinds, before = np.empty(num, np.uint8), np.empty(num, np.uint8)
    found = flags_of(hashes, words, flags)
    is_directive = False
    for index in range(num):
        start = tokens[index, 0]
        kinds[index] = _kind(data, start, tokens[index, 1])
        if kinds[index] == IDENTIFIER and found[index] == 0 and _is_macro(data, start, tokens[index, 1]):
            found[index] = KEYWORD
        before[index] = LINE if index == 0 else _before(data, tokens[index - 1, 1], start)
        if before[index] == LINE:
            has_name = index + 1 < num and (found[index + 1] & DIRECTIVE_NAME) != 0
            is_directive = data[start] == _HASH and has_name and hashes[index + 1] != define
        if is_directive:
            kinds[index] = DIRECTIVE
    return kinds, found, before


@compiled
def data_bytes(data, tokens, hashes, kinds, before):  # type: ignore[no-untyped-def]
    """Return the bytes of all tokens, of tables of numbers, of strings and their tables, and of both and lines of one shape."""
    is_table = np.zeros(len(tokens), np.bool_)
    numeric = text = 0
    index = 0
    while index < len(tokens):
        if kinds[index] < NUMBER or kinds[index] == DIRECTIVE:
            index += 1
            continue
        first, in_strings, in_numbers, num_literals = index, 0, 0, 0
        while index < len(tokens) and NUMBER <= kinds[index] < DIRECTIVE:
            length = tokens[index, 1] - tokens[index, 0]
            in_strings += length if kinds[index] == STRING else 0
            in_numbers += length if kinds[index] == NUMBER or kinds[index] == CHARACTER else 0
            num_literals += kinds[index] != JOINER
            index += 1
        if num_literals < _MIN_LITERALS:
            text += in_strings
            continue
        is_table[first:index] = True
        num_bytes = 0
        for place in range(first, index):
            num_bytes += tokens[place, 1] - tokens[place, 0]
        if in_strings > in_numbers:
            text += num_bytes
        else:
            numeric += num_bytes
    _mark_equal_lines(data, tokens, hashes, kinds, before, is_table)
    total = table = 0
    for index in range(len(tokens)):
        length = tokens[index, 1] - tokens[index, 0]
        total += length
        table += length if is_table[index] or kinds[index] == STRING else 0
    return total, numeric, text, table


@compiled
def _is_case(data, start, end):  # type: ignore[no-untyped-def]
    if end - start != len(_CASE):
        return False
    for place in range(len(_CASE)):
        if data[start + place] != _CASE[place]:
            return False
    return True


@compiled
def _mark_equal_lines(data, tokens, hashes, kinds, before, is_table):  # type: ignore[no-untyped-def]
    """Mark the tokens of many lines that repeat the shapes of one to four lines, if literals are a part of them.

    Statements are a table from many more lines, definitions and invocations of macros from more literals, and definitions only by
    their literals: all are often written by hand.
    """
    starts = np.empty(len(tokens) + 1, np.int64)
    shapes = np.empty(len(tokens), np.uint64)
    num_bytes, in_literals = np.zeros(len(tokens), np.int64), np.zeros(len(tokens), np.int64)
    num = 0
    for index in range(len(tokens)):
        kind = kinds[index]
        if before[index] != _NO_LINE:
            starts[num], shapes[num] = index, _FNV_BASIS
            num += 1
        length = tokens[index, 1] - tokens[index, 0]
        num_bytes[num - 1] += length
        is_literal = kind == NUMBER or kind == STRING or kind == CHARACTER
        in_literals[num - 1] += length if is_literal else 0
        first = data[tokens[index, 0]]
        if first != _MINUS and first != _PLUS:  # the sign of a number
            value = np.uint64(kind) if is_literal or kind == IDENTIFIER else hashes[index]
            shapes[num - 1] = (shapes[num - 1] ^ value) * _FNV_PRIME
    starts[num] = len(tokens)
    for period in range(1, _MAX_PERIOD + 1):
        run = 0
        for line in range(period, num + 1):
            if line < num and shapes[line] == shapes[line - period]:
                run += 1
                continue
            first = line - run - period
            last = data[tokens[starts[line] - 1, 0]]
            is_statement = last == _SEMICOLON
            least = _MIN_STATEMENTS if is_statement else _MIN_LINES
            if _is_case(data, tokens[starts[first], 0], tokens[starts[first], 1]):
                least = _MIN_CASES
            if run + period >= least and run > 0:
                total, literal = num_bytes[first:line].sum(), in_literals[first:line].sum()
                is_many = total >= _MANY_BYTES
                is_definition = data[tokens[starts[first], 0]] == _HASH
                is_named = is_definition or (last == _CLOSE and kinds[starts[first]] == IDENTIFIER)
                share = _MIN_NAMED_SHARE if is_named and not is_many else _MIN_LITERAL_SHARE
                if literal >= share * total or (is_many and not is_definition):
                    is_table[starts[first] : starts[line]] = True
            run = 0


@compiled
def foreign_lines(data, tokens, kinds, flags, before, assembly):  # type: ignore[no-untyped-def]
    """Count the lines of each of SHAPES; those of directives are no lines. A line ends where no backslash continues it.

    `assembly` is the part of each token. Lines of blocks of assembly are C; what is for an assembler alone counts if there are few
    other lines.
    """
    counts, aside = np.zeros(len(SHAPES), np.int64), np.zeros(len(SHAPES), np.int64)
    index = depth = 0
    # Whether the line before ends in an operand, in a question mark, may be a type, or goes on with a list.
    is_operand = is_choice = is_type = is_list = False
    while index < len(tokens):
        end = index + 1
        while end < len(tokens) and before[end] != LINE:
            end += 1
        first = data[tokens[index, 0]]
        if kinds[index] == DIRECTIVE or (
            first == _HASH
            and (end == index + 1 or flags[index + 1] & DIRECTIVE_NAME or tokens[index, 1] - tokens[index, 0] == 2)
        ):
            is_operand = False
            index = end
            continue
        if assembly[index] == _BLOCK:
            counts[_C] += 1
            is_operand = False
            index = end
            continue
        shape = _UNKNOWN_DIRECTIVE if first == _HASH else _shape_within(data, tokens, kinds, flags, index, end, depth)
        if shape == _C:
            shape = _shape_of_start(data, tokens, kinds, flags, index, end)
            if shape == _ACCESS and is_list:  # of base classes
                shape = _C
        if shape == _C and first == _SEMICOLON and depth == 0 and index + 1 < end and kinds[index + 1] == IDENTIFIER:
            shape = _MARK
        if shape == _C and kinds[index] == NUMBER and not is_choice and depth == 0 and index + 2 < end:
            colon = tokens[index + 1]
            shape = _PAIR if data[colon[0]] == _COLON and colon[1] - colon[0] == 1 else _C
        if shape == _C and is_operand and depth == 0:
            is_name = kinds[index] == IDENTIFIER and not flags[index] & KEYWORD
            following = data[tokens[index + 1, 0]] if index + 1 < end else np.uint8(0)
            is_function = is_type and (following == _OPEN or following == _COLON or following == _LESS)
            shape = _NO_SEMICOLON if (is_name and not is_function) or kinds[index] == NUMBER else _C
        (aside if assembly[index] == _ASSEMBLER_PART else counts)[shape] += 1
        is_type, is_call = True, _is_call(data, tokens, kinds, flags, index, end) and depth == 0
        for place in range(index, end):
            byte = data[tokens[place, 0]]
            is_type = is_type and byte != _EQUAL and byte != _DOT and not NUMBER <= kinds[place] <= CHARACTER
            depth += byte == _OPEN
            depth -= byte == _CLOSE and depth > 0
        if shape != _C:
            depth = 0
        is_list = data[tokens[end - 1, 0]] == _COMMA or data[tokens[end - 1, 0]] == _COLON
        is_open = IDENTIFIER <= kinds[end - 1] <= CHARACTER and not flags[end - 1] & KEYWORD
        is_operand = is_open or (is_call and depth == 0)
        is_choice = data[tokens[end - 1, 0]] == _QUESTION
        index = end
    return counts if counts[_C] >= _MIN_LINES_OF_C else counts + aside


@compiled
def _is_equal(data, token, other):  # type: ignore[no-untyped-def]
    """Return whether two tokens of one length are equal."""
    for offset in range(token[1] - token[0]):
        if data[token[0] + offset] != data[other[0] + offset]:
            return False
    return True


@compiled
def _is_call(data, tokens, kinds, flags, begin, end):  # type: ignore[no-untyped-def]
    """Return whether a line is a name and its arguments, without a semicolon, and no macro.

    A macro begins with a capital, or is in the line after too.
    """
    is_name = kinds[begin] == IDENTIFIER and not flags[begin] & KEYWORD and data[tokens[begin, 0]] >= 97
    if is_name and end < len(tokens) and tokens[end, 1] - tokens[end, 0] == tokens[begin, 1] - tokens[begin, 0]:
        is_name = not _is_equal(data, tokens[begin], tokens[end])
    return is_name and begin + 2 < end and data[tokens[begin + 1, 0]] == _OPEN and data[tokens[end - 1, 0]] == _CLOSE


@compiled
def _shape_within(data, tokens, kinds, flags, begin, end, depth):  # type: ignore[no-untyped-def]
    """Return what two tokens beside each other say of their line."""
    num_words = 0
    for index in range(begin, end):
        start, stop, kind = tokens[index, 0], tokens[index, 1], kinds[index]
        is_name = kind == IDENTIFIER and not flags[index] & KEYWORD
        if is_name:
            num_words += 1
        elif num_words < 2 or flags[index] & CONJUNCTION != CONJUNCTION:  # prose goes on after `and`
            num_words = 0
        if num_words >= _WORDS_IN_A_ROW:
            return _WORDS
        if kind == CHARACTER and stop - start > _MAX_CHARACTER and data[start + 1] != _BACKSLASH:
            return _APOSTROPHES
        if _IS_FOREIGN[data[start]] and (data[start] != _BACKSLASH or depth == 0):  # commands of Doxygen in arguments
            return _CHARACTER
        depth += (data[start] == _OPEN) - (data[start] == _CLOSE)
        if index + 1 == end:
            break
        following, byte, is_apart = kinds[index + 1], data[tokens[index + 1, 0]], tokens[index + 1, 0] > stop
        is_next_name = following == IDENTIFIER and not flags[index + 1] & KEYWORD
        if kind == NUMBER and is_apart and (is_next_name or following == NUMBER or following == STRING):
            return _NUMBER_OPERAND
        if is_name and following == NUMBER:
            return _WORD_NUMBER
        if data[start] == _CLOSE_BRACKET and is_next_name and byte != _UNDERSCORE and index > begin:
            before = data[tokens[index - 1, 0]]
            if before != _OPEN_BRACKET and before != _CLOSE_BRACKET:  # `delete[] a`, `[[maybe_unused]] int a`
                return _BRACKET_NAME
        if kind == STRING and (following == NUMBER or (is_next_name and is_apart and byte >= 97)):
            return _STRING_OPERAND
        if flags[index] & CONDITION and not flags[index + 1] & AFTER_CONDITION:
            if byte != _OPEN and byte != _NOT and (following != IDENTIFIER or byte >= 97):
                return _CONDITION
        if (
            kind == OTHER_SIGN
            and following == OTHER_SIGN
            and not is_apart
            and _is_foreign_operator(data, start, stop, byte)
        ):
            return _OPERATOR
        if byte == _BAR and (data[start] == _STAR or data[start] == _PLUS or data[start] == _QUESTION):
            if stop - start == 1 and tokens[index + 1, 1] - tokens[index + 1, 0] == 1:  # `( a )* | b` of a grammar
                return _OPERATOR
    return _C


@compiled
def _is_foreign_operator(data, start, stop, byte):  # type: ignore[no-untyped-def]
    """Return whether two characters without a blank are `:=`, `=>`, `=~`, `===` or `!==`."""
    first = data[start]
    if stop - start == 1:
        return (first == _COLON and byte == _EQUAL) or (first == _EQUAL and (byte == _MORE or byte == _TILDE))
    return (first == _EQUAL or first == _NOT) and data[start + 1] == _EQUAL and byte == _EQUAL


@compiled
def _is_command(data, tokens, kinds, flags, begin, end):  # type: ignore[no-untyped-def]
    """Return whether a line that begins with a dot is of an assembler or a linker: `.align 4`, `. = 0`; and no member."""
    if kinds[begin] == NUMBER or tokens[begin, 1] - tokens[begin, 0] > 1 or flags[begin + 1] & KEYWORD:
        return False
    if kinds[begin + 1] != IDENTIFIER:
        return kinds[begin + 1] == OTHER_SIGN and data[tokens[begin + 1, 0]] == _EQUAL
    if begin + 2 == end:
        return False
    third, is_apart = data[tokens[begin + 2, 0]], tokens[begin + 2, 0] > tokens[begin + 1, 1]
    is_operand = IDENTIFIER <= kinds[begin + 2] <= STRING
    return is_operand or (is_apart and (third == _DOT or third == _COLON or third == _PERCENT))


@compiled
def _shape_of_start(data, tokens, kinds, flags, begin, end):  # type: ignore[no-untyped-def]
    """Return what the first tokens of a line say of it."""
    start, first, flag = tokens[begin, 0], data[tokens[begin, 0]], flags[begin]
    if first == _PERCENT and (start + 1 == len(data) or (data[start + 1] != _COLON and data[start + 1] != _MORE)):
        return _MARK  # and no digraph
    is_leftmost = start == 0 or data[start - 1] == _NEWLINE
    if is_leftmost and (first == _PLUS or first == _MINUS or first == _EQUAL):
        is_number = begin + 1 < end and kinds[begin + 1] == NUMBER and tokens[begin + 1, 0] == tokens[begin, 1]
        return _C if is_number else _MARK  # C begins no line with another character in its first column
    if first == _MINUS and begin + 1 < end and data[tokens[begin + 1, 0]] == _COLON:
        return _MARK
    if is_leftmost and first == _NOT and begin + 1 < end and tokens[begin + 1, 0] > tokens[begin, 1]:
        return _MARK
    if first == _DOT and begin + 1 < end and _is_command(data, tokens, kinds, flags, begin, end):
        return _DOT_COMMAND
    if begin + 1 == end:
        return _STATEMENT if flag & ALONE and not flag & KEYWORD else _C
    kind, byte = kinds[begin + 1], data[tokens[begin + 1, 0]]
    third = data[tokens[begin + 2, 0]] if begin + 2 < end else np.uint8(0)
    is_name = kind == IDENTIFIER and not flags[begin + 1] & KEYWORD
    if flag & STARTER and not flag & KEYWORD and (kind == IDENTIFIER or kind == STRING):
        return _C if flag & CONST and third == _OPEN else _STATEMENT
    if flag & ACCESS and kind == IDENTIFIER and third != _COLON:
        return _ACCESS
    if (
        flag & CONST
        and is_name
        and (third == _EQUAL or third == _COLON)
        and tokens[begin + 2, 1] - tokens[begin + 2, 0] == 1
    ):
        return _CONSTANT
    if first == _LESS and tokens[begin, 1] == tokens[begin + 1, 0]:
        if kind == IDENTIFIER or byte == _SLASH or byte == _QUESTION or byte == _NOT:
            return _MARKUP
    if kinds[begin] == IDENTIFIER and byte == _LESS and third == _MINUS and begin + 3 < end:
        sign = tokens[begin + 2]
        if sign[0] == tokens[begin + 1, 1] and sign[1] < tokens[begin + 3, 0]:  # `x <- y`
            return _OPERATOR
    last = tokens[end - 1]
    if last[1] - last[0] == 2 and data[last[0]] == _MINUS and data[last[0] + 1] == _MORE:  # `f(x) ->`
        return _OPERATOR
    if kinds[begin] == STRING and byte == _COLON and tokens[begin + 1, 1] - tokens[begin + 1, 0] == 1:
        return _PAIR
    return _C
