"""Legacy encoding: the one of many whose text is the likeliest in a language, or none if no text is likely or two texts are.

Every candidate decodes the same bytes, so that the texts' likelihoods compare: the costs of words in one language, and of symbols.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import re2

from pipeline.stages.normalize.encodings.damaged_utf8 import describe_damage
from pipeline.stages.normalize.encodings.word_costs import word_costs

CANDIDATES = {
    0.0: "cp1252 latin_1",
    1.0: "cp1251 cp1250 iso8859_2 iso8859_15 cp932 gb18030 euc_jp cp949 big5 koi8_r",
    2.0: """
        koi8_u cp1253 cp1254 cp1255 cp1256 cp1257 iso8859_5 iso8859_6 iso8859_7 iso8859_8 iso8859_9 cp437 cp850 cp852 cp866 cp874
        tis_620 mac_roman
    """,
    3.0: "cp737 cp857 cp862 cp865 cp1125 cp1258 iso8859_3 iso8859_4 iso8859_13 iso8859_14 mac_cyrillic",
    7.0: """
        big5hkscs cp775 cp855 cp860 cp861 cp863 cp864 cp869 euc_jis_2004 hp_roman8 iso8859_10 iso8859_16 johab koi8_t kz1048
        mac_croatian mac_greek mac_iceland mac_latin2 mac_romanian mac_turkish ptcp154 shift_jis_2004
    """,
}
"""Encodings by the cost of naming them, the usual ones first. All but UTF are tried: one left out would be read as another."""

MIN_MARGIN = 4.0
"""Least difference of cost, in natural units, between the best text and one that differs from it."""
MIN_MARGIN_OF_FLAW = 24.0
"""The same where only the other has letters for all that differs, and no capitals within words."""
MAX_COST = 8.0
"""Most cost of a character that is not ASCII, in the mean of a text."""
MAX_COST_OF_LONG, MAX_COST_IN_OTHER_SCRIPTS = 7.0, (6.0, 5.0)
"""The same of a text of LONG such characters, and of any text and a long one in letters that are not Latin."""
LONG = 40
MAX_ODD_SHARE = 0.05
"""Most words of a text that are likely in no language of their letters."""

MIN_COST_OF_ODD, MIN_MEAN_OF_ODD, MAX_SHARE_OF_ODD = 20.0, 3.0, 0.8
"""Cost of a line, and of its characters in the mean, from which it may be in another encoding; the share that it costs there."""
_MAX_ODD_LINES = 20

_MAX_SAMPLED_BYTES = 4_000
_LOST, _LOST_OF_UTF_8, _MAX_LOST_SHARE = 8.0, 8.0, 0.15
_USUAL_SYMBOLS = frozenset("©®°±²³´µ·«»§×–—‘’“”„…•→€£™№¿¡、。，：；？！（）「」・ー～\u00a0")
_WITHIN_WORDS, _BETWEEN_WORDS = "’´־", "—–…\u00a0×±²³´»«"
_BEHIND_WORDS, _BEFORE_WORDS = "’”“»…™®²³°ªº–—·´×±│║؟،؛\u00a0", "‘“„«¿¡§©®£€•–—…→µ·´×±¬│║\u00a0"
_BEFORE_CAPITALS = "©®•£€"
_UNITS = ("°C", "°F", "°K")
"""Symbols between the letters of words or of two words, after a word, before one, and, of those, before no small letter."""
_USUAL_SYMBOL, _SYMBOL, _SYMBOL_IN_WORD, _SYMBOL_AT_WORD, _REPEATED = 4.5, 9.0, 7.0, 4.0, 0.5
_PIECES = re.compile(r"[^\x00-\x40\x5b-\x60\x7b-\x7f]+")
_FORMATS = re.compile(r"\\[abefnrtv]|%[-+ #0]{0,5}[\d.*]{0,9}[hljzt]{0,2}[A-Za-z]")
_FOREIGN_RUNS = re.compile(r"(.)([^\x00-\x7f]+)(?=(.?))", re.DOTALL)
_WORDS = re2.compile(r"[\pL\pM]+")
_INNER_CAPITAL = re.compile(r"[а-џά-ώ][А-ЯЀ-ЏΑ-Ω]")
_SMALL, _CAPITAL = r"[\x{430}-\x{45f}\x{491}\x{3ac}-\x{3ce}]", r"[\x{400}-\x{42f}\x{490}\x{386}-\x{3ab}]"
_MIXED = re2.compile(
    r"[A-Za-z][\p{Cyrillic}\p{Greek}\p{Hebrew}\p{Arabic}]|[\p{Cyrillic}\p{Greek}\p{Hebrew}\p{Arabic}][A-Za-z]"
    r"|[A-Za-z][\x{2e80}-\x{d7a3}][a-z]"
    rf"|(?:^|[^\pL]){_SMALL}(?:{_SMALL}+{_CAPITAL}|{_CAPITAL}{{3}})|[a-z][\x{{c0}}-\x{{d6}}\x{{d8}}-\x{{de}}](?:[a-z]|$|\W)"
)
"""A word in two scripts, one ideograph or syllable within a word, or a capital within a word of small letters (not `кВт`)."""
_BROKEN = re2.compile(
    r"[A-Za-z]\p{Cyrillic}|\p{Cyrillic}[A-Za-z]"
    r"|[A-Za-z]{2}[^\x00-\x7f\p{Latin}\p{Greek}\pMµ’·…—–²³]+[a-z]|[A-Za-z][^\x00-\x7f\p{Latin}\p{Greek}\pMµ’·…—–²³]+[a-z]{2}"
)
IMPOSSIBLE = re2.compile(r"[\x{80}-\x{9f}\p{Co}\p{Cs}\x{fffd}\x{feff}\x{ff61}-\x{ff9f}]")
"""C1 controls, private use, surrogates, the replacement character, marks, half-width katakana."""


@dataclass(frozen=True)
class Guess:
    """An encoding that is likely, or, where `encoding` is None, the reason why none is."""

    encoding: str | None
    detail: str


@dataclass(frozen=True)
class _Rated:
    encoding: str
    text: str
    cost: float
    num_foreign: int
    num_lost: int = 0

    @property
    def is_likely(self) -> bool:
        """Its characters cost no more in the mean than those of a language."""
        return self.cost <= self.num_foreign * _max_cost(self.text, self.num_foreign)


def guess_encoding(content: bytes) -> Guess:
    """Return the encoding of bytes that are no UTF-8. It is a function of the bytes alone."""
    sample = _sample(content)
    every = sorted(_rate_all(sample), key=lambda each: each.cost)
    rated = [each for each in every if not each.num_lost]
    if not rated:
        return Guess(None, "no legacy encoding has characters of a text for these bytes")
    best = rated[0]
    damaged = _damaged_utf_8(sample)
    if damaged is not None and damaged < best.cost + MIN_MARGIN:
        return Guess(None, describe_damage(content))
    if best.cost - every[0].cost > MIN_MARGIN:
        return Guess(None, f"{every[0].encoding} with damage: {every[0].num_lost} of its characters are lost")
    other = next((each for each in rated if each.text != best.text), None)
    if other is not None and other.cost - best.cost < MIN_MARGIN:
        return Guess(None, f"ambiguous: {best.encoding} and {other.encoding} differ, and both are likely")
    other = next((each for each in rated if each.cost < best.cost + MIN_MARGIN_OF_FLAW and _repairs(each, best)), None)
    if other is not None:
        return Guess(
            None, f"ambiguous: {best.encoding} has signs or capitals within words where {other.encoding} has letters"
        )
    if not best.is_likely:
        return Guess(None, f"the likeliest legacy encoding is {best.encoding}, and its text is likely in no language")
    other_line = _line_in_another(sample, best.encoding)
    if other_line is not None:
        return Guess(None, f"mixed: {best.encoding}, and lines that are likely in {other_line} alone")
    for each in (each for each in rated if each.text == best.text):
        try:
            text = content.decode(each.encoding)
        except UnicodeDecodeError:
            continue
        if text.encode(each.encoding) == content and is_likely(text):
            return Guess(each.encoding, "")
    return Guess(
        None, f"the likeliest legacy encoding is {best.encoding}, and words of its text are likely in no language"
    )


def _repairs(other: _Rated, best: _Rated) -> bool:
    """Return whether the other has letters for all that differs, where the best has unusual signs, or capitals within words."""
    if len(other.text) != len(best.text) or other.text == best.text:
        return False
    flaws = {match.end() - 1 for match in _INNER_CAPITAL.finditer(best.text)}
    flaws -= {match.end() - 1 for match in _INNER_CAPITAL.finditer(other.text)}
    pairs = [(at, *pair) for at, pair in enumerate(zip(best.text, other.text, strict=True)) if pair[0] != pair[1]]
    are_letters = all(is_letter(second) for _, _, second in pairs)
    has_sign = any(not is_letter(first) and first not in _USUAL_SYMBOLS for _, first, _ in pairs)
    return are_letters and (has_sign or any(at in flaws for at, _, _ in pairs))


def cost_of(text: str) -> tuple[float, int]:
    """Return the cost of a text's characters that are not ASCII, in natural units, and their number."""
    return _cost(text), len(text) - len(text.encode("ascii", "ignore"))


