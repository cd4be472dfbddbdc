"""Sentences that speak as a licensor does, known by what their words weigh: a linear model of words, pairs and classes of words.

`licensor_classes.toml` has the classes, written by hand; `licensor_weights.json` what each sign of a sentence weighs, learned from
labeled sentences and from comments of real projects (`python -m tests.tools.licensor_weights`, docs/decisions/0030). Weights are
integers and are added: whoever reads a decision sees the words that weighed most.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

from pipeline.stages.normalize.license.prose.clauses import MAX_WORDS_OF_SENTENCE, num_names_in_code, sentences_of
from pipeline.stages.normalize.license.prose.words import folded, plain_words

CLASSES_FILE = "licensor_classes.toml"
WEIGHTS_FILE = "licensor_weights.json"
MIN_IN_HEADER = 15
MIN_IN_CODE = 60
"""Weights from which a sentence is a licensor's: in a header, and in any other comment."""
MIN_OF_WORDS = -10
"""Least weight of the words of a sentence by themselves where all of its signs together may weigh enough."""
MIN_LEFT_FRACTION = 0.6
"""Share of a sentence from which it says something beside what a known text or notice does."""
_REACH = 5
"""Words after a word among which a class makes a pair with its own."""
_WINDOW = 3
"""Words in a row by which the words of a sentence are found among those that nothing explains."""
_NUM_WORDS_SHOWN = 4
_OF_DISCLAIMERS = frozenset({"warranty", "warranties", "liable", "liability", "disclaims", "disclaimed"})
"""Words of disclaimers, which limit what is owed and not what may be done."""
_LEAST = -(1 << 20)
_NUM_SENTENCES = 1 << 14
_WORD = re.compile("[a-z]+")
_ENDING = re.compile(r"(?:ings?|edly|ed|ies|es|s|ly|ment|ments|ation|ations|ers?|ors?)$")
_MIN_STEM = 3


@dataclass(frozen=True)
class WeighedSentence:
    """The plain words of a sentence, and what its signs weigh together."""

    words: str
    weight: int

    @property
    def because(self) -> tuple[str, ...]:
        """The words that weigh most by themselves, the heaviest first."""
        heavy = {word: weight for word in self.words.split() if (weight := _weight_of_word(word)) > 0}
        return tuple(sorted(heavy, key=lambda word: (-heavy[word], word))[:_NUM_WORDS_SHOWN])


def licensor_sentence(text: str, left: str | None, limit: int) -> WeighedSentence | None:
    """Return the heaviest sentence of a comment that weighs as much as a limit.

    `left` are the plain words that recognized texts, notices and references do not explain, None where there are none of those.
    """
    found = (_unexplained(sentence, left) for sentence in sentences_of(text) if _weight_of(sentence) >= limit)
    return max((each for each in found if each.weight >= limit), key=lambda each: each.weight, default=None)


def weigh(words: str, num_names: int) -> WeighedSentence:
    """Return what the words of a sentence weigh, with the number of names of code beside them."""
    weights = load_weights()
    return WeighedSentence(words, weights[""] + sum(weights.get(sign, 0) for sign in signs_of(words, num_names)))


def words_of(sentence: str) -> list[str]:
    """Return the words of a sentence in lower case, without accents."""
    return _WORD.findall(folded(sentence.lower()))


