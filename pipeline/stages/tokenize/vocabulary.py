"""Vocabulary: a byte-level BPE tokenizer, pinned by digest, with the facts of how it was made.

A vocabulary is a folder of `tokenizer.json` (Hugging Face tokenizers) and `vocabulary.toml`. Special tokens are plain
entries of the vocabulary and `added_tokens` stays empty: `encode_special_tokens` is not saved in tokenizer.json, so
with added tokens a plain `Tokenizer.from_file` would turn the spelling `<|eos|>` in corpus text into a control id. No
merge can make one either: the pre-tokenizer never joins the mark `<|` with the letters after it.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path
from re import fullmatch
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tokenizers
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from pipeline.contracts.training_row import INFILLING_TOKENS
from pipeline.core.errors import DamagedError, MissingError, ParamsError, StageError, did_you_mean
from pipeline.core.toml_text import parse_toml
from pipeline.stages.tokenize.further_merges import further_merges
from pipeline.stages.tokenize.params import NAME_FORM

VOCABULARIES = Path(__file__).parent / "vocabularies"

SPECIALS = (
    "<|pad|>",
    "<|bos|>",
    "<|eos|>",
    *INFILLING_TOKENS,
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
_MAX_FILE_BYTES = 64 * 1024**2
_TOKENIZER = "tokenizer.json"
SETTINGS = "vocabulary.toml"
"""Name of the file that declares the size, the pattern, the special tokens and the digest of the other one."""
VOCABULARY_FILES = (_TOKENIZER, SETTINGS)
"""Names of the files of a vocabulary."""
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
        return bytes_of_tokens(self.tokenizer_json)

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
    """Return the vocabulary `name` of the package, or of another folder of vocabularies, or, with a slash in it, of that folder.

    Raises MissingError if it does not exist, DamagedError if its tokenizer is not the declared one, ParamsError for a given folder
    that holds something else.
    """
    if "/" in name:
        return _load_given(Path(name))
    folder = folder or VOCABULARIES
    place = folder / name
    if not (place / SETTINGS).is_file():
        known = sorted(path.parent.name for path in folder.glob(f"*/{SETTINGS}"))
        remedy = did_you_mean(name, known, "`python -m pipeline vocabulary NAME --train` makes one.")
        raise MissingError(f"vocabulary {name}", "it does not exist", f"one of {', '.join(known) or 'none'}", remedy)
    return _read_folder(name, place)


def is_shipped(name: str) -> bool:
    """Return whether the package has a vocabulary of that name."""
    return (VOCABULARIES / name / SETTINGS).is_file()


def declared_vocabulary(name: str, settings_toml: bytes) -> dict[str, Any]:
    """Return what a snapshot records of a vocabulary, as its stored settings say it."""
    settings = parse_toml(settings_toml)
    return {"name": name, **{field: settings[field] for field in ("sha256", "size", "specials")}}


def write_vocabulary(folder: Path, name: str, texts: Iterable[str], size: int, trained_on: TrainedOn) -> Vocabulary:
    """Train `name` on `texts`, or extend another by them, and write its two files into `folder`.

    Raises ParamsError for a name by which no recipe could ask for it.
    """
    if not fullmatch(NAME_FORM, name):
        remedy = "Give it another name; `--out` is its folder."
        raise ParamsError(
            f"vocabulary {name}", "it is not a valid name", "such as mine-2048, of a-z, 0-9 and hyphens", remedy
        )
    if trained_on.extends:
        tokenizer_json = extend_vocabulary(load_vocabulary(trained_on.extends), texts, size)
    else:
        tokenizer_json = train_vocabulary(texts, size)
    sha256 = hashlib.sha256(tokenizer_json).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _TOKENIZER).write_bytes(tokenizer_json)
    (folder / SETTINGS).write_bytes(_settings(name, size, trained_on, sha256).encode())
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
        raise StageError(
            "vocabulary",
            f"the texts give {len(entries)} entries",
            f"{size}",
            "Train on more text, or give a smaller --size.",
        )
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
    raise StageError(
        f"vocabulary {known.name}, extended", found, f"{size}", "Extend it by more text, or give a smaller --size."
    )


def bytes_of_tokens(tokenizer_json: bytes) -> tuple[bytes, ...]:
    """Return the bytes of each id of a tokenizer.json, as `Vocabulary.token_bytes` has them."""
    byte_of = {ord(character): byte for byte, character in enumerate(byte_characters())}
    spellings = json.loads(tokenizer_json)["model"]["vocab"]
    by_id = sorted(spellings, key=spellings.__getitem__)
    values = "".join(by_id).translate(byte_of).encode("latin_1")
    return tuple(
        values[end - len(spelling) : end] for spelling, end in zip(by_id, accumulate(map(len, by_id)), strict=True)
    )


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
    extends = f" --extends {Path(trained_on.extends).name}" if trained_on.extends else ""
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


def _load_given(folder: Path) -> Vocabulary:
    """Return the vocabulary of a user's folder: it must be what this module writes, as stages trust its ids and pattern."""
    subject, wanted = f"vocabulary {folder}", f"{_TOKENIZER} and {SETTINGS} in it"
    remedy = "`python -m pipeline vocabulary NAME --train --size N --corpus C --out DIR` writes such a folder."
    missing = [name for name in VOCABULARY_FILES if not (folder / name).is_file()]
    if missing:
        found = f"it holds no {' and no '.join(missing)}" if folder.is_dir() else "there is no such folder"
        raise MissingError(subject, found, wanted, remedy)
    if is_shipped(folder.name) and (folder / _TOKENIZER).read_bytes() != load_vocabulary(folder.name).tokenizer_json:
        expected = "another name: one of that name is shipped"
        raise ParamsError(subject, "its tokenizer is not the shipped one", expected, remedy)
    try:
        if any((folder / name).stat().st_size > _MAX_FILE_BYTES for name in VOCABULARY_FILES):
            raise ValueError(f"a file of it has more than {_MAX_FILE_BYTES} bytes")
        vocabulary = _read_folder(folder.name, folder)
        _check(vocabulary.tokenizer_json, vocabulary.settings_toml)
        return vocabulary
    except KeyError as error:
        found = f"it is no vocabulary of this project: {SETTINGS} has no {error.args[0]}"
        raise ParamsError(subject, found, wanted, remedy) from None
    except (OSError, TypeError, ValueError) as error:
        found = f"it is no vocabulary of this project: {str(error)[:200]}"
        raise ParamsError(subject, found, wanted, remedy) from None


