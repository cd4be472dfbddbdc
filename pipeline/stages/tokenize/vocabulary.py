"""Vocabulary: a byte-level BPE tokenizer, pinned by digest, with the facts of how it was made.

A vocabulary is a folder of `tokenizer.json` (Hugging Face tokenizers) and `vocabulary.toml`. Special tokens are plain
entries of the vocabulary and `added_tokens` stays empty: `encode_special_tokens` is not saved in tokenizer.json, so
with added tokens a plain `Tokenizer.from_file` would turn the spelling `<|eos|>` in corpus text into a control id. No
merge can make one either: the pre-tokenizer never joins the mark `<|` with the letters after it.
"""

import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tokenizers
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from pipeline.core.errors import DamagedError, MissingError, StageError, did_you_mean
from pipeline.stages.tokenize.further_merges import further_merges

VOCABULARIES = Path(__file__).parent / "vocabularies"

SPECIALS = (
    "<|pad|>",
    "<|bos|>",
    "<|eos|>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|repo|>",
    "<|file|>",
    "<|commit|>",
    *(f"<|reserved_{number}|>" for number in range(7)),
)
"""The special tokens; the place of one is its id in every vocabulary."""

_LETTER = r"[^\x00-@\x5b-\x60\x7b-\x7f]"
_MARK = r"[\x00-\x09\x0b\x0c\x0e-/:-@\x5b-\x60\x7b-\x7f]"
_PUNCTUATION = r"[\x00-\x08\x0e-\x1f!-/:-@\x5b-\x60\x7b-\x7f]"
_BLANK = r"[\t\x0b-\r ]"
_NOT_BLANK = r"[^\t\x0b-\r ]"

PATTERN = "|".join(
    (
        rf"{_MARK}?{_LETTER}+",  # a word, with at most one blank or punctuation mark before it
        r" ?[0-9]{1,3}",  # digits in groups of at most three
        rf" ?{_PUNCTUATION}+\n*",  # operators and brackets, with the line ends after them
        rf"{_BLANK}*\n+",  # line ends
        rf"{_BLANK}+(?!{_NOT_BLANK})",  # indentation, but for the blank that belongs to the word after it
        rf"{_BLANK}+",
    )
)
r"""Pattern that splits text before merging.

Every character outside ASCII counts as a letter, so that the pattern needs no Unicode tables and Python's `re`, `regex`
and the tokenizer's engine split alike in every version. A token ends with the line ends in it, so that the start of a
line is always the start of a token.
"""

MAX_TOKEN_BYTES = 32
"""No merge makes a token longer than this: long ones are license headers and tables that were memorized."""

MAX_SIZE = 65_499
"""Ids are uint16, and Megatron stores uint16 only for fewer than 65,500 entries."""

_NUM_BYTES = 256
_TOKENIZER = "tokenizer.json"
_SETTINGS = "vocabulary.toml"
_FOLDER = "/".join(VOCABULARIES.parts[-4:])
"""VOCABULARIES as seen from the root of the project."""


