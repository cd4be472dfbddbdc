"""Cheap filters: each rule measures a text, and drops it where the measure breaks a limit.

All measures are kept as scores.

Sources: bigcode-dataset and OpenCoder's `code_filter_config.py`, less the rules that kill good headers (few lines,
TODO, entropy).
"""

import operator
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from pathlib import PurePosixPath

import numpy as np
import re2
from numpy.typing import NDArray

from pipeline.core.params import canonical_json
from pipeline.cpp.comments import comments, license_header_end
from pipeline.cpp.lexer import num_visible_in_comments
from pipeline.normalize.params import FilterParams
from pipeline.normalize.refusal import Refusal

_NOT_ALPHANUMERIC = bytes(code for code in range(128) if not chr(code).isalnum())
_NUM_OPENING_CHARACTERS = 2_000

# Only whole claims count: a sentence about what the program itself generates is none (197 files of osmium have one).
_GENERATED = re.compile(
    r"do not (?:edit|modify)(?: it| this| the| file)*"
    r"(?: by hand| manually| directly|[.!]| ?\*/|,? (?:it (?:is|was) )?auto)"
    r"|(?:machine|auto(?:matically|-|matic)?)[ -]?generated\b.{0,30}do not"
    r"|^\W*(?:this (?:file|header|source|code) (?:is|was|has been) |file |code )?(?:auto(?:matically|-|matic)?[ -]?)?"
    r"generated (?:by|from|using) "
    r"|\b(?:this )?(?:file|header|source|code) (?:is|was|has been) (?:an? )?"
    r"(?:machine|auto(?:matically)?)[ -]?generated"
    r"|^\W*auto(?:matically|-|matic)?[ -]?generated (?:file|code|on)\b"
    r"|@generated\b",
    re.IGNORECASE | re.MULTILINE,
)
_GENERATED_NAME = re.compile(r"^(?:moc_|qrc_|ui_).*|.*\.pb\.(?:h|cc|c|cpp|hpp)$|.*\.(?:tab|yy)\.(?:c|h|cc|hh|cpp|hpp)$")
_AMALGAMATED = re.compile(
    r"\bamalgamat(?:ed|ion)\b.{0,60}(?:file|source|of|from|header)"
    r"|^/\* *begin file|^#line 1 \"|single-file \w+ library",
    re.IGNORECASE | re.MULTILINE,
)
_ENCODED = re.compile(r"[A-Za-z0-9+/]{32,}={0,2}")
# A necessary condition, several times as fast.
_CAN_HOLD_RUN = re2.compile(rb"[A-Za-z0-9+/]{32}")
_BETWEEN_LITERALS = re.compile(r"(?:[\s\"',\\]|\\[nr])*")
_OBJECTIVE_C = re.compile(r"^@(?:interface|protocol|implementation)\b[^;\n]*$(?=[\s\S]*^@end\b)", re.MULTILINE)


@dataclass(frozen=True)
class Sample:
    """A text as the rules measure it."""

    path: str
    text: str
    content: bytes = field(repr=False)

    @cached_property
    def line_lengths(self) -> NDArray[np.int64]:
        """Bytes of each line, without its end. Text behind the last line end is a line."""
        ends = np.flatnonzero(np.frombuffer(self.content, np.uint8) == ord("\n"))
        if not self.content.endswith(b"\n"):
            ends = np.append(ends, len(self.content))
        ends[1:] -= ends[:-1] + 1  # the right side is computed before anything is written
        return ends


def num_bytes(sample: Sample) -> float:
    """Size of the text, in bytes of UTF-8."""
    return len(sample.content)


def longest_line(sample: Sample) -> float:
    """Bytes of the longest line."""
    return int(sample.line_lengths.max(initial=0))


def mean_line(sample: Sample) -> float:
    """Mean length of a line, in bytes."""
    return float(sample.line_lengths.mean()) if len(sample.line_lengths) else 0.0


def alphanumeric_fraction(sample: Sample) -> float:
    """Bytes of letters and digits among all. Bytes beyond ASCII count as letters."""
    return len(sample.content.translate(None, _NOT_ALPHANUMERIC)) / max(1, len(sample.content))


def unique_line_fraction(sample: Sample) -> float:
    """Distinct lines among those that hold a letter or digit: braces alone repeat in all good code."""
    counts = Counter(map(bytes.strip, sample.content.split(b"\n")))
    num_distinct = sum(len(line) > 2 for line in counts)
    num_lines = sum(count for line, count in counts.items() if len(line) > 2)
    return num_distinct / num_lines if num_lines else 1.0