@lru_cache(maxsize=2)
def _check(tokenizer_json: bytes, settings_toml: bytes) -> None:
    """Raise ValueError unless the files of a vocabulary are what this module makes of its merges."""
    try:
        given = json.loads(Tokenizer.from_str(tokenizer_json.decode()).to_str())
        merges = [(left, right) for left, right in given["model"]["merges"]]
        entries = _entries(merges)
        made = json.loads(_tokenizer_json(entries, merges))
    except Exception as error:  # the library raises it itself
        raise ValueError(f"{_TOKENIZER}: {error}") from None
    if given != made:
        names = ", ".join(sorted(name for name in given.keys() | made.keys() if given.get(name) != made.get(name)))
        raise ValueError(f"{_TOKENIZER}: other {names} than a byte-level BPE of these merges has")
    settings = parse_toml(settings_toml)
    stated = settings["size"], settings["settings"]["pattern"], settings["specials"]
    if stated != (len(entries), PATTERN, {name: number for number, name in enumerate(SPECIALS)}):
        raise ValueError(f"{SETTINGS}: its size, pattern or specials are not those of {_TOKENIZER}")
    if len(entries) > MAX_SIZE:
        raise ValueError(f"{len(entries)} entries, more than {MAX_SIZE}")


def _read_folder(name: str, folder: Path) -> Vocabulary:
    return _parse_vocabulary(name, (folder / _TOKENIZER).read_bytes(), (folder / SETTINGS).read_bytes())


@lru_cache(maxsize=2)
def _parse_vocabulary(name: str, tokenizer_json: bytes, settings_toml: bytes) -> Vocabulary:
    """Parse the two files of a vocabulary, once for all sources: the lengths of a large one's ids take long to compute."""
    settings = parse_toml(settings_toml)
    found = hashlib.sha256(tokenizer_json).hexdigest()
    if settings["name"] != name:
        remedy = "Give the folder that name."
        raise DamagedError(f"vocabulary {name}", f"its {SETTINGS} is of {settings['name']}", name, remedy)
    if settings["sha256"] != found:
        raise DamagedError(
            f"vocabulary {name}",
            f"its {_TOKENIZER} has the digest {found}",
            str(settings["sha256"]),
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