def signs_of(words: str, num_names: int) -> frozenset[str]:
    """Return the signs of a sentence: its stems, pairs of them, their classes and pairs of those, its begin, length, names."""
    stems = [stem(word) for word in words.split()[:MAX_WORDS_OF_SENTENCE]]
    if not stems:
        return frozenset()
    classes = [load_classes().get(each, ()) for each in stems]
    signs = {f"w:{each}" for each in stems} | {f"b:{first} {second}" for first, second in pairwise(stems)}
    for place, own in enumerate(classes):
        for each in own:
            signs.add(f"c:{each}")
            signs.update(f"p:{each}>{other}" for later in classes[place + 1 : place + 1 + _REACH] for other in later)
    signs.add(f"^w:{stems[0]}")
    signs.update(f"^c:{each}" for each in classes[0])
    signs.add(f"n:{next((most for most in (1, 2, 4, 9, 19) if len(stems) <= most), 20)}")
    signs.add(f"share:{5 * sum(map(bool, classes)) // len(stems)}")
    if num_names:
        signs.add(f"code:{min(num_names, 2)}")
    return frozenset(signs)


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return a word without its ending, as English has them: an approximation that only need be the same everywhere."""
    if len(word) <= _MIN_STEM + 1:
        return word[:-1] if len(word) > _MIN_STEM and word[-1] == "s" and word[-2] != "s" else word
    bare = _ENDING.sub("", word)
    if len(bare) < _MIN_STEM:
        return word
    if len(bare) > _MIN_STEM and bare[-1] == bare[-2] and bare[-1] not in "sl":
        bare = bare[:-1]
    return bare[:-1] if bare[-1] in "ey" and len(bare) > _MIN_STEM else bare


@lru_cache(maxsize=_NUM_SENTENCES)
def _weight_of(sentence: str) -> int:
    """Return what a sentence weighs, or the least of all where its words weigh too little for their pairs to be looked at."""
    words = words_of(sentence)
    is_light = sum(map(_weight_of_word, set(words))) < MIN_OF_WORDS or not _OF_DISCLAIMERS.isdisjoint(words)
    return _LEAST if is_light else weigh(" ".join(words), num_names_in_code(sentence)).weight


def _unexplained(sentence: str, left: str | None) -> WeighedSentence:
    """Return what a sentence weighs without copyrights and what is explained, or the least of all where that is most of it."""
    whole, words = plain_words(sentence, with_copyright_lines=True), plain_words(sentence)
    kept = words if left is None or words in left else words_in_rows(words.split(), left)
    if kept == whole:
        return WeighedSentence(whole, _weight_of(sentence))
    is_rest = len(kept) < MIN_LEFT_FRACTION * len(whole)
    return WeighedSentence(kept, _LEAST) if is_rest else weigh(" ".join(words_of(kept)), num_names_in_code(sentence))


@lru_cache(maxsize=1 << 16)
def _weight_of_word(word: str) -> int:
    """Return what a word and its classes weigh."""
    found, weights = stem(word), load_weights()
    return weights.get(f"w:{found}", 0) + sum(weights.get(f"c:{each}", 0) for each in load_classes().get(found, ()))


def words_in_rows(words: Sequence[str], left: str) -> str:
    """Return the words that are among others in rows of three, in their order."""
    length = min(_WINDOW, len(words))
    starts = [start for start in range(len(words) - length + 1) if " ".join(words[start : start + length]) in left]
    kept = sorted({place for start in starts for place in range(start, start + length)})
    return " ".join(words[place] for place in kept)


@cache
def load_classes() -> dict[str, tuple[str, ...]]:
    """Return the classes of each stem."""
    found: dict[str, set[str]] = {}
    for name, word in _words_of_classes():
        found.setdefault(stem(word), set()).add(name)
    return {word: tuple(sorted(names)) for word, names in found.items()}


def _words_of_classes() -> Iterator[tuple[str, str]]:
    table: dict[str, dict[str, str]] = tomllib.loads(_read_table(CLASSES_FILE))
    for name, words in table["classes"].items():
        yield from ((name, word) for word in folded(words).split())


@cache
def load_weights() -> dict[str, int]:
    """Return the weight of each sign; that of every sentence has the empty name."""
    weights: dict[str, Any] = json.loads(_read_table(WEIGHTS_FILE))
    return {sign: int(weight) for sign, weight in weights.items()}


def _read_table(name: str) -> str:
    return files("pipeline.stages.normalize.license.licensors").joinpath(name).read_text(encoding="utf-8")