def is_letter(character: str) -> bool:
    """Return whether a character is a letter, or a mark on one."""
    return character.isalpha() or unicodedata.category(character)[0] == "M"


def is_likely(text: str) -> bool:
    """Return whether nearly all words of a text that are not ASCII are likely in a language, and no symbol is within one."""
    if IMPOSSIBLE.search(text):
        return False
    text = without_formats(text)
    words = [word for word in _foreign_words(text) if word[0].isalpha()]
    num_foreign = np.array([sum(not character.isascii() for character in word) for word in words])
    num_odd = np.count_nonzero(word_costs(words).min(axis=1) > MAX_COST * num_foreign + 5)
    num_odd += len(_MIXED.findall(text))
    for symbols, before, after in _symbols(text):
        if _is_misplaced(symbols, before, after):
            if before.isalpha() and after.isalpha() and symbols not in _BETWEEN_WORDS:
                return False
            num_odd += 1
    return bool(num_odd <= MAX_ODD_SHARE * len(words))


def has_broken_word(text: str) -> bool:
    """Return whether a symbol or a letter of another script is within a word of ASCII letters."""
    return _BROKEN.search(text) is not None


def _sample(content: bytes) -> bytes:
    """Return lines that are not ASCII, from the whole of the file in even steps, up to a number of bytes."""
    lines = [line for line in content.replace(b"\r", b"\n").split(b"\n") if not line.isascii()]
    size = sum(map(len, lines))
    return b"\n".join(lines[:: 1 + size // _MAX_SAMPLED_BYTES])[: 4 * _MAX_SAMPLED_BYTES]


def _line_in_another(sample: bytes, encoding: str) -> str | None:
    """Return the encoding in which a line that is unlikely in the given one is likely; None if all lines are of one encoding.

    Of a file whose lines are in two, the likelier half would hide the other.
    """
    lines = [(line, *cost_of(line.decode(encoding, "ignore"))) for line in dict.fromkeys(sample.split(b"\n"))]
    odd = [
        (-cost, line) for line, cost, num_foreign in lines if cost > max(MIN_COST_OF_ODD, MIN_MEAN_OF_ODD * num_foreign)
    ]
    for cost, line in sorted(odd)[:_MAX_ODD_LINES]:
        every = [each for each in _rate_all(line) if not each.num_lost]
        best = min(every, key=lambda each: each.cost, default=None)
        if best is not None and best.cost <= MAX_SHARE_OF_ODD * -cost and best.is_likely and is_likely(best.text):
            return best.encoding
    return None


def _damaged_utf_8(sample: bytes) -> float | None:
    """Return the cost of UTF-8 with damage; None where nothing is left but ASCII."""
    text = sample.decode("utf_8", "ignore")
    num_lost = len(sample) - len(text.encode())
    return None if text.isascii() else _cost(text) + _LOST_OF_UTF_8 * num_lost


def _rate_all(sample: bytes) -> list[_Rated]:
    """Return the candidates but those that cost more than the best and a margin by their symbols and losses alone."""
    costs: dict[str, float] = {}
    rated, least = [], float("inf")
    is_cut = len(sample) >= 4 * _MAX_SAMPLED_BYTES
    for prior, names in CANDIDATES.items():
        for encoding in names.split():
            text, num_lost = _decoded(sample, encoding)
            num_foreign = len(text) - len(text.encode("ascii", "ignore"))
            num_lost = 0 if is_cut else num_lost
            if not num_foreign or num_lost > _MAX_LOST_SHARE * num_foreign or IMPOSSIBLE.search(text):
                continue
            most = least + MIN_MARGIN - prior - _LOST * num_lost
            if text not in costs:
                if most <= 0 or _symbol_cost(without_formats(text)) > most:
                    continue
                costs[text] = _cost(text)
            cost = costs[text] + prior + _LOST * num_lost
            least = min(least, cost if not num_lost else least)
            rated.append(_Rated(encoding, text, cost, num_foreign, num_lost))
    return rated


def _decoded(sample: bytes, encoding: str) -> tuple[str, int]:
    """Return the text of bytes in an encoding, and the number of places that could not be decoded."""
    try:
        return sample.decode(encoding), 0
    except UnicodeDecodeError:
        text = sample.decode(encoding, "replace")
        return text.replace("\ufffd", ""), text.count("\ufffd")


def _max_cost(text: str, num_foreign: int) -> float:
    """Return the most cost of a character in the mean of a text that is likely."""
    letters = [character for character in text if not character.isascii() and is_letter(character)]
    is_other = 2 * sum("\u0250" <= letter < "\u2e80" for letter in letters) > len(letters)
    return (
        MAX_COST_IN_OTHER_SCRIPTS[num_foreign >= LONG]
        if is_other
        else MAX_COST_OF_LONG
        if num_foreign >= LONG
        else MAX_COST
    )


def _cost(text: str) -> float:
    """Return the cost of a text's characters that are not ASCII: that of its words in their best language, and of its symbols."""
    text = without_formats(text)
    return float(word_costs(_foreign_words(text)).sum(axis=0).min()) + _symbol_cost(text)


def _foreign_words(text: str) -> list[str]:
    """Return the words that are not ASCII, by one fast expression and, where symbols are between them, one that knows letters."""
    pieces = [piece for piece in _PIECES.findall(text) if not piece.isascii()]
    words = (word for piece in pieces for word in ([piece] if piece.isalpha() else _WORDS.findall(piece)))
    return [word for word in words if not word.isascii()]


def _symbol_cost(text: str) -> float:
    """Return the cost of symbols: usual ones little, one where no word has it much, and a repeated one nearly nothing."""
    cost = 0.0
    for symbols, before, after in _symbols(text):
        for previous, symbol in zip(" " + symbols, symbols, strict=False):
            cost += _REPEATED if symbol == previous else _USUAL_SYMBOL if symbol in _USUAL_SYMBOLS else _SYMBOL
        if _is_misplaced(symbols, before, after):
            cost += _SYMBOL_IN_WORD if before.isalpha() and after.isalpha() else _SYMBOL_AT_WORD
    return cost


def _symbols(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the runs of symbols, each with the characters before and after it."""
    for before, run, after in _FOREIGN_RUNS.findall(" " + text):
        if not run.isalpha():
            yield from _symbols_of_run(before, run, after)


def _symbols_of_run(before: str, run: str, after: str) -> Iterator[tuple[str, str, str]]:
    symbols = ""
    for character in run:
        if not is_letter(character):
            symbols += character
            continue
        if symbols:
            yield symbols, before, character
        symbols, before = "", character
    if symbols:
        yield symbols, before, after


def _is_misplaced(symbols: str, before: str, after: str) -> bool:
    """Return whether symbols touch a letter on a side where none writes them."""
    if before.isalpha() and after.isalpha():
        return symbols not in _WITHIN_WORDS and (symbols < "\u2e80" or (before + after).isascii())
    if symbols >= "\u2e80":
        return False
    if before.isalpha():
        return symbols[0] not in _BEHIND_WORDS
    if after.islower() and symbols[-1] in _BEFORE_CAPITALS:
        return True
    return after.isalpha() and symbols[-1] not in _BEFORE_WORDS and symbols[-1] + after not in _UNITS


def without_formats(text: str) -> str:
    """Return a text without escapes and conversions of `printf`, whose letters belong to no word."""
    return _FORMATS.sub(" ", text) if "\\" in text or "%" in text else text
