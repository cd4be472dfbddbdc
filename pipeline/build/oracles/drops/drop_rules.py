"""DROP_RULES: for a reason of a drop, what an ASCII text with unified line ends must be to be dropped for it.

Those of sizes, lines and letters are the whole rule, written again. The others bound it: a text that a filter drops always fulfills
them, and most texts do not. They share no code with the filters.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise, takewhile
from typing import Any

import re2

DropRule = Callable[[bytes, str, Mapping[str, Any]], bool]
"""Given a text, its path, and the limits of the filters."""
OPENING = 2_000
"""Characters in which a file says what made it."""
_MADE_BY_PROGRAM = (
    b"generated",
    b"by midl",
    b"do not edit",
    b"do not modify",
    b"will be lost",
    b"by f2c",
    b"$antlr",
    b"#line ",
)
_OF_GENERATORS = b"""
    yy YYBISON Bison YYBYACC FLEX_SCANNER
    _test_eof _trans_keys _key_offsets goto asso_values WORD_LENGTH SWIG __pyx_ _dim1 i__1 f2c _2eproto
    __descriptor xfer VerifyTableStart qt_meta_ qt_resource setupUi setState( _tmp MIDL_ soap_in_ asn_DEF_ vlS VL_
    rtb_ _DW. FUN_ DAT_ sub_ dword_ w2c_ wasm_rt_ _closure nimZeroMem NimStringDesc C_word
""".split()
_MADE_OF_FILES = (b"amalgamat", b"begin file", b'#line 1 "', b"single-file")
_PREFIXES, _INFIXES = ("moc_", "qrc_", "ui_"), (".pb.", ".tab.", ".yy.")
_OBJECTIVE_C = (b"@interface", b"@protocol", b"@implementation")
_BLANKS = b" \t\n"
_CONTROLS = bytes(code for code in (*range(0x20), 0x7F) if code not in b"\t\n\r\f\v")
_SHORTEST_RUN, _PADDING = 32, 2
_LEAST_DATA, _LEAST_TABLES = 1_024, 4_096
_LITERAL_SHARE, _MANY = 0.35, 16_384
"""Share of literals in lines of one shape, and the bytes from which such lines need none."""
_SHORT = 20
"""Lines below which a share of lines is taken of this many."""
_NUMBERS = re.compile(rb"\b\d[\w.]*+|\.\d[\w.]*+|'.*'|[-+,{}()\[\]'.]")
_STRINGS = re.compile(rb"(?<!\w)\w*+\".*")
"""Pieces of data. Quotes are looked for in the rest of a line, once a line; a word is read once, from where it begins."""
_NOT_C = re2.compile(
    rb"^\s*[#<%.]|^\s*;\s*\S|^[-+=!]|[$@`\\#']|\]\s*[A-Za-z\x80-\xff]|\w+\s+\w+\s+\w+\s+\w|\b\d[\w.]*\s+[\w\".]|[A-Za-z_]\s+\.?\d|\b[A-Za-z_]\w*\.\d|\"\s+[a-z]|\"\s*\.?\d|:=|=>|=~|[=!]=="
    rb"|\b(?:if|while|for|switch)\s*(?:[^\s(]|$)|^\s*\w*\"|^\s*(?:public|private|protected)\s+\w|^\s*const\s+\w+\s*[=:]"
    rb"|^\s*(?:SUBROUTINE|CALL|END|IMPLICIT|INTRINSIC)\s+\w|\w\s*<-\s|->\s*$|^\s*(?:-|\d[\w.]*)\s*:|[*+?]\s*\|"
)
_NAMES = re2.compile(rb"^\s*[A-Za-z_]\w*(?:\s+[\"\w]|\s*$)")
_OF_C = re2.compile(
    rb"^\s*(?:int|void|char|bool|double|float|long|unsigned|return|static|struct|class|typedef|using|namespace|template|case|else"
    rb"|const|auto|inline|virtual|typename|friend|throw|size_t|constexpr|extern|explicit|[A-Z_0-9]+)\b"
)
_DIRECTIVE = re2.compile(rb"^\s*#\s*(?:include|define|undef|if|ifdef|ifndef|else|elif|endif|pragma|error)\b")
_OF_SHADERS = re2.compile(
    rb"(?m)^\s*(?:layout\s*\(|(?:uniform|varying|attribute|in|out|flat|centroid|smooth|noperspective|patch|precision|[ct]buffer)\s+\w)"
    rb"|:\s*(?:register|packoffset|SV_)|[(,]\s*(?:in|out|inout)\s+\w"
)
_OF_GLSL = re2.compile(rb"#\s*version\s+\d")
_QUOTES = re2.compile(rb"#\s*define\s+\w+\([^)]*\)[^\n]*#")
_GIVES = re2.compile(rb"=\s*[A-Z][A-Z0-9_]+\s*\(([^;]*);")
_OPEN_END = re2.compile(rb"[\w\")]\s*$|'")
_BASE64, _SIGNS = re2.compile(rb"\+([A-Za-z0-9+/]{3,})"), re2.compile(rb"\+A[A-H][A-Za-z0-9+/]-")
_DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_RUNS = bytes(code if chr(code).isalnum() or code in b"+/" else ord(" ") for code in range(128)) + b" " * 128


def is_shifted(text: bytes) -> bool:
    """Return whether escape sequences switch an ASCII text to other characters, so that it is measured as these."""
    return b"\x1b$" in text


def _may_be_shifted(text: bytes) -> bool:
    """Return whether an ASCII text can mean Chinese in HZ, or other characters in UTF-7."""
    is_hz = b"~{" in text and b"~}" in text
    return is_hz or any(_is_above_ascii(run) for run in _BASE64.findall(text)) or len(_SIGNS.findall(text)) > 1


def _is_above_ascii(run: bytes) -> bool:
    """Return whether the base64 after a plus sign is whole units of 16 bits, and one of them no ASCII."""
    bits = "".join(f"{_DIGITS.index(digit):06b}" for digit in run)
    end = len(bits) - len(bits) % 16
    is_whole = len(bits) - end < 6 and "1" not in bits[end:]
    return is_whole and any(bits[at : at + 16] > f"{0x7F:016b}" for at in range(0, end, 16))


def _lines(text: bytes) -> list[bytes]:
    """Return the lines of a text; what follows the last line end is one, unless that is nothing."""
    found = text.split(b"\n")
    return found if len(found) == 1 or found[-1] else found[:-1]


def _repeats(text: bytes, path: str, limits: Mapping[str, Any]) -> bool:
    found = [line for line in map(bytes.strip, text.split(b"\n")) if len(line) > 2]
    return bool(found) and bool(round(len(set(found)) / len(found), 6) < limits["min_unique_line_fraction"])


def _has_few_letters(text: bytes, path: str, limits: Mapping[str, Any]) -> bool:
    share = sum(character.isalnum() for character in text.decode("ascii")) / max(1, _num_visible(text))
    return bool(round(share, 6) < limits["min_alphanumeric_fraction"])


def _has_long_mean(text: bytes, path: str, limits: Mapping[str, Any]) -> bool:
    found = _lines(text)
    return bool(round(sum(map(len, found)) / len(found), 6) > limits["max_mean_line"])


def _is_mostly_comments(text: bytes, path: str, limits: Mapping[str, Any]) -> bool:
    """Return whether the share of comments can be too large: what follows any `//` or `/*` counts, also in a literal.

    The filter leaves the license header out, with the guards before it: only without those can the share be larger than of all.
    """
    spans = list(_comment_spans(text))
    num_comments = sum(_num_visible(text[start:end]) for start, end in spans)
    num_judged = len(text.translate(None, _BLANKS + b"\f\v\\")) - _num_in_guards(text, spans)
    share = min(1.0, num_comments / max(1, num_judged))
    return bool(round(share, 6) > limits["max_comment_fraction"])


def _num_in_guards(text: bytes, spans: list[tuple[int, int]]) -> int:
    """Count the characters of the directives before the first code."""
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    bare = b"".join(
        text[start:end] if index % 2 == 0 else b"\n" * (b"\n" in text[start:end])
        for index, (start, end) in enumerate(pairwise(edges))
    )
    directives = takewhile(lambda line: line[:1] in (b"", b"#"), map(bytes.strip, bare.split(b"\n")))
    return sum(map(_num_visible, directives))


def _comment_spans(text: bytes) -> Iterator[tuple[int, int]]:
    """Yield what comments can cover, as spans that do not overlap: from each mark to the end that comes after it."""
    line_ends = [at for at in _places(text, b"\n") if text[at - 1 : at] != b"\\"]
    block_ends = [at + 2 for at in _places(text, b"*/")]
    covered = 0
    for start in sorted((*_places(text, b"//"), *_places(text, b"/*"))):
        ends, after = (line_ends, start) if text[start + 1] == ord("/") else (block_ends, start + len("/**/"))
        index = bisect_left(ends, after)
        end = ends[index] if index < len(ends) else len(text)
        if end > covered:
            yield max(start, covered), end
            covered = end


def _places(text: bytes, mark: bytes) -> Iterator[int]:
    at = text.find(mark)
    while at >= 0:
        yield at
        at = text.find(mark, at + 1)


def _num_visible(text: bytes) -> int:
    return len(text.translate(None, _BLANKS))


def _says_a_program_made_it(text: bytes, path: str, limits: Mapping[str, Any]) -> bool:
    name = path.rpartition("/")[2]
    is_named = name.startswith(_PREFIXES) or any(infix in name for infix in _INFIXES)
    is_of_generator = any(word in text for word in _OF_GENERATORS) or any(
        line[:1] == b"#" and line[1:].lstrip()[:1].isdigit() for line in text.split(b"\n")
    )
    return bool(is_named + is_of_generator + _num_signs(text, _MADE_BY_PROGRAM) > limits["max_generated_markers"])


def _num_signs(text: bytes, signs: tuple[bytes, ...]) -> int:
    opening = text[:OPENING].lower()
    return sum(map(opening.count, signs))


def _has_runs(text: bytes, path: str, limits: Mapping[str, Any]) -> bool:
    runs = [len(run) + _PADDING for run in text.translate(_RUNS).split(b" ") if len(run) >= _SHORTEST_RUN]
    return bool(sum(runs) > limits["max_encoded_run"])


def _is_objective_c(text: bytes, path: str, limits: Mapping[str, Any]) -> bool:
    number = sum(line.startswith(_OBJECTIVE_C) for line in text.split(b"\n"))
    return path.endswith(".h") and b"@end" in text and bool(number > limits["max_objective_c_lines"])


def _bare(text: bytes) -> bytes:
    """Return a text without what comments can cover, but with its line ends."""
    edges = [0, *(edge for span in _comment_spans(text) for edge in span), len(text)]
    parts = (
        text[start:end] if index % 2 == 0 else b" " + b"\n" * text[start:end].count(b"\n")
        for index, (start, end) in enumerate(pairwise(edges))
    )
    return b"".join(parts)


def _num_matched(pattern: Any, text: bytes) -> int:
    return sum(map(len, pattern.findall(text.replace(b"\\\n", b"  "))))


def _holds_numbers(text: bytes, path: str, limits: Mapping[str, Any]) -> bool:
    """Return whether numbers, what joins them, and as many bytes of strings can be the share; comments may hold numbers too."""
    in_numbers = _num_matched(_NUMBERS, text)
    most = in_numbers + min(in_numbers, _num_matched(_STRINGS, text))
    return most >= _LEAST_DATA and _is_above(most, text, limits["max_numeric_fraction"])


def _holds_strings(text: bytes, path: str, limits: Mapping[str, Any]) -> bool:
    """Return whether what follows quotes, as much again around it, and what joins it, can be the share.

    Raw strings are not judged, nor what a macro quotes.
    """
    most = 2 * _num_matched(_STRINGS, text) + _num_matched(_NUMBERS, text)
    return _is_quoted_otherwise(text) or (most >= _LEAST_DATA and _is_above(most, text, limits["max_string_fraction"]))


def _holds_tables(text: bytes, path: str, limits: Mapping[str, Any]) -> bool:
    """Return whether there are literals enough for lines that are literals in part. Many lines of one shape need none."""
    most = (_num_matched(_STRINGS, text) + _num_matched(_NUMBERS, text)) / _LITERAL_SHARE
    is_enough = most >= _LEAST_TABLES and _is_above(most, text, limits["max_table_fraction"])
    return len(text) >= _LEAST_TABLES and (len(text) >= _MANY or _is_quoted_otherwise(text) or is_enough)


def _is_quoted_otherwise(text: bytes) -> bool:
    """Return whether a text can have strings without quotes in their line: raw ones, and arguments that a macro quotes."""
    joined = text.replace(b"\\\n", b"  ")
    return (
        b'R"' in text
        or bool(_QUOTES.search(joined))
        or any(found.count(b"(") >= found.count(b")") for found in _GIVES.findall(_bare(joined)))
    )


def _is_above(most: float, text: bytes, limit: float) -> bool:
    """Return whether some bytes can be more than a share of all that are in no comment."""
    return bool(round(min(1.0, most / max(1, _num_visible(_bare(text)))), 6) > limit)


def _is_no_c(text: bytes, path: str, limits: Mapping[str, Any]) -> bool:
    """Return whether enough lines can be of another language.

    A text whose comments may begin in a literal is not judged, one that has a part for an assembler, and a shader.
    """
    joined = text.replace(b"\\\n", b"  ")
    if (
        b'R"' in text
        or b"ASSEMBL" in text
        or any(set(joined[joined.rfind(b"\n", 0, at) + 1 : at]) & set(b"\"'") for at, _ in _comment_spans(joined))
    ):
        return True
    bare = _bare(joined)
    if _OF_GLSL.search(bare) or len(_OF_SHADERS.findall(bare)) > 1:
        return True
    lines = [line for line in bare.split(b"\n") if line.strip() and not _DIRECTIVE.search(line)]
    number = 0
    for before, line in pairwise([b"", *lines]):
        is_open = _OPEN_END.search(before) and line.lstrip()[:1].isalnum()
        number += bool(_NOT_C.search(line) or is_open or (_NAMES.search(line) and not _OF_C.search(line)))
    return bool(round(number / max(_SHORT, len(lines)), 6) > limits["max_foreign_line_fraction"])


DROP_RULES: Mapping[str, DropRule] = {
    "too_small": lambda text, path, limits: len(text) < limits["min_num_bytes"],
    "too_large": lambda text, path, limits: len(text) > limits["max_num_bytes"],
    "long_line": lambda text, path, limits: max(map(len, _lines(text))) > limits["max_longest_line"],
    "long_mean_line": _has_long_mean,
    "few_alphanumerics": _has_few_letters,
    "repeated_lines": _repeats,
    "mostly_comments": _is_mostly_comments,
    "generated": _says_a_program_made_it,
    "foreign_language": _is_no_c,
    "numeric_data": _holds_numbers,
    "string_data": _holds_strings,
    "tabular": _holds_tables,
    "amalgamation": lambda text, path, limits: _num_signs(text, _MADE_OF_FILES) > limits["max_amalgamation_markers"],
    "encoded_data": _has_runs,
    "objective_c": _is_objective_c,
    "undecodable": lambda text, path, limits: is_shifted(text) or _may_be_shifted(text),
    "binary": lambda text, path, limits: len(text.translate(None, _CONTROLS)) < len(text),
}
OF_COMMENTS = frozenset({"mostly_comments", "foreign_language", "numeric_data", "string_data", "tabular"})
"""Reasons whose rule knows the comments of C alone."""
