"""Similar texts: a license text with other words that grant and limit nothing, such as `materials` for `software`.

Words of the terms must be those of the license but for NEUTRAL ones. In a disclaimer of warranty, whose wordings differ most, all
words may differ that do not speak of permission. Where a disclaimer comes first, the terms begin with the grant after it.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

NUM_WORDS_IN_GRAM = 4
MIN_SHARE = 0.8
"""Share of a license's runs of four words that a similar text has at least."""
_MIN_GRAMS = 20
_MAX_STRETCH = 1.5
"""Words of a similar text, by those of the license."""
_MAX_WORDS_OF_DIFFERENCE = 25
_MAX_WORDS_OF_DISCLAIMER = 170
_NEUTRAL_WORDS = """
    the a an this that these those such above and or of to in on by any all s its their associated accompanying software softwares
    materials material program programs code source library work works file files font fonts product firmware data documentation
    package module notice notices is are 1 2 3 4
"""
NEUTRAL = frozenset(_NEUTRAL_WORDS.split())
"""Words that a text may have or lack wherever they are: what is licensed, and what binds words."""
_FORMS = frozenset(
    {"source", "code", "software", "material", "materials", "program", "file", "files", "work", "library", "product"}
)
"""Words for the form in which something is licensed: a text that lacks `source` and has none of them is about binaries."""
_DISCLAIMER = re.compile(r"\b(?:is provided as is|as is and|without (?:any )?(?:express|warranty)|in no event)\b")
_GRANT = re.compile(
    r"\b(?:permission|permitted|hereby grants?|redistributions?|redistribute|you (?:may|can)|provided that)\b"
)
"""Words of terms, with which a disclaimer ends."""
_PERMITTING = re.compile(
    r"must|may|only|except|unless|permi\w+|(?:sub)?licen[sc]\w*|commercial\w*|prohibit\w*|restrict\w*|forbid\w*|redistribut\w*"
    r"|cop(?:y|ies|ied)|se?old|sell|modif\w*|export\w*|patent\w*|trademark\w*|confidential\w*|proprietary|granted|evil|military"
)


@dataclass(frozen=True)
class SimilarText:
    """A stretch of words that is a license but for harmless differences: from the word `start` to before `stop`."""

    license: str
    start: int
    stop: int


class SimilarTexts:
    """The search for texts that are similar to any of some licenses, by their ids and operative words."""

    def __init__(self, references: Mapping[str, str]) -> None:
        self._words = {license: words.split() for license, words in references.items()}
        self._disclaimed = {license: _disclaimed_words(words) for license, words in references.items()}
        self._num_grams: dict[str, int] = {}
        self._licenses: dict[tuple[str, ...], list[str]] = {}
        for license in sorted(self._words):
            grams = dict.fromkeys(_grams(self._words[license]))
            self._num_grams[license] = len(grams)
            for gram in grams:
                self._licenses.setdefault(gram, []).append(license)

    def find(self, words: Sequence[str]) -> SimilarText | None:
        """Return the most similar stretch of words, if it is a license but for harmless differences."""
        if len(words) < _MIN_GRAMS:
            return None
        grams = _grams(words)
        counts = Counter(license for gram in dict.fromkeys(grams) for license in self._licenses.get(gram, ()))
        shares = sorted(
            ((count / self._num_grams[license], license) for license, count in counts.items()), reverse=True
        )
        for share, license in shares:
            if share < MIN_SHARE:
                return None
            at = [place for place, gram in enumerate(grams) if license in self._licenses.get(gram, ())]
            start, stop = at[0], at[-1] + NUM_WORDS_IN_GRAM
            if self._is_harmless(license, words[start:stop]):
                return SimilarText(license, start, stop)
        return None

    def _is_harmless(self, license: str, found: Sequence[str]) -> bool:
        wanted = self._words[license]
        if len(found) > _MAX_STRETCH * len(wanted):
            return False
        for kind, start, stop, begin, end in SequenceMatcher(None, wanted, found, autojunk=False).get_opcodes():
            removed, added = wanted[start:stop], found[begin:end]
            if kind == "equal" or (
                {*removed, *added} <= NEUTRAL and ("source" not in removed or not _FORMS.isdisjoint(added))
            ):
                continue
            if not self._disclaimed[license].issuperset(range(start, stop + 1)) or not _may_differ(removed, added):
                return False
        return True


def _may_differ(removed: Sequence[str], added: Sequence[str]) -> bool:
    """Return whether words of a disclaimer may differ so."""
    is_short = max(len(removed), len(added)) <= _MAX_WORDS_OF_DIFFERENCE
    return is_short and not any(_PERMITTING.fullmatch(word) for word in (*removed, *added))


def _disclaimed_words(words: str) -> frozenset[int]:
    """Return the numbers of the words between which a disclaimer stands, up to a grant after it or the end of the text."""
    found: set[int] = set()
    for match in _DISCLAIMER.finditer(words):
        grant = _GRANT.search(words, match.end())
        first = len(words[: match.start()].split())
        last = len(words[: grant.start()].split()) - 1 if grant else len(words.split())
        found.update(range(first, min(last, first + _MAX_WORDS_OF_DISCLAIMER) + 1))
    return frozenset(found)


def _grams(words: Sequence[str]) -> list[tuple[str, ...]]:
    return list(zip(*(words[start:] for start in range(NUM_WORDS_IN_GRAM)), strict=False))
