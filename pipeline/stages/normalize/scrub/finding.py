"""Finding: a stretch of text to be replaced, and the search for findings that a line continuation divides."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

_TOKEN = r"[A-Za-z0-9+/=_.\-]"
_SPLICE = re.compile(rf"\\\n(?<={_TOKEN}\\\n)(?={_TOKEN})")  # begins with its literal: the search skips to it
_NUM_SPLICED = 2


@dataclass(frozen=True)
class Finding:
    """A stretch of text to be replaced. Equal values get the same placeholder; `tail` is written after it."""

    start: int
    end: int
    value: str = field(repr=False)
    tail: str = ""


def find_spliced(text: str, find: Callable[[str], Iterable[Finding]]) -> list[Finding]:
    """Return what `find` finds only where lines are joined, as the compiler joins them: one finding per line, of one value.

    Lines are joined only inside a token: in macros a blank precedes the backslash.
    """
    splices = [match.start() for match in _SPLICE.finditer(text)] if "\\\n" in text else []
    if not splices:
        return []
    joined = _SPLICE.sub("", text)
    # The place of each splice in the joined text.
    cuts = [place - _NUM_SPLICED * index for index, place in enumerate(splices)]
    return [piece for finding in find(joined) for piece in _pieces(finding, cuts)]


def _pieces(finding: Finding, cuts: list[int]) -> Iterator[Finding]:
    inside = [cut for cut in cuts if finding.start < cut < finding.end]
    before = sum(cut <= finding.start for cut in cuts)
    bounds = [finding.start, *inside, finding.end] if inside else []
    for index, (start, stop) in enumerate(pairwise(bounds)):
        shift = _NUM_SPLICED * (before + index)
        yield Finding(start + shift, stop + shift, finding.value)
