"""Reading of comments: the licenses that they state, and the sentences that no recognized text, notice or reference explains."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from pipeline.stages.normalize.license.licensors.licensor_sentences import MIN_IN_CODE, MIN_IN_HEADER, licensor_sentence
from pipeline.stages.normalize.license.prose.clauses import clause_anywhere, limiting_clause, without_program
from pipeline.stages.normalize.license.prose.comments import Prose
from pipeline.stages.normalize.license.prose.explained import without_explained
from pipeline.stages.normalize.license.prose.license_files import license_files
from pipeline.stages.normalize.license.prose.names import PUBLIC_DOMAIN, TOKEN, ids_as_words, unknown_name, with_tokens
from pipeline.stages.normalize.license.prose.notices import Notices, plus_as_words, split_notices
from pipeline.stages.normalize.license.prose.sentences import (
    MAX_SHOWN,
    MIN_WEIGHT_IN_CODE,
    MIN_WEIGHT_IN_HEADER,
    Sentence,
    spoken,
    spoken_as_written,
)
from pipeline.stages.normalize.license.prose.short_lines import heavy_line, joined_capitals, limiting_line, named_lines
from pipeline.stages.normalize.license.prose.words import copyright_words, plain_words
from pipeline.stages.normalize.license.texts import split_texts, without_harmless

BSD_FAMILY = "LicenseRef-BSD-family"
_DEDICATIONS = frozenset({"CC0-1.0", "Unlicense", "Apache-1.1"})
"""Licenses whose words speak of the public domain."""


@dataclass(frozen=True)
class Reading:
    """Content of one group of comments.

    `texts` and `notices` are expressions that all hold, unless `is_choice`. `mentions` are licenses that it only names;
    `sentence` is the heaviest that nothing explains; `files` are those of licenses that it refers to by a name of their own.
    """

    texts: tuple[str, ...]
    notices: tuple[str, ...]
    is_choice: bool
    mentions: tuple[str, ...]
    sentence: Sentence | None
    files: tuple[str, ...] = ()

    @property
    def expressions(self) -> tuple[str, ...]:
        """The expressions that all hold."""
        found = tuple(dict.fromkeys((*self.texts, *self.notices)))
        if not _DEDICATIONS.isdisjoint(found):
            found = tuple(each for each in found if each != PUBLIC_DOMAIN)
        if (self.is_choice and len(found) > 1) or any(" OR " in each for each in found):
            found = tuple(each.replace(BSD_FAMILY, "BSD-3-Clause") for each in found)
        elif not {BSD_FAMILY, PUBLIC_DOMAIN}.issuperset(found):
            found = tuple(each for each in found if each != BSD_FAMILY)
        found = tuple(
            dict.fromkeys(part for each in found for part in (each.split(" OR ") if self.is_choice else (each,)))
        )
        return (" OR ".join(found),) if self.is_choice and len(found) > 1 else found

    @property
    def lines(self) -> tuple[str, ...]:
        """One line of evidence for each license."""
        notices = [each for each in self.notices if each not in self.texts]
        return tuple(
            [f"the header contains the text of {license}" for license in self.texts]
            + [f"the header contains the notice of {license}" for license in notices]
        )


@lru_cache(maxsize=4_096)
def read_prose(prose: Prose) -> Reading:
    """Read a group of comments: most files of a source begin with the same one. What documents a program says nothing."""
    reading = _read(prose)
    if reading.sentence is None and not reading.mentions:
        return reading
    text = without_program(prose.text)
    if text == prose.text:
        return reading
    said = _read(replace(prose, text=text))
    mentions = tuple(each for each in reading.mentions if each in (*said.mentions, *said.expressions))
    return replace(reading, mentions=mentions, sentence=reading.sentence and said.sentence)


def _read(prose: Prose) -> Reading:
    clause = clause_anywhere(prose.text)
    line = None if clause or prose.is_header else heavy_line(prose.text)
    limit = Sentence(clause or line or "", MIN_WEIGHT_IN_CODE) if clause or line else None
    if not (prose.is_header or prose.is_legal):
        words = plain_words(prose.text, with_copyright_lines=True)
        said = spoken(words, False) or spoken_as_written(prose.text, False) or limit
        return Reading((), (), False, (), said or _weighed(prose.text, None, MIN_IN_CODE))
    is_header = prose.is_header
    text = plus_as_words(joined_capitals(prose.text))
    named = ids_as_words(text)
    texts, notices = texts_and_notices(named)
    is_stated = bool(texts or notices.licenses)
    titles = named_lines(text, is_stated) if is_header else ()
    names = dict(zip(re.findall(TOKEN, notices.left), notices.names, strict=True))
    left = without_explained(notices.left, is_stated)
    # Most comments have no heavy sentence: nothing of them is to be explained.
    unexplained = spoken(left, is_header) if spoken(notices.left, is_header) else None
    found = [_spelled(unexplained, names.__getitem__)]
    found.append(spoken_as_written(text, is_header))
    if texts:
        words, naming = with_tokens(copyright_words(named))
        beside = spoken(without_explained(words, is_stated), False) if spoken(words, False) else None
        found.append(_spelled(beside, naming.license_of))
    if is_header:
        found += _said_by_lines(prose.text, text)
        clause = limiting_clause(text, left)
        found.append(Sentence(clause, MIN_WEIGHT_IN_HEADER) if clause else None)
    else:
        found.append(limit)
    if not is_stated:  # beside a license most of what is learned to be a licensor's is that license in other words
        found.append(_weighed(text, left, MIN_IN_HEADER if is_header else MIN_IN_CODE))
    sentence = max(filter(None, found), key=lambda each: each.weight, default=None)
    mentions = tuple(dict.fromkeys(notices.names)) if is_header and not titles else ()
    stated = tuple(dict.fromkeys((*notices.licenses, *titles)))
    return Reading(texts, stated, notices.is_choice, mentions, sentence, license_files(prose.text) if is_header else ())


def unexplained_words(prose: Prose) -> str:
    """Return the plain words of a group of comments without what recognized texts, notices and references say."""
    texts, notices = texts_and_notices(ids_as_words(plus_as_words(joined_capitals(prose.text))))
    return without_explained(notices.left, bool(texts or notices.licenses))


def texts_and_notices(named: str) -> tuple[tuple[str, ...], Notices]:
    """Return the license texts of a comment whose ids of licenses are words, and the notices beside them."""
    texts, words = split_texts(named)
    words = without_harmless(words, texts)
    return texts, split_notices(words if texts else plain_words(named, with_copyright_lines=True))


def _weighed(text: str, left: str | None, least: int) -> Sentence | None:
    """Return the sentence that speaks as a licensor does by what its words weigh, after what any rule finds."""
    found = licensor_sentence(text, left, least)
    return Sentence(found.words[:MAX_SHOWN], MIN_WEIGHT_IN_HEADER, found.because) if found else None


def _said_by_lines(written: str, text: str) -> list[Sentence | None]:
    """Return what lines of a header say alone, and what its words say if a hyphen at a line's end only divides a word."""
    unknown = unknown_name(written) or unknown_name(text)
    divided = spoken(plain_words(text, "", with_copyright_lines=True), True) if "-\n" in text else None
    as_line = limiting_line(text)
    return [
        Sentence(f"license: {unknown}", MIN_WEIGHT_IN_HEADER) if unknown else None,
        Sentence(as_line.removesuffix(" .").rstrip(":"), MIN_WEIGHT_IN_HEADER) if as_line else None,
        divided if divided and not spoken(plain_words(text, with_copyright_lines=True), True) else None,
    ]


def _spelled(sentence: Sentence | None, license_of: Callable[[str], str]) -> Sentence | None:
    """Return a sentence with the licenses that it names in place of their tokens."""
    if sentence is None:
        return None
    return replace(sentence, words=re.sub(rf"\b{TOKEN}\b", lambda match: license_of(match[0]), sentence.words))