@dataclass(frozen=True)
class Vocabulary:
    """A loaded vocabulary.

    `size` counts every id, the special ones too; `trained_on` is the id of the object it was trained on.
    """

    name: str
    size: int
    sha256: str
    pattern: str
    specials: Mapping[str, int]
    trained_on: str
    tokenizer_json: bytes
    settings_toml: bytes

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer as any program loads it, without further settings."""
        return Tokenizer.from_str(self.tokenizer_json.decode())

    @cached_property
    def token_bytes(self) -> tuple[bytes, ...]:
        """The bytes of each id; those of a special token are its spelling."""
        byte_of = {character: byte for byte, character in enumerate(byte_characters())}
        spellings = json.loads(self.tokenizer_json)["model"]["vocab"]
        by_id = sorted(spellings, key=spellings.__getitem__)
        return tuple(bytes(byte_of[character] for character in spelling) for spelling in by_id)

    @cached_property
    def token_num_bytes(self) -> npt.NDArray[np.int64]:
        """Length in bytes of each id."""
        return np.array([len(value) for value in self.token_bytes], dtype=np.int64)

    @cached_property
    def ends_line(self) -> npt.NDArray[np.bool_]:
        """For each id, whether its bytes end with a line end."""
        return np.array([value.endswith(b"\n") for value in self.token_bytes])

    def as_json(self) -> dict[str, Any]:
        """Return what a snapshot records of the vocabulary."""
        return {"name": self.name, "sha256": self.sha256, "size": self.size, "specials": dict(self.specials)}

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Return the bytes of the ids. A piece that was cut by force may begin or end inside a character."""
        return b"".join(map(self.token_bytes.__getitem__, ids))

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of the ids of a whole document: exactly what was encoded."""
        return self.decode_bytes(ids).decode()


class TrainedOn(NamedTuple):
    """The corpus whose kept training documents a vocabulary was trained on, and the normalize stage that kept them."""

    corpus: str
    object_id: str
    extends: str = ""
    """Name of the vocabulary whose ids and merges it begins with, if it extends one."""


def load_vocabulary(name: str, folder: Path | None = None) -> Vocabulary:
    """Return the vocabulary `name` of the package, or of another folder of vocabularies.

    Raises MissingError if it does not exist, DamagedError if its tokenizer is not the declared one.
    """
    folder = folder or VOCABULARIES
    place = folder / name
    if not (place / _SETTINGS).is_file():
        known = sorted(path.parent.name for path in folder.glob(f"*/{_SETTINGS}"))
        remedy = did_you_mean(name, known, "`python -m pipeline vocabulary NAME --train` makes one.")
        raise MissingError(f"vocabulary {name}", "it does not exist", f"one of {', '.join(known) or 'none'}", remedy)
    return _read_folder(name, place)


def write_vocabulary(folder: Path, name: str, texts: Iterable[str], size: int, trained_on: TrainedOn) -> Vocabulary:
    """Train `name` on `texts`, or extend another by them, and write its two files into `folder`."""
    if trained_on.extends:
        tokenizer_json = extend_vocabulary(load_vocabulary(trained_on.extends), texts, size)
    else:
        tokenizer_json = train_vocabulary(texts, size)
    sha256 = hashlib.sha256(tokenizer_json).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _TOKENIZER).write_bytes(tokenizer_json)
    (folder / _SETTINGS).write_bytes(_settings(name, size, trained_on, sha256).encode())
    return _read_folder(name, folder)


def train_vocabulary(texts: Iterable[str], size: int) -> bytes:
    """Return the bytes of a tokenizer.json of `size` entries. The same for any order of the texts and any number of threads.

    Ids: the specials, the 256 bytes in order, then one id a merge. Raises StageError when the texts hold too few
    merges, or for a size that uint16 ids cannot serve.
    """
    if not len(SPECIALS) + _NUM_BYTES <= size <= MAX_SIZE:
        expected = f"{len(SPECIALS) + _NUM_BYTES} to {MAX_SIZE}"
        raise StageError("vocabulary", f"{size} entries were requested", expected, "Give another --size.")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = _pre_tokenizer()
    trainer = trainers.BpeTrainer(
        vocab_size=size - len(SPECIALS),
        special_tokens=[],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=MAX_TOKEN_BYTES,
        show_progress=False,
    )
    tokenizer.train_from_iterator(sorted(texts), trainer)
    merges = [tuple(merge) for merge in json.loads(tokenizer.to_str())["model"]["merges"]]
    entries = _entries(merges)
    if len(entries) != size:
        raise StageError("vocabulary", f"the texts give {len(entries)} entries", f"{size}", "Train on more text.")
    return _tokenizer_json(entries, merges)


def extend_vocabulary(known: Vocabulary, texts: Iterable[str], size: int) -> bytes:
    """Return the bytes of a tokenizer.json of `size` entries that begins with all ids and merges of another one.

    Raises StageError when the texts hold too few further merges, or for a size that is not above that of the other.
    """
    if not known.size < size <= MAX_SIZE:
        found, expected = f"{size} entries were requested", f"{known.size + 1} to {MAX_SIZE}"
        raise StageError(f"vocabulary {known.name}, extended", found, expected, "Give another --size.")
    tokenizer = known.tokenizer
    pieces = Counter(piece for text in texts for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text))
    words = {tuple(token.value for token in tokenizer.model.tokenize(piece)): pieces[piece] for piece in sorted(pieces)}
    merges = [(left, right) for left, right in json.loads(known.tokenizer_json)["model"]["merges"]]
    spellings = set(_entries(merges))
    for pair in further_merges(words, MAX_TOKEN_BYTES):
        merges.append(pair)
        spellings.add("".join(pair))
        if len(spellings) == size:
            return _tokenizer_json(_entries(merges), merges)
    found = f"the texts give {len(spellings)} entries"
    raise StageError(f"vocabulary {known.name}, extended", found, f"{size}", "Extend it by more text.")


def byte_characters() -> list[str]:
    """Return the printable character that represents each byte in a byte-level BPE (GPT-2, `bytes_to_unicode`)."""
    printable = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    others = iter(range(_NUM_BYTES, 2 * _NUM_BYTES))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(_NUM_BYTES)]


def _entries(merges: Sequence[tuple[str, str]]) -> dict[str, int]:
    spellings = [*SPECIALS, *byte_characters(), *(left + right for left, right in merges)]
    return {spelling: number for number, spelling in enumerate(dict.fromkeys(spellings))}


def _tokenizer_json(entries: dict[str, int], merges: list[tuple[str, str]]) -> bytes:
    tokenizer = Tokenizer(models.BPE(vocab=entries, merges=merges))
    tokenizer.pre_tokenizer = _pre_tokenizer()
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer.to_str(pretty=True).encode() + b"\n"


def _pre_tokenizer() -> pre_tokenizers.PreTokenizer:
    split = pre_tokenizers.Split(Regex(PATTERN), behavior="isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def _settings(name: str, size: int, trained_on: TrainedOn, sha256: str) -> str:
    specials = "\n".join(f'"{spelling}" = {number}' for number, spelling in enumerate(SPECIALS))
    extends = f" --extends {trained_on.extends}" if trained_on.extends else ""
    return f"""\
