"""Limits that license texts and sections of READMEs state beside the licenses that are recognized in them.

Each sentence that no recognized text or notice explains is read as if it stood in the header of a file. One that forbids, keeps
a right or confines a use, in any language that comments are read in, limits; thanks, addresses and lists of other works do not.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import re2

from pipeline.stages.normalize.license.licensors.licensor_sentences import words_in_rows
from pipeline.stages.normalize.license.prose.clauses import limiting_clause, sentences_of, unknown_license
from pipeline.stages.normalize.license.prose.comments import Prose
from pipeline.stages.normalize.license.prose.explained import without_explained
from pipeline.stages.normalize.license.prose.names import ids_as_words
from pipeline.stages.normalize.license.prose.notices import plus_as_words
from pipeline.stages.normalize.license.prose.sentences import foreign_term, spoken_as_written
from pipeline.stages.normalize.license.prose.short_lines import limiting_line
from pipeline.stages.normalize.license.prose.words import copyright_words, plain_words
from pipeline.stages.normalize.license.read_comments import Reading, read_prose, texts_and_notices, unexplained_words
from pipeline.stages.normalize.license.texts import split_texts, without_harmless

_MAX_NUM_WORDS_BESIDE = 200
"""Words beside the known licenses of a text up to which they are one statement, and no collection of other texts."""
_MIN_LEFT = 0.6
"""Share of a sentence's words from which no recognized text or notice explains it."""
_NUM_SENTENCES_OF_TITLE = 3
_MIN_WORDS_OF_LATIN = 3
_ALL_RIGHTS = re2.compile(r"(?i)\W*\ball rights(?: are)? reserved\b\W*")
_OF_OTHERS = re2.compile(
    r"(?i)\b(?:documentation|docs|website|logo|uses|using|depend\w*|bundle[sd]?|embedded|third|dependenc\w+|some|other|parts?|components?|ports"
    r"|libraries|contribut\w+|donat\w+|patents?|dual|either|choice|forced|copyleft|example|summary|copyright|includ\w+|originally|previous\w*"
    r"|(?:sub)?director(?:y|ies)|folders?)\b"
)
"""Words of a sentence about a part, another work, or what is not the license."""
_ADDRESS = re2.compile(r"(?i)\b(?:https?://|www\.)\S*")
_FREE = re2.compile(
    r"(?i)\bunless required by applicable law\b|\bcommercial or non-?commercial\b"
    r"|\bwithout (?:any )?(?:fee|charge|cost|restrictions?|limitation|warrant\w+)\b"
    r"|\b(?:non-?commercial and commercial|commercial and non-?commercial|including commercial) (?:use|purposes|applications)\b"
)
"""Words of limits in what grants everything, or leaves it to the law."""
_LIMITS = re2.compile(
    r"(?i)\b(?:not|only|no|never|without|prohibit\w*|forbid\w*|non-?commercial|commercial(?:ly)?|except|unless|academic|evaluation"
    r"|(?:written|prior|express|explicit|our|my) permission|proprietary|confidential|internal|must|may not|ask|contact|free for|pay"
    r"|fee|trade secrets?|private|agree|shareware|trial)\b"
)
"""Words of a sentence that limits."""


@dataclass(frozen=True)
class TextTerms:
    """Terms of a license text beyond the texts that it holds: words that limit, and licenses that it puts the work under."""

    limit: str | None
    named: tuple[str, ...]


@lru_cache(maxsize=1_024)
def terms_beyond(text: str, *, is_unknown_another: bool = False) -> TextTerms:
    """Return what a license text or a notice beside one says beyond the texts and notices that it holds.

    A collection of texts limits much in its parts: none is read where much is left beside those that are known. A long text
    without any known one is read only if it `is_unknown_another`: where what a package declares is not in it.
    """
    text = plus_as_words(text)
    named_text = ids_as_words(text)
    texts, notices = texts_and_notices(named_text)
    left = without_explained(notices.left, bool(texts or notices.licenses))
    if len(left.split()) > _MAX_NUM_WORDS_BESIDE and (texts or not is_unknown_another):
        return TextTerms(None, ())
    said = tuple(_sentences_left(text, named_text))
    found = limiting_clause(text, left, with_names=False)
    found = found or next(filter(None, (limit_of_sentence(each, left) for each in said)), None)
    named = [license for each in said if _puts_under_a_license(each) for license in _read(each).expressions]
    if texts or not is_unknown_another:
        return TextTerms(found, tuple(dict.fromkeys(named)) if texts else ())
    title = [each for each in said[:_NUM_SENTENCES_OF_TITLE] if not speaks_of_others(each)]
    unknown = next(filter(None, map(unknown_license, title)), None)
    mentions = (license for each in title for license in _read(each).mentions)
    return TextTerms(found or unknown, tuple(dict.fromkeys((*named, *mentions))))


def limit_of_sentence(sentence: str, left: str | None = None) -> str | None:
    """Return the words by which a sentence limits, if it is about the work: by a word of limits, or certainly."""
    bare = str(_FREE.sub(" ", sentence))
    said = None if speaks_of_others(bare) or not _LIMITS.search(bare) else _read(bare).sentence
    return said.words if said else certain_limit(sentence, left)


@lru_cache(maxsize=1_024)
def certain_limit(sentence: str, left: str | None = None) -> str | None:
    """Return the words by which a sentence limits by its grammar, as a line of a licensor, or in another language than English.

    `left` are the words of the text around it that nothing explains: what a clause says is among them.
    """
    bare = str(_ALL_RIGHTS.sub(" ", str(_FREE.sub(" ", sentence))))
    if bare.isascii() and not plain_words(bare):
        return None
    own = unexplained_words(Prose(bare, True))
    clause = limiting_clause(bare, own, with_names=False)
    as_written = None if clause else spoken_as_written(bare, True)
    if (clause and (left is None or clause in left)) or as_written or (bare.isascii() and not own.strip(" /")):
        return clause if as_written is None else as_written.words
    return limiting_line(bare) or foreign_term(own)


def speaks_of_others(sentence: str) -> bool:
    """Return whether a sentence is about a part, another work, or what is not the license."""
    return _OF_OTHERS.search(sentence) is not None


def _puts_under_a_license(sentence: str) -> bool:
    """Return whether a sentence may put the work under a license: one of addresses alone refers to others."""
    return bool(_ADDRESS.sub("", sentence).strip()) and not speaks_of_others(sentence)


def _sentences_left(text: str, named_text: str) -> Iterator[str]:
    """Yield the sentences most of whose words are in no recognized text."""
    texts, words = split_texts(named_text)
    beside = f"{without_harmless(words, texts)} / {copyright_words(named_text)}"
    for sentence in sentences_of(text):
        if not texts or _is_among(sentence, beside):
            yield sentence


def _is_among(sentence: str, left: str) -> bool:
    """Return whether most of the words of a sentence are among others, or it has none in Latin letters."""
    words = plain_words(ids_as_words(sentence), with_copyright_lines=True).split()
    is_of_script = not sentence.isascii() and len(words) < _MIN_WORDS_OF_LATIN
    return is_of_script or len(words_in_rows(words, left).split()) >= _MIN_LEFT * len(words)


def _read(sentence: str) -> Reading:
    return read_prose(Prose(sentence, True))
