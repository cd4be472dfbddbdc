"""Filters: each measures a text and drops the file if the value breaks a limit. All values are stored as scores.

To add one, register it in FILTERS, and add its limit to FilterParams and its band to DropBands; one that a program registers
has both itself, as `bound` and `band`.

Sources: bigcode-dataset and OpenCoder's `code_filter_config.py`, less the rules that drop good headers (few lines,
TODO, entropy).
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from pathlib import PurePosixPath

import numpy as np
import re2
from numpy.typing import NDArray

from pipeline.core.params import field_of
from pipeline.core.registry import Registry
from pipeline.lexing.language_lexers import lexer_of
from pipeline.lexing.languages import C_OR_CPP, CPP, C, language_of
from pipeline.lexing.lexer import Lexer, lexed
from pipeline.stages.normalize.drop import Drop
from pipeline.stages.normalize.filters.code_shapes import CodeShapes, shapes_of
from pipeline.stages.normalize.filters.generated_signs import generator_of
from pipeline.stages.normalize.params import FilterParams

_SHAPED_LIKE_C = frozenset({C.name, C_OR_CPP.name, CPP.name})
"""Languages by whose grammar a line is one of another language. Others may be read by the same lexer."""
_NOT_ALPHANUMERIC = bytes(code for code in range(128) if not chr(code).isalnum())
_NUM_OPENING_CHARACTERS = 2_000
MIN_TABLE_BYTES = 4_096
"""Bytes of data of any kind below which a text has no tables: names of errors, commands of a language."""

# Only whole claims count, not a sentence about what the program itself generates (197 files of osmium have one).
_GENERATED = re.compile(
    r"do not (?:edit|modify)(?: it| this| the| file)*"
    r"(?: by hand| manually| directly|[.!]| ?\*/|,? (?:it (?:is|was) )?auto)"
    r"|(?:machine|auto(?:matically|-|matic)?)[ -]?generated\b.{0,30}do not"
    r"|^[^\w\n]*(?:this (?:file|header|source|code) (?:is|was|has been) |file |code |\w[\w/-]*(?:\.[\w/-]+)+[.:]? +)?"
    r"(?:auto(?:matically|-|matic)?[ -]?)?"
    r"generated (?:by|from|using) "
    r"|\b(?:this )?(?:file|header|source|code) (?:is|was|has been) (?:an? )?"
    r"(?:machine|auto(?:matically)?)[ -]?generated"
    r"|^[^\w\n]*auto(?:matically|-|matic)?[ -]?generated (?:file|code|on)\b"
    r"|@generated\b",
    re.IGNORECASE | re.MULTILINE,
)
_OF_GENERATED = ("generated", "do not edit", "do not modify")
_GENERATED_NAME = re.compile(r"^(?:moc_|qrc_|ui_).*|.*\.pb\.(?:h|cc|c|cpp|hpp)$|.*\.(?:tab|yy)\.(?:c|h|cc|hh|cpp|hpp)$")
_AMALGAMATED = re.compile(
    r"\b(?:is|was) (?:an? |the )?(?:\w[\w-]* )?amalgamat(?:ed|ion)\b"
    r"|^[^\w\n]*(?:\w[\w-]* ){0,2}amalgamat(?:ed|ion) (?:[\w+]+ )?(?:files?|sources?|of|from|headers?)\b"
    r"|^/\*+ *begin file [\w./-]+\.\w|^#line 1 \"|single-file \w+ library",
    re.IGNORECASE | re.MULTILINE,
)
_OF_AMALGAMATED = ("amalgamat", "begin file", "#line 1", "single-file")
_MIN_ENCODED_SHARE = 0.1
_LONG_RUN = 8_192
"""Characters from which a run counts in any text: a chain of certificates has fewer."""
_ENCODED = re2.compile(r"[A-Za-z0-9+/]{32,}={0,2}")
# A necessary condition, several times as fast.
_CAN_HOLD_RUN = re2.compile(rb"[A-Za-z0-9+/]{32}")
_BETWEEN_LITERALS = re.compile(r"(?:[\s\"',\\]|\\[nr])*")
_OBJECTIVE_C = ("@interface", "@protocol", "@implementation")
_MIN_OBJECTIVE_C_SHARE = 0.05
"""Share of the lines of a header from which its declarations of Objective-C count: a header of C has some for one platform."""


@dataclass(frozen=True)
class MeasuredText:
    """A text that filters measure."""

    path: str
    text: str
    content: bytes = field(repr=False)

    @classmethod
    def of(cls, path: str, text: str) -> "MeasuredText":
        """Return the text of a path."""
        return cls(path, text, text.encode())

    @cached_property
    def shapes(self) -> CodeShapes:
        """Counts of its tokens: data, and lines of another language."""
        language = language_of(self.path)
        return shapes_of(lexed(self.lexer, self.text), language is None or language.name in _SHAPED_LIKE_C)

    @cached_property
    def opening(self) -> str:
        """The characters in which a file says what made it, in small letters."""
        return self.text[:_NUM_OPENING_CHARACTERS].lower()

    @cached_property
    def lexer(self) -> Lexer:
        """The lexer of the file's language."""
        return lexer_of(self.path)

    @cached_property
    def line_lengths(self) -> NDArray[np.int64]:
        """Bytes of each line, without its end. Text after the last line end is a line."""
        ends = np.flatnonzero(np.frombuffer(self.content, np.uint8) == ord("\n"))
        if not self.content.endswith(b"\n"):
            ends = np.append(ends, len(self.content))
        ends[1:] -= ends[:-1] + 1  # the right side is computed before anything is written
        return ends


