"""Secrets that a line continuation cuts in two: the compiler joins the lines, and so does whoever reads them."""

import re
from collections.abc import Callable
from itertools import pairwise

from pipeline.normalize.scrub.addresses import Finding

_TOKEN = r"[A-Za-z0-9+/=_.\-]"
_SPLICE = re.compile(rf"\\\n(?<={_TOKEN}\\\n)(?={_TOKEN})")  # begins with its literal: the search skips to it
_NUM_SPLICED = 2


def find_spliced(text: str, find: Callable[[str], list[Finding]]) -> list[Finding]:
    """What `find` finds in the joined lines and not in one of them: one finding a line, all of the same value.

    Lines are joined only where a token stands on both sides: in macros a blank stands before the backslash.
    """
    splices = [match.start() for match in _SPLICE.finditer(text)] if "\\\n" in text else []
    if not splices:
        return []
    joined = _SPLICE.sub("", text)
    # Where each splice was, counted in the joined text.
    cuts = [place - _NUM_SPLICED * index for index, place in enumerate(splices)]
    return [piece for finding in find(joined) for piece in _pieces(finding, cuts)]


def _pieces(finding: Finding, cuts: list[int]) -> list[Finding]:
    inside = [cut for cut in cuts if finding.start < cut < finding.end]
    if not inside:
        return []
    before = sum(cut <= finding.start for cut in cuts)
    bounds = [finding.start, *inside, finding.end]
    return [
        Finding(
            finding.kind, start + _NUM_SPLICED * (before + index), stop + _NUM_SPLICED * (before + index), finding.value
        )
        for index, (start, stop) in enumerate(pairwise(bounds))
    ]