def comment_fraction(sample: Sample) -> float:
    """Characters in comments behind the license header, among all characters behind it; blanks do not count."""
    start = license_header_end(sample.text)
    num_all = _num_visible(sample.text[start:])
    return num_visible_in_comments(sample.text, start) / num_all if num_all else 0.0


def generated_markers(sample: Sample) -> float:
    """Marks of a program's output: the file's name, or a claim in its leading comments."""
    name = PurePosixPath(sample.path).name
    return int(bool(_GENERATED_NAME.match(name))) + _count_in_leading_comments(_GENERATED, sample.text)


def amalgamation_markers(sample: Sample) -> float:
    """Claims in the leading comments that many files were joined into this one."""
    return _count_in_leading_comments(_AMALGAMATED, sample.text)


def encoded_run(sample: Sample) -> float:
    """Characters of the longest run of base64 or hexadecimal digits, joined over string literals and line ends."""
    longest = length = previous_end = 0
    if not _CAN_HOLD_RUN.search(sample.content):
        return 0
    for match in _ENCODED.finditer(sample.text):
        if len(set(match[0])) < 8 or match[0].isdigit():  # rulers such as ///////, digits of pi
            continue
        joined = _BETWEEN_LITERALS.fullmatch(sample.text, previous_end, match.start())
        length = length + len(match[0]) if joined and previous_end else len(match[0])
        longest, previous_end = max(longest, length), match.end()
    return longest


def objective_c_lines(sample: Sample) -> float:
    """Lines that open an Objective-C declaration in a `.h` file which also closes one."""
    return len(_OBJECTIVE_C.findall(sample.text)) if sample.path.endswith(".h") and "@end" in sample.text else 0


@dataclass(frozen=True)
class Rule:
    """One filter: what it measures, the field of FilterParams that limits it, and the drop reason if it breaks that."""

    reason: str
    measure: Callable[[Sample], float]
    limit: str
    why: str

    def is_broken(self, measured: float, limit: float) -> bool:
        """Whether the measure lies on the wrong side: fields named `min_...` are floors, `max_...` ceilings."""
        breaks = operator.lt if self.limit.startswith("min_") else operator.gt
        return bool(breaks(measured, limit))


RULES: tuple[Rule, ...] = (
    Rule("too_small", num_bytes, "min_num_bytes", "A few bytes teach nothing."),
    Rule("too_large", num_bytes, "max_num_bytes", "Tables, amalgamations and generated parsers."),
    Rule("long_line", longest_line, "max_longest_line", "Minified or generated text."),
    Rule("long_mean_line", mean_line, "max_mean_line", "Data in the clothes of code."),
    Rule("few_alphanumerics", alphanumeric_fraction, "min_alphanumeric_fraction", "Tables of punctuation, art."),
    Rule("repeated_lines", unique_line_fraction, "min_unique_line_fraction", "Unrolled or generated text."),
    Rule("mostly_comments", comment_fraction, "max_comment_fraction", "Prose, or code that was commented out."),
    Rule("generated", generated_markers, "max_generated_markers", "A program's output repeats its template."),
    Rule("amalgamation", amalgamation_markers, "max_amalgamation_markers", "Other files once more."),
    Rule("encoded_data", encoded_run, "max_encoded_run", "Embedded binary data."),
    Rule("objective_c", objective_c_lines, "max_objective_c_lines", "Another language under the same extension."),
)


def score(path: str, text: str) -> dict[str, float]:
    """What every rule measures, by the measure's name, rounded to six digits."""
    sample = Sample(path, text, text.encode())
    return {rule.measure.__name__: round(rule.measure(sample), 6) for rule in RULES}


def judge(scores: dict[str, float], params: FilterParams) -> Refusal | None:
    """The first rule that is broken, with the measured value and the limit; None where all hold."""
    for rule in RULES:
        measured, limit = scores[rule.measure.__name__], float(getattr(params, rule.limit))
        if rule.is_broken(measured, limit):
            return Refusal(rule.reason, f"{rule.measure.__name__} is {measured:g}, {rule.limit} is {limit:g}")
    return None


def scores_json(scores: dict[str, float]) -> str:
    """The scores as they are stored: canonical JSON."""
    return canonical_json(scores).decode()


def _num_visible(text: str) -> int:
    return len(text) - text.count(" ") - text.count("\n") - text.count("\t")


def _count_in_leading_comments(pattern: re.Pattern[str], text: str) -> int:
    spans = takewhile(lambda span: span[0] < _NUM_OPENING_CHARACTERS, comments(text))
    return sum(len(pattern.findall(text[begin : min(end, _NUM_OPENING_CHARACTERS)])) for begin, end in spans)