def num_bytes(text: MeasuredText) -> float:
    """Return the size of the text, in bytes of UTF-8."""
    return len(text.content)


def longest_line(text: MeasuredText) -> float:
    """Return the bytes of the longest line."""
    return int(text.line_lengths.max(initial=0))


def mean_line(text: MeasuredText) -> float:
    """Return the mean length of a line, in bytes."""
    return float(text.line_lengths.mean()) if len(text.line_lengths) else 0.0


def alphanumeric_fraction(text: MeasuredText) -> float:
    """Return the share of letters and digits among the bytes that are no blanks. Bytes beyond ASCII count as letters."""
    num_visible = len(text.content) - sum(map(text.content.count, (b" ", b"\n", b"\t")))
    return len(text.content.translate(None, _NOT_ALPHANUMERIC)) / max(1, num_visible)


def unique_line_fraction(text: MeasuredText) -> float:
    """Return the share of distinct lines among those of more than two characters: braces alone repeat in all good code."""
    lines = [line for line in map(bytes.strip, text.content.split(b"\n")) if len(line) > 2]
    return len(set(lines)) / len(lines) if lines else 1.0


def comment_fraction(text: MeasuredText) -> float:
    """Return the share of characters in comments among all after the license header; blanks do not count."""
    start = text.lexer.license_header_end(text.text)
    num_all = _num_visible(text.text[start:])
    return text.lexer.num_visible_in_comments(text.text, start) / num_all if num_all else 0.0


def generated_markers(text: MeasuredText) -> float:
    """Count the signs of a program's output: the file's name, a claim in its leading comments, what only one program writes."""
    is_named = _GENERATED_NAME.match(PurePosixPath(text.path).name) is not None
    return is_named + _count_in_leading_comments(_GENERATED, _OF_GENERATED, text) + bool(generator_of(text.content))


def _generator(text: MeasuredText) -> str:
    """Name what says that a program wrote a text."""
    if _GENERATED_NAME.match(PurePosixPath(text.path).name):
        return "by its name"
    return generator_of(text.content) or "by its leading comments"


def amalgamation_markers(text: MeasuredText) -> float:
    """Count the claims in the leading comments that many files were joined into this one."""
    return _count_in_leading_comments(_AMALGAMATED, _OF_AMALGAMATED, text)