name = "{name}"
size = {size}
sha256 = "{sha256}"
library = "tokenizers {tokenizers.__version__}"

# The training documents that the stage normalize kept, and the command that trains on them again.
trained_on = "{trained_on.object_id}"
command = "python -m pipeline vocabulary {name} --train{extends} --size {size} --corpus {trained_on.corpus} --out {_FOLDER}/{name}"

[settings]
model = "byte-level BPE, no normalizer"
pattern = '{PATTERN}'
max_token_bytes = {MAX_TOKEN_BYTES}

[specials]
{specials}
"""


def _read_folder(name: str, folder: Path) -> Vocabulary:
    return _parse_vocabulary(name, (folder / _TOKENIZER).read_bytes(), (folder / _SETTINGS).read_bytes())


@lru_cache(maxsize=2)
def _parse_vocabulary(name: str, tokenizer_json: bytes, settings_toml: bytes) -> Vocabulary:
    """Parse the two files of a vocabulary, once for all sources: the lengths of a large one's ids take long to compute."""
    settings = tomllib.loads(settings_toml.decode())
    found = hashlib.sha256(tokenizer_json).hexdigest()
    if (found, name) != (settings["sha256"], settings["name"]):
        raise DamagedError(
            f"vocabulary {name}",
            f"its tokenizer.json has the digest {found}",
            f"{settings['sha256']} of the vocabulary {settings['name']}",
            "Restore both files, or train the vocabulary again under another name.",
        )
    return Vocabulary(
        name=name,
        size=settings["size"],
        sha256=found,
        pattern=settings["settings"]["pattern"],
        specials=settings["specials"],
        trained_on=settings["trained_on"],
        tokenizer_json=tokenizer_json,
        settings_toml=settings_toml,
    )
