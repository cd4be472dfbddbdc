"""Named values: whether the name of a vendor beside a value makes it a credential, for rules that have nothing else to go by.

Such a rule says "the word of a vendor, then 32 digits". Digests of files, identifiers and revisions have as many, and `linear`,
`adobe` and `facebook` are parts of other words and names of files. So the vendor's name is a word of its own; the name of which it
is a part says that it is a key and not a digest, an address or a file; and without a word that says so, only a value counts that is
no digest, no UUID and no number.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

_PART = re.compile(r"[A-Z]+[0-9]*(?![a-z])|[A-Z]?[a-z]+[0-9]*|[0-9]+")
_DIGEST = re.compile(
    r"(?:[0-9a-f]{2}){4,64}|(?:[0-9A-F]{2}){4,64}|[0-9]+|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)
"""Bytes in hexadecimal of one case, a number, a UUID."""
_DIGEST_OF = re.compile(
    r"(?i)(?:md[245]|sha[0-9]{0,3}|crc[0-9]{0,2}|cksum|hash(?:es)?|digests?|checksums?|fingerprint)[a-z0-9_]{0,12}"
    r"[ (]{1,3}(?:of |the |a ){0,2}\Z"
)
"""Words before a name by which a value is computed from what it names."""
_OF_A_WORD = re.compile(r"[A-Za-z0-9_=-]+")
_SWITCH = re.compile(r"[A-Za-z](?=[0-9])|[0-9](?=[A-Za-z])")
_MIN_SWITCHES, _CHARACTERS_PER_SWITCH = 5, 5
"""Changes between letters and digits from which a value is no slug: in 32 random small letters and digits there are twelve."""
_REST_OF_SMALL, _REST_OF_CAPITALS = re.compile(r"[a-z]*"), re.compile(r"[A-Z]*(?![a-z])|[a-z]*")


@dataclass(frozen=True)
class NameWords:
    """Words that names are made of. `credentials` say that a value is a secret, and so does `id` after one of `owners`.

    `digests` say that it is none, wherever they stand in a name; `others` do after the last word of credentials: a name is what its
    last word says. `tails` are written after the name of a vendor without a sign between. `everyday` are vendors whose name is a
    word of English, of programming or of every project: such a name alone says nothing.
    """

    credentials: Collection[str]
    owners: Collection[str]
    digests: Collection[str]
    others: Collection[str]
    tails: Collection[str]
    everyday: Collection[str]

    def is_credential(self, name: str, vendor: tuple[int, int], before: str, value: str) -> bool:
        """Return whether a value beside a name is a credential. The vendor stands at a place of the name, something before it."""
        if _DIGEST_OF.search(before):
            return False
        words = [word.lower() for word in _PART.findall(name)]
        kinds = [self._kind(word, words[index - 1] if index else "") for index, word in enumerate(words)]
        if "digest" in kinds:
            return False
        is_random = not _DIGEST.fullmatch(value) and not _is_slug(value)
        if "credential" in kinds:
            is_last = "other" not in kinds[len(kinds) - kinds[::-1].index("credential") :]
            return is_last and (is_random or self._is_a_word(name, *vendor))
        says_nothing = "other" in kinds or name[slice(*vendor)].lower() in self.everyday
        return not says_nothing and is_random and self._is_a_word(name, *vendor)

    def _kind(self, word: str, previous: str) -> str:
        stem = word.rstrip("0123456789")
        if word in self.digests or stem in self.digests:
            return "digest"
        is_owned = stem in ("id", "ids") and previous in self.owners
        if is_owned or stem in self.credentials:
            return "credential"
        return "other" if stem in self.others else ""

    def _is_a_word(self, name: str, start: int, end: int) -> bool:
        """Return whether a part of a name is not a part of a longer word."""
        is_capital = name[start : start + 1].isupper()
        if start and name[start - 1].isalpha() and not (is_capital and name[start - 1].islower()):
            return False
        following = (_REST_OF_SMALL if name[end - 1 : end].islower() else _REST_OF_CAPITALS).match(name, end)
        rest = following[0].lower() if following else ""
        return not rest or rest in self.tails or rest in self.credentials


def _is_slug(value: str) -> bool:
    """Return whether a value is of words and numbers."""
    if not _OF_A_WORD.fullmatch(value):
        return False
    return len(_SWITCH.findall(value)) < max(_MIN_SWITCHES, len(value) // _CHARACTERS_PER_SWITCH)