def encoded_run(text: MeasuredText) -> float:
    """Return the characters of the longest run of base64 or hexadecimal digits, joined over string literals and line ends.

    0 of a run that is a small part of the text, such as a certificate in a test.
    """
    longest = length = previous_end = 0
    if not _CAN_HOLD_RUN.search(text.content):
        return 0
    for match in _ENCODED.finditer(text.text):
        if len(set(match[0])) < 8 or match[0].isdigit():  # rulers such as ///////, digits of pi
            continue
        joined = _BETWEEN_LITERALS.fullmatch(text.text, previous_end, match.start())
        length = length + len(match[0]) if joined and previous_end else len(match[0])
        longest, previous_end = max(longest, length), match.end()
    return longest if longest >= min(_MIN_ENCODED_SHARE * len(text.text), _LONG_RUN) else 0


def objective_c_lines(text: MeasuredText) -> float:
    """Count the lines that begin an Objective-C declaration in a `.h` file, if the declarations are a good part of it."""
    if not text.path.endswith(".h") or "@end" not in text.text:
        return 0
    lines = text.text.split("\n")
    num_declarations = num_inside = num_ended = 0
    begin: int | None = None
    for number, line in enumerate(lines):
        if line.startswith(_OBJECTIVE_C) and ";" not in line:
            num_declarations += 1
            begin = number if begin is None else begin
        elif line[:4] == "@end" and not line[4:5].isalnum() and begin is not None:
            num_inside, num_ended, begin = num_inside + number + 1 - begin, num_declarations, None
    return num_ended if num_inside >= _MIN_OBJECTIVE_C_SHARE * len(lines) else 0


def numeric_fraction(text: MeasuredText) -> float:
    """Return the share of tables of numbers in the code, by bytes of tokens; 0 of few."""
    return text.shapes.data_fraction(text.shapes.numeric)


def string_fraction(text: MeasuredText) -> float:
    """Return the share of strings in the code, by bytes of tokens; 0 of few."""
    return text.shapes.data_fraction(text.shapes.strings)


def table_fraction(text: MeasuredText) -> float:
    """Return the share of data of any kind, and of lines of one shape with literals; 0 below MIN_TABLE_BYTES."""
    return text.shapes.data_fraction(text.shapes.tables, MIN_TABLE_BYTES)


def foreign_line_fraction(text: MeasuredText) -> float:
    """Return the share of lines, directives left out, that no C or C++ has."""
    return text.shapes.foreign_fraction


@dataclass(frozen=True)
class Filter:
    """A filter: its name is the drop reason; `limit` is the field of FilterParams that its measure must not break."""

    name: str
    measure: Callable[[MeasuredText], float]
    limit: str
    why: str
    other_score: str = ""
    """Name of the score, if the limit is that of another measure."""
    bound: float | None = None
    """The limit itself, of a filter that a program registers and FilterParams has no field for."""
    band: float = 0.0
    """Largest share of the files that it may drop, of a filter that a program registers and DropBands has no field for."""
    explain: Callable[[MeasuredText], str] | None = None
    """Says more about a text that it drops."""
    version: int = 1
    """Raised by a program that changes what its filter measures."""

    @property
    def identity(self) -> str:
        """Numbers that the parts depend on: the bound. The band is a limit of a gate and moves no part."""
        return "" if self.bound is None else f"bound {self.bound:g}"

    @property
    def score(self) -> str:
        """The name of the measure in the scores and in reasons of drops: that of its limit without `min_` or `max_`."""
        return self.other_score or self.limit.partition("_")[2]

    def limit_of(self, params: FilterParams) -> float:
        """Return the limit. Raises ParamsError if the Params have no such field."""
        return float(field_of(params, self.limit, f"filter {self.name}")) if self.bound is None else self.bound

    def is_broken(self, value: float, limit: float) -> bool:
        """Return whether a value breaks the limit: fields named `min_...` are lower bounds, `max_...` upper bounds."""
        breaks = operator.lt if self.limit.startswith("min_") else operator.gt
        return bool(breaks(value, limit))


def _is_other_score(one: Filter, other: Filter) -> bool:
    return one.score == other.score and one.measure is not other.measure


