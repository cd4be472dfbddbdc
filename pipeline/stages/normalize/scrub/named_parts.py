"""Named parts: secrets of which each part is a literal with a name of its own, and that are put together by these names.

`#define A "ghp_..."`, `#define B "..."` and then `A B`, or two constants that are added. A chain of names and literals whose first
one holds the head of a token is read as one literal; what is found there has a finding in the literal of each name.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.stages.normalize.scrub.hits import condition, hit_lines

_NAME = r"[A-Za-z_]\w{0,63}"
_NAMED = re.compile(
    rf"(?:#[ \t]*define[ \t]+(?P<macro>{_NAME})[ \t]+\(?|(?P<variable>{_NAME})(?:\[\d*\])?\s?(?:=\s?|\{{"
    rf"|\())(?:[\w:]{{1,30}}[({{])?"
    r'(?:u8|[uUL])?"(?P<value>[^"\\\n]{1,400})"'
)
_PART = re.compile(rf'(?P<name>{_NAME})|(?:u8|[uUL])?"(?P<value>[^"\\\n]{{1,400}})"')
_BETWEEN = re.compile(r"(?:\s|\+|<<|,|\)|\.append\(|\.c_str\(\)|(?:std::)?string(?:_view)?[({]|&|\\\n){0,8}")
_CONDITION = (
    r'#[ \t]*define[ \t]+\w+[ \t]+\(?(?:u8|[uUL])?"[^"\n]|\w(?:\[\d*\])?[ ]?(?:=[ ]?|\{'
    r'|\()(?:[\w:]+[({])?(?:u8|[uUL])?"[^"\n]'
)
_MAX_NAMES, _MAX_USES, _MAX_PARTS = 64, 32, 6


def find_named_parts(text: str, head: str, find: Callable[[str], Iterable[Finding]]) -> Iterator[Finding]:
    """Yield what `find` finds where literals are put together by their names; the first one matches `head`."""
    has_head = condition(head).search
    if not any(_NAMED.search(text, start, end) for start, end in hit_lines(text, condition(head))):
        return
    named: dict[str, tuple[int, int]] = {}
    heads: list[str] = []
    for start, end in hit_lines(text, condition(_CONDITION)):
        for match in _NAMED.finditer(text, start, end):
            name = match["macro"] or match["variable"]
            if name in named:
                continue
            named[name] = match.span("value")
            if len(heads) < _MAX_NAMES and has_head(match["value"].encode()):
                heads.append(name)
    for name in heads:
        for use, _ in zip(re.finditer(rf"\b{name}\b", text), range(_MAX_USES), strict=False):
            spans = _chain(text, use.start(), named)
            if len(spans) > 1:
                yield from _found(text, spans, find)


def _chain(text: str, place: int, named: dict[str, tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the literals that are side by side from a place on, each by its name or as it is."""
    spans: list[tuple[int, int]] = []
    while len(spans) < _MAX_PARTS and (part := _PART.match(text, place)):
        span = part.span("value") if part["value"] else named.get(part["name"])
        if span is None or span in spans:
            break
        spans.append(span)
        between = _BETWEEN.match(text, part.end())
        place = between.end() if between else part.end()
    return spans


def _found(text: str, spans: list[tuple[int, int]], find: Callable[[str], Iterable[Finding]]) -> Iterator[Finding]:
    joined = "".join(text[start:end] for start, end in spans)
    ends = list(accumulate(end - start for start, end in spans))
    for found in find(joined):
        for index in range(bisect_right(ends, found.start), len(spans)):
            start, end = spans[index]
            begin = ends[index] - (end - start)
            if begin >= found.end:
                break
            first, last = max(found.start, begin), min(found.end, ends[index])
            yield Finding(start + first - begin, start + last - begin, found.value)
