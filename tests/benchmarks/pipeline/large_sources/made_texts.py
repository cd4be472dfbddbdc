"""Made corpora of any size: real texts, whose identifiers are renamed by a keyed map, so that no made file is a copy of another.

One source is a file of JSON lines. Each round takes every real text once, in a folder of its own, with names of its own.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import re2

from tests.benchmarks.pipeline.slices import place_digest, texts

Place = tuple[str, str]
_WORD = re2.compile(r"[A-Za-z_]\w+")
_OUTSIDE_OF_CODE = re2.compile(r'(?s)/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|(?m:^[ \t]*#[^\n]*)')
"""Comments, literals and directives: licenses, and what is included, stay as they are."""
_KEYWORDS = frozenset(
    re2.findall(
        r"\w+",
        """alignas alignof and auto bool break case catch char class const constexpr const_cast continue decltype default delete do
        double dynamic_cast else enum explicit extern false final float for friend goto if inline int long mutable namespace new
        noexcept not nullptr operator or override private protected public register reinterpret_cast return short signed sizeof
        static static_assert static_cast struct switch template this throw true try typedef typename union unsigned using virtual
        void volatile while std size_t string vector""",
    )
)
_LICENSE_NAMES = frozenset({"cecill", "itar", "sspl"})
"""Single words for which a gate takes a text to be under another license: no made name is one of them."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def write_lines(path: Path, num_bytes: int, round_prefix: str = "round") -> None:
    """Write about `num_bytes` of text as JSON lines with the fields `text`, `path` and `license`."""
    with path.open("w", encoding="utf-8") as file:
        for place, text in made_texts(real_texts(), num_bytes, round_prefix):
            file.write(json.dumps({"path": place, "text": text, "license": "MIT"}) + "\n")


@cache
def real_texts() -> Mapping[Place, str]:
    """Return the texts of the full slice that rules take as they are: between 1 and 200 kB, in UTF-8."""
    return {place: text for place, text in texts("full").items() if 1_000 <= len(text) <= 200_000 and text.isascii()}


def made_texts(real: Mapping[Place, str], num_bytes: int, round_prefix: str) -> Iterator[tuple[str, str]]:
    """Yield paths and texts until there are `num_bytes` of them, in an order that says nothing of paths."""
    order: Sequence[Place] = sorted(real, key=place_digest)
    made, number = 0, 0
    while made < num_bytes:
        for source, path in order:
            if made >= num_bytes:
                return
            text = renamed(real[source, path], f"{round_prefix}{number}")
            made += len(text)
            yield f"{round_prefix}{number:03}/{source}/{path}", text
        number += 1


def renamed(text: str, key: str) -> str:
    """Return a text with each identifier of its code replaced by one of the same length, always the same for a key."""
    pieces, position = [], 0
    for match in _OUTSIDE_OF_CODE.finditer(text):
        pieces += [_WORD.sub(partial(_name, key), text[position : match.start()]), match[0]]
        position = match.end()
    return "".join([*pieces, _WORD.sub(partial(_name, key), text[position:])])


def _name(key: str, match: "re2._Match[str]") -> str:
    return match[0] if match[0] in _KEYWORDS else _made_name(key, match[0])


@cache
def _made_name(key: str, name: str) -> str:
    digest = hashlib.sha256(f"{key} {name}".encode()).digest()
    letters = [_LETTERS[byte % len(_LETTERS)] for byte in digest]
    made = "".join(
        letters[place % len(letters)]
        if each.islower()
        else letters[place % len(letters)].upper()
        if each.isupper()
        else each
        for place, each in enumerate(name)
    )
    is_word = made in _KEYWORDS or made.lower() in _LICENSE_NAMES
    return f"{name[0]}{made[1:]}" if is_word else made