# The first filter that is broken gives the drop reason.
FILTERS = Registry(
    "filter",
    Filter("too_small", num_bytes, "min_num_bytes", "A few bytes hold nothing to learn from."),
    Filter("too_large", num_bytes, "max_num_bytes", "Tables, amalgamations and generated parsers."),
    Filter("long_line", longest_line, "max_longest_line", "Minified or generated text."),
    Filter("long_mean_line", mean_line, "max_mean_line", "Embedded data (tables, blobs) rather than code."),
    Filter("few_alphanumerics", alphanumeric_fraction, "min_alphanumeric_fraction", "Tables of punctuation, art."),
    Filter("repeated_lines", unique_line_fraction, "min_unique_line_fraction", "Unrolled or generated text."),
    Filter("mostly_comments", comment_fraction, "max_comment_fraction", "Prose, or code that was commented out."),
    Filter(
        "generated",
        generated_markers,
        "max_generated_markers",
        "The output of a program repeats its template.",
        explain=_generator,
    ),
    Filter("amalgamation", amalgamation_markers, "max_amalgamation_markers", "Copies of other files."),
    Filter("encoded_data", encoded_run, "max_encoded_run", "Embedded binary data."),
    Filter("objective_c", objective_c_lines, "max_objective_c_lines", "Another language with the same extension."),
    Filter(
        "foreign_language",
        foreign_line_fraction,
        "max_foreign_line_fraction",
        "A text in no C or C++, whatever its suffix says.",
        explain=lambda text: text.shapes.most_foreign,
    ),
    Filter("numeric_data", numeric_fraction, "max_numeric_fraction", "Tables of numbers with hardly any code."),
    Filter("string_data", string_fraction, "max_string_fraction", "Texts and data in strings with hardly any code."),
    Filter("tabular", table_fraction, "max_table_fraction", "Rows of one shape: data, or the output of a program."),
    is_in_parts=True,
    conflict=lambda entry, other: f"score {entry.score}" if _is_other_score(entry, other) else "",
)


class Scores(Mapping[str, float]):
    """The value of every filter's measure by the measure's name, rounded to six digits. Each is measured at its first use."""

    def __init__(self, text: MeasuredText) -> None:
        self.text = text
        self._measures = {each.score: each.measure for each in FILTERS}
        self._values: dict[str, float] = {}

    def __getitem__(self, name: str) -> float:
        if name not in self._values:
            self._values[name] = round(self._measures[name](self.text), 6)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._measures)

    def __len__(self) -> int:
        return len(self._measures)


def score(path: str, text: str) -> Scores:
    """Return the scores of a text."""
    return Scores(MeasuredText.of(path, text))


def first_broken(
    scores: Mapping[str, float],
    params: FilterParams,
    is_released: Callable[[str], bool] = lambda name: False,
    text: MeasuredText | None = None,
) -> Drop | None:
    """Return the drop by the first filter that is broken and not released, with value and limit; None if all hold.

    `is_released` is called for broken filters alone. Of a text given, the detail says what the filter can explain.
    """
    for each in FILTERS:
        value, limit = scores[each.score], each.limit_of(params)
        if each.is_broken(value, limit) and not is_released(each.name):
            more = f": {each.explain(text)}" if text is not None and each.explain is not None else ""
            return Drop(each.name, f"{each.score} is {value:g}, {each.limit} is {limit:g}{more}")
    return None


def _num_visible(text: str) -> int:
    return len(text) - text.count(" ") - text.count("\n") - text.count("\t")


def _count_in_leading_comments(pattern: re.Pattern[str], words: tuple[str, ...], text: MeasuredText) -> int:
    """Count matches. `words` are those of which each has one, in small letters."""
    if not any(word in text.opening for word in words):
        return 0
    spans = takewhile(lambda span: span[0] < _NUM_OPENING_CHARACTERS, text.lexer.comments(text.text))
    return sum(len(pattern.findall(text.text[begin : min(end, _NUM_OPENING_CHARACTERS)])) for begin, end in spans)
