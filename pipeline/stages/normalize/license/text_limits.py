"""Limits that license texts and sections of READMEs state beside the licenses that are recognized in them.

Each sentence that no recognized text or notice explains is read as if it stood in the header of a file. One that forbids, keeps
a right or confines a use, in any language that comments are read in, limits; thanks, addresses and lists of other works do not.
"""

import re
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
from pipeline.stages.normalize.license.prose.short_lines import joined_capitals, limiting_line
from pipeline.stages.normalize.license.prose.words import copyright_words, plain_words
from pipeline.stages.normalize.license.read_comments import Reading, read_prose, texts_and_notices, unexplained_words
from pipeline.stages.normalize.license.texts import split_texts, without_harmless

_MAX_NUM_WORDS_BESIDE = 200
"""Words beside the known licenses of a text up to which they are one statement, and no collection of other texts."""
_MIN_LEFT = 0.6
"""Share of a sentence's words from which no recognized text or notice explains it."""
_NUM_SENTENCES_OF_TITLE = 3
_MIN_WORDS_OF_LATIN = 3
_NUM_WORDS_OF_NAME = 6
"""Words of a sentence that may be the name of a license and little else."""
_MAX_WORDS_OF_FIELD = 3
_ALL_RIGHTS = re2.compile(r"(?i)\W*\ball rights(?: are)? reserved\b\W*")
_OF_OTHERS = re2.compile(
    r"(?i)\b(?:documentation|docs|website|logo|uses|using|depend\w*|bundle[sd]?|embedded|third|third_part(?:y|ies)|dependenc\w+"
    r"|some|other|parts?|components?|ports|libraries|(?:sub)?modules|patches|contribut\w+|donat\w+|patents?|forced|copyleft"
    r"|example|summary|copyright|includ\w+|originally|previous\w*|(?:sub)?director(?:y|ies)|folders?|compatible"
    r"|approved by (?:the )?osi|osi[ -]approved|all licen[cs]es|often|usually|several|thanks|based on|one file"
    r"|files (?:in|under|of|from))\b"
)
"""Words of a sentence about a part, another work, or what is not the license."""
_OF_THE_WORK = re2.compile(
    r"(?i)^\W*(?:(?:any |the )?(?:use|usage|copying|distribution|redistribution) of )?(?:this|our) (?:software|file|code|source"
    r"|program|document|work|product|library)(?: code)? (?:(?:is|are) (?:\w+ )?(?:governed|covered|proprietary|copyleft"
    r"|confidential|subject|owned|restricted|not)|may|must|can|cannot|shall)\b"
    r"|^\W*(?:no part of (?:this|the)|you (?:may|must|can|shall) not)\b"
)
"""Beginnings of a sentence about the work itself, whatever others it names."""
_OF_A_PART = re2.compile(
    r"(?i)\b(?:parts?|portions?|pieces|some|certain|files?|(?:sub)?director(?:y|ies)|folders?|modules?|components?|everything|exceptions?)\b"
    r"|[\w.-]/(?:\s|[),.;:]|$)|\w/[\w.-]+\.[a-z]"
)
_OF_ANOTHER_PART = re2.compile(
    r"(?i)\b(?:docs?|documentation|manuals?|tests?|testing|test ?suite|testdata|fixtures?|examples?|samples?|demos?"
    r"|benchmarks?|third|3rd|third_?part(?:y|ies)|vendor\w*|extern\w*|deps|dependenc\w+|contrib|website|logos?|icons?|images?|data|fonts?|tools?|scripts?"
    r"|cmake|m4|build|bundled|embedded|optional|plug-?ins?|packages?|packaging|debian|bindings?|compatible|based on|uses|using"
    r"|depends?|links?|originally|previously|formerly|no longer|dual|either|choice|choose)\b"
)
"""Words of a sentence about a part that is no source of the work, or a choice."""
_PUTS = re2.compile(
    r"(?i)\b(?:is|are|under|licen[cs]ed|covered|governed|subject|distributed|released|available|remains?)\b"
)
_OR = re2.compile(r"(?i)\bor\b")
_RESERVES = re2.compile(
    r"(?i)\b(?:commercial licen[cs]e|proprietary|confidential|non-?commercial|all rights reserved|closed[ -]source)\b"
)
_CONDITION = re2.compile(
    r"(?i)^\W*(?:(?:additionally|in addition|furthermore|moreover|also|however|but)\b\W*)?(?:all |any |every |each |the )?"
    r"(?:(?:re-?)?distribut(?:ions?|ors?)|redistribution|copies|derivative works|derivatives|products?|users?"
    r"|programs|publications|papers)\b"
    r"[^.]{0,60}\b(?:must|shall|have to|has to|need to|needs to|(?:are|is) required to)\b"
)
_USUAL = re2.compile(
    r"(?i)\b(?:must|shall|have to|has to|needs? to|required to) (?:also )?(?:retain|reproduce|include|keep|preserve|contain)\b"
)
"""Conditions that the permissive licenses have."""
_CHOICE = re2.compile(r"(?i)\b(?:dual|either|choice|choose)\b")
_PERMISSIVE = re2.compile(r"\b(?:MIT|BSD|Apache|ISC|Zlib|BSL|Unlicense|0BSD|CC0)\b")
_EMAIL = re.compile(r"\S{1,100}@\S{1,100}")
_ADDRESS = re2.compile(r"(?i)\b(?:https?://|www\.)\S*")
_FREE = re2.compile(
    r"(?i)\bunless required by applicable law\b|\bcommercial or non-?commercial\b"
    r"|\bwithout (?:any )?(?:fee|charge|cost|restrictions?|limitation|warrant\w+)\b"
    r"|\bpermission to use[^.]{0,80} for any purpose (?:and )?(?:with or )?without fee is hereby granted\b"
    r"|\bend of (?:the )?terms and conditions\b|\bcovered by the (?:above|same) licen[cs]e\b|\bgpl[ -]compatible\b"
    r"|\b(?:non-?commercial and commercial|commercial and non-?commercial|including commercial) (?:use|purposes|applications)\b"
)
"""Words of limits in what grants everything, or leaves it to the law."""
_LIMITS = re2.compile(
    r"(?i)\b(?:not|only|no|never|without|prohibit\w*|forbid\w*|non-?commercial|commercial(?:ly)?|except|unless|academic|evaluation"
    r"|(?:written|prior|express|explicit|our|my) permission|proprietary|confidential|internal|must|may not|ask|contact|free for|pay"
    r"|fee|trade secrets?|private|agree|shareware|trial|restrict\w*)\b"
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
    text = plus_as_words(joined_capitals(text))
    named_text = ids_as_words(text)
    texts, notices = texts_and_notices(named_text)
    left = without_explained(notices.left, bool(texts or notices.licenses))
    is_short = len(left.split()) <= _MAX_NUM_WORDS_BESIDE
    if not is_short and (texts or not is_unknown_another):
        return TextTerms(None, ())
    said = tuple(_sentences_left(text, named_text))
    found = limiting_clause(text, left, with_names=False)
    found = found or next(filter(None, (limit_of_sentence(each, left) for each in said)), None)
    if texts:
        found = found or next(filter(_adds_terms, said), None)
    own = [each for each in said if _is_of_the_work(each)]
    named = [license for each in own for license in names_in(each)]
    if not texts:
        title = own[:_NUM_SENTENCES_OF_TITLE]
        found = found or next(filter(None, map(unknown_license, title)), None)
        named += [license for each in (own if is_short else title) for license in _read(each).mentions]
    return TextTerms(found, tuple(dict.fromkeys(named)))


def limit_of_sentence(sentence: str, left: str | None = None) -> str | None:
    """Return the words by which a sentence limits: if it is about the work as in a header of a file, or certainly."""
    bare = str(_FREE.sub(" ", sentence))
    reading = _read(bare)
    is_own = not speaks_of_others(bare) and (_LIMITS.search(bare) or not (reading.mentions or reading.expressions))
    said = reading.sentence if is_own else None
    if said and (bare == sentence or _read(sentence).sentence) and _is_left(said.words, left):
        return said.words
    return certain_limit(sentence, left)


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


def _adds_terms(sentence: str) -> bool:
    """Return whether a sentence beside a license puts a part of the source under another that asks more, or adds a condition."""
    bare = str(_ADDRESS.sub(" ", str(_FREE.sub(" ", sentence))))
    if _CONDITION.search(bare):
        return _USUAL.search(bare) is None
    if not (_OF_A_PART.search(bare) and _PUTS.search(bare)) or _OF_ANOTHER_PART.search(bare):
        return False
    reading = _read(bare)
    names = (*reading.expressions, *reading.mentions)
    if _OR.search(bare) and any(_PERMISSIVE.search(each) for each in names):
        return False
    return _RESERVES.search(bare) is not None or any(not _PERMISSIVE.search(each) for each in names)


def names_in(sentence: str) -> tuple[str, ...]:
    """Return the licenses that a sentence puts the work under, and those that it names where it is a name or limits."""
    reading = _read(sentence)
    is_said = len(sentence.split()) <= _NUM_WORDS_OF_NAME or _LIMITS.search(sentence)
    return (*reading.expressions, *(reading.mentions if is_said else ()))


def whole_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, a field such as `License: ...` as one."""
    field = ""
    for sentence in sentences_of(text):
        whole = f"{field} {sentence}" if field else sentence
        field = whole if whole.endswith((":", "：")) and len(whole.split()) <= _MAX_WORDS_OF_FIELD else ""
        if not field:
            yield whole
    if field:
        yield field


def speaks_of_others(sentence: str) -> bool:
    """Return whether a sentence is about another work or a part, a choice that grants all, or what is not the license."""
    reading = _read(sentence) if _CHOICE.search(sentence) else None
    names = (*reading.expressions, *reading.mentions) if reading else ()
    if reading and (not names or any(_PERMISSIVE.search(each) for each in names)):
        return True
    return _OF_OTHERS.search(_EMAIL.sub(" ", sentence)) is not None and not _OF_THE_WORK.search(sentence)


def _is_of_the_work(sentence: str) -> bool:
    """Return whether a sentence may be about the license of the work: one of addresses alone refers to others."""
    return bool(_ADDRESS.sub("", sentence).strip()) and not speaks_of_others(sentence)


def _sentences_left(text: str, named_text: str) -> Iterator[str]:
    """Yield the sentences most of whose words are in no recognized text."""
    texts, words = split_texts(named_text)
    beside = f"{without_harmless(words, texts)} / {copyright_words(named_text)}"
    for sentence in whole_sentences(text):
        if not texts or _is_among(sentence, beside):
            yield sentence


def _is_among(sentence: str, left: str) -> bool:
    """Return whether most of the words of a sentence are among others, or it has none in Latin letters."""
    words = plain_words(ids_as_words(sentence), with_copyright_lines=True).split()
    is_of_script = not sentence.isascii() and len(words) < _MIN_WORDS_OF_LATIN
    return is_of_script or len(words_in_rows(words, left).split()) >= _MIN_LEFT * len(words)


def _is_left(words: str, left: str | None) -> bool:
    """Return whether most of some words are among those that nothing explains."""
    return left is None or not words.isascii() or _is_among(words, left)


def _read(sentence: str) -> Reading:
    return read_prose(Prose(sentence, True))
