"""Word costs: how unlikely words are in each of some forty languages, in natural units, from the table `letter_pairs.toml`.

Only letters that are not ASCII cost: each by the letter before it and the one after it, or, in languages without letters, alone.
"""

import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

_UNKNOWN_PAIR, _FOREIGN_PAIR, _UNKNOWN_CHARACTER = 8.0, 12.0, 14.0
_COMMON_CHARACTER = 9.0
_COMMON_IN = {
    "zh": ("gb2312", 0xB0, 0xD7),
    "zh_Hant": ("big5", 0xA4, 0xC6),
    "ja": ("euc_jp", 0xB0, 0xCF),
    "ko": ("euc_kr", 0xB0, 0xC8),
}
"""The encodings whose first bytes in a range stand for the characters that a national standard calls common."""
_WRONG_CASE = 5.0
_BLANK_AND_ASCII = " abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class _Costs:
    """The table as arrays, with a column for each language; letters and characters are in `row_of` by their code points.

    Row 0 of each is that of all others.
    """

    row_of_letter: np.ndarray
    has_letter: np.ndarray
    row_of_pair: np.ndarray
    cost_of_pair: np.ndarray
    row_of_character: np.ndarray
    cost_of_character: np.ndarray


def word_costs(words: Sequence[str]) -> np.ndarray:
    """Return the cost of each word in each language, a row a word."""
    costs = _read_costs()
    text = " ".join(["", *words, ""]).lower()
    codes = np.frombuffer(text.encode("utf_32_le", "surrogatepass"), np.uint32)
    is_foreign = codes > 0x7F
    (at,) = np.nonzero(is_foreign[:-1] | is_foreign[1:])
    first, second = costs.row_of_letter[codes[at]], costs.row_of_letter[codes[at + 1]]
    of_pairs = costs.cost_of_pair[costs.row_of_pair[first, second]]
    is_unknown = np.isnan(of_pairs)
    is_in_alphabet = costs.has_letter[first] & costs.has_letter[second]
    of_pairs[is_unknown] = np.where(is_in_alphabet, _UNKNOWN_PAIR, _FOREIGN_PAIR)[is_unknown]
    of_characters = costs.cost_of_character[costs.row_of_character[codes[at + 1]]] * is_foreign[at + 1, np.newaxis]
    word_of_pair = (codes == ord(" ")).cumsum()[at] - 1
    found = np.zeros((len(words), of_pairs.shape[1] + of_characters.shape[1]))
    np.add.at(found, word_of_pair, np.concatenate([of_pairs, of_characters], axis=1))
    found[np.array([_is_of_wrong_case(word) for word in words], bool), : of_pairs.shape[1]] += _WRONG_CASE
    return found


def most_in_one_alphabet(letters: str) -> int:
    """Return how many of some letters the alphabet of one language has, the one that has most of them."""
    costs = _read_costs()
    codes = np.frombuffer(letters.lower().encode("utf_32_le", "surrogatepass"), np.uint32)
    return int(costs.has_letter[costs.row_of_letter[codes]].sum(axis=0).max())


def _is_of_wrong_case(word: str) -> bool:
    return not (word.islower() or word.isupper() or word.istitle() or word.lower() == word.upper())


@cache
def _read_costs() -> _Costs:
    path = files("pipeline.stages.normalize.encodings").joinpath("letter_pairs.toml")
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    pairs = [
        {group[at : at + 2]: level + 0.5 for level, group in enumerate(groups) for at in range(0, len(group), 2)}
        for groups in table["pairs"].values()
    ]
    alphabets = [dict.fromkeys({*"".join(each), *_BLANK_AND_ASCII}, True) for each in pairs]
    characters = [
        _common_characters(language)
        | {character: level + 0.5 for level, group in enumerate(groups) for character in group}
        for language, groups in table["characters"].items()
    ]
    letters, has_letter = _as_rows(alphabets, other=False)
    known, cost_of_pair = _as_rows(pairs, other=np.nan)
    row_of_pair = np.zeros((len(has_letter), len(has_letter)), np.int32)
    for pair, row in known.items():
        row_of_pair[letters[pair[0]], letters[pair[1]]] = row
    row_of, cost_of_character = _as_rows(characters, other=_UNKNOWN_CHARACTER)
    return _Costs(
        _by_code_point(letters), has_letter, row_of_pair, cost_of_pair, _by_code_point(row_of), cost_of_character
    )


def _common_characters(language: str) -> dict[str, float]:
    """Return the cost of characters that a standard calls common, seldom as they may be in the table's texts."""
    encoding, first, last = _COMMON_IN[language]
    every = bytes(
        byte for lead in range(first, last + 1) for trail in range(0x40, 0xFF) for byte in (lead, trail, 0x0A)
    )
    return dict.fromkeys(filter(str.isalpha, every.decode(encoding, "ignore")), _COMMON_CHARACTER)


def _as_rows(columns: Sequence[Mapping[str, float]], *, other: float) -> tuple[dict[str, int], np.ndarray]:
    """Return the row of each key of some tables, and the rows: values of a key in each table, row 0 those of every other key."""
    keys = sorted({key for column in columns for key in column})
    row_of = {key: row for row, key in enumerate(keys, start=1)}
    rows = np.full((len(keys) + 1, len(columns)), other)
    for number, column in enumerate(columns):
        rows[[row_of[key] for key in column], number] = list(column.values())
    return row_of, rows


def _by_code_point(row_of: dict[str, int]) -> np.ndarray:
    rows = np.zeros(sys.maxunicode + 1, np.int16)
    for key, row in row_of.items():
        rows[ord(key)] = row
    return rows
