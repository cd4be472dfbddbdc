"""Vocabularies: pre-tokens, training, special tokens, and files that are refused."""

import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, pre_tokenizers

from pipeline.core.errors import DamagedError, MissingError, ParamsError, SluiceError, StageError
from pipeline.stages.tokenize.vocabulary import (
    MAX_TOKEN_BYTES,
    PATTERN,
    SETTINGS,
    SPECIALS,
    VOCABULARIES,
    VOCABULARY_FILES,
    TrainedOn,
    Vocabulary,
    extend_vocabulary,
    load_vocabulary,
    train_vocabulary,
    write_vocabulary,
)
from tests.support.paths import ROOT

TEXTS = [path.read_text() for path in sorted((ROOT / "pipeline" / "core").glob("*.py"))]
AWKWARD = st.text(
    st.one_of(
        st.sampled_from(" \t\n\r\x0b\x0c\x00\u00a0\u2028;{}->_aZ09é漢🎉"), st.characters(exclude_categories=["Cs"])
    )
)


@given(AWKWARD)
@settings(max_examples=300)
def test_three_regex_engines_split_alike_and_lose_nothing(text: str) -> None:
    expected = re.findall(PATTERN, text)
    by_tokenizer = [part for part, _ in pre_tokenizers.Split(Regex(PATTERN), "isolated").pre_tokenize_str(text)]
    assert expected == by_tokenizer == regex.findall(PATTERN, text)
    assert "".join(expected) == text


@given(AWKWARD)
@settings(max_examples=200)
def test_a_pre_token_splits_into_itself(text: str) -> None:
    for pretoken in set(re.findall(PATTERN, text)):
        assert re.findall(PATTERN, pretoken) == [pretoken]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("x = 123456;\n", ["x", " =", " 123", "456", ";\n"]),
        ("{\n        return a->b;\n", ["{\n", "       ", " return", " a", "->", "b", ";\n"]),
        ("std::move_if\n\n\n", ["std", "::", "move", "_if", "\n\n\n"]),
    ],
)
def test_the_pattern_keeps_indentation_and_ends_tokens_at_line_ends(text: str, parts: list[str]) -> None:
    assert re.findall(PATTERN, text) == parts


def test_training_gives_the_same_bytes_for_any_order_and_number_of_threads() -> None:
    program = (
        "import sys, hashlib, json; from pipeline.stages.tokenize.vocabulary import train_vocabulary;"
        "print(hashlib.sha256(train_vocabulary(json.load(sys.stdin), 600)).hexdigest())"
    )
    digests = {hashlib.sha256(train_vocabulary(TEXTS, 600)).hexdigest()}
    for threads in ("1", "2"):
        shuffled = random.Random(threads).sample(TEXTS, len(TEXTS))
        environment = {**os.environ, "RAYON_NUM_THREADS": threads, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", program],
            input=json.dumps(shuffled),
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout.strip())
    assert len(digests) == 1


def test_an_extended_vocabulary_begins_with_the_other_and_cuts_what_that_one_cut_further(tmp_path: Path) -> None:
    known = load_vocabulary("tiny-1024")
    size = known.size + 50
    more = write_vocabulary(tmp_path / "more", "more", TEXTS, size, TrainedOn("small", "ab" * 32, extends=known.name))
    old, new = (json.loads(each.tokenizer_json)["model"] for each in (known, more))
    ids, fewer = (each.tokenizer.encode("".join(TEXTS)).ids for each in (known, more))

    assert (more.size, len(new["vocab"]), more.token_bytes[: known.size]) == (size, size, known.token_bytes)
    assert new["merges"][: len(old["merges"])] == old["merges"]
    assert more.decode_bytes(fewer) == known.decode_bytes(ids)
    assert len(fewer) < len(ids)
    assert extend_vocabulary(known, TEXTS[::-1], size) == more.tokenizer_json
    assert "--extends tiny-1024 " in more.settings_toml.decode()
    with pytest.raises(StageError, match="1024 entries were requested; expected 1025 to"):
        extend_vocabulary(known, TEXTS, 1024)
    with pytest.raises(StageError, match="the texts give 1027 entries; expected 1100"):
        extend_vocabulary(known, ["zqzq zqzq"], 1100)


def test_a_written_vocabulary_loads_with_its_facts(tmp_path: Path) -> None:
    written = write_vocabulary(
        tmp_path / "small-512", "small-512", TEXTS, 512, trained_on=TrainedOn("small", "ab" * 32)
    )
    loaded = load_vocabulary("small-512", tmp_path)
    assert loaded == written
    assert (loaded.size, loaded.trained_on, loaded.pattern) == (512, "ab" * 32, PATTERN)
    assert max(map(len, loaded.token_bytes[len(SPECIALS) :])) <= MAX_TOKEN_BYTES
    assert len(set(loaded.token_bytes)) == 512


def test_texts_without_enough_merges_are_refused() -> None:
    with pytest.raises(StageError, match="expected 4096"):
        train_vocabulary(["int x;"], 4096)


@pytest.mark.parametrize("size", [271, 65_500])
def test_a_size_that_uint16_ids_cannot_serve_is_refused(size: int) -> None:
    with pytest.raises(StageError, match="expected 272 to 65499"):
        train_vocabulary(TEXTS, size)


def test_a_changed_tokenizer_is_refused_with_both_digests(tmp_path: Path) -> None:
    declared = write_vocabulary(
        tmp_path / "small-300", "small-300", TEXTS, 300, trained_on=TrainedOn("small", "0" * 64)
    ).sha256
    file = tmp_path / "small-300" / "tokenizer.json"
    file.write_bytes(file.read_bytes() + b" ")
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    with pytest.raises(DamagedError, match=f"{found}.*{declared}"):
        load_vocabulary("small-300", tmp_path)


def test_an_unknown_vocabulary_names_the_known_ones() -> None:
    with pytest.raises(MissingError, match="tiny-1024"):
        load_vocabulary("huge-1")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own") / "own-300"
    write_vocabulary(folder, "own-300", TEXTS, 300, TrainedOn("mine", "0" * 64))
    return folder


def test_a_folder_of_ones_own_is_a_vocabulary_wherever_it_lies(own: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(own, tmp_path / "own-300")

    assert load_vocabulary(str(moved)) == load_vocabulary(str(own))
    assert load_vocabulary(f"{shutil.copytree(VOCABULARIES / 'tiny-1024', tmp_path / 'tiny-1024')}").size == 1024


def with_line(folder: Path, before: str, after: str) -> None:
    """Replace a text in both files of a vocabulary, and the digest of the one in the other."""
    for name in VOCABULARY_FILES:
        (folder / name).write_text((folder / name).read_text().replace(before, after))
    settings, digest = folder / SETTINGS, hashlib.sha256((folder / "tokenizer.json").read_bytes()).hexdigest()
    settings.write_text(re.sub('sha256 = ".*"', f'sha256 = "{digest}"', settings.read_text()))


WRONG: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "none": ("own-300", shutil.rmtree, "there is no such folder; expected tokenizer.json and vocabulary.toml in it"),
    "one file": ("own-300", lambda folder: (folder / SETTINGS).unlink(), "it holds no vocabulary.toml"),
    "another name": ("other-300", lambda _: None, "its vocabulary.toml is of own-300; expected other-300. Give the"),
    "a shipped name": ("tiny-1024", lambda _: None, "its tokenizer is not the shipped one; expected another name"),
    "no TOML": (
        "own-300",
        lambda folder: (folder / SETTINGS).write_text("none"),
        "it is no vocabulary of this project",
    ),
    "no field": ("own-300", lambda folder: (folder / SETTINGS).write_text(""), "project: vocabulary.toml has no name"),
    "no tokenizer": ("own-300", lambda folder: with_line(folder, '"BPE"', '"Word"'), "project: tokenizer.json: "),
    "another size": ("own-300", lambda folder: with_line(folder, "size = 300", "size = 301"), "its size, pattern or"),
    "another id": (
        "own-300",
        lambda folder: with_line(folder, '"<|bos|>" = 1', '"<|bos|>" = 7'),
        "its size, pattern or",
    ),
    "another reader": (
        "own-300",
        lambda folder: with_line(folder, '"ByteLevel"', '"Metaspace"'),
        "project: tokenizer.json: ",
    ),
    "added tokens": (
        "own-300",
        lambda folder: with_line(folder, '"normalizer": null', '"normalizer": {"type": "NFC"}'),
        "other normalizer than a byte-level BPE of these merges has",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_folder_that_is_no_vocabulary_is_refused(name: str, own: Path, tmp_path: Path) -> None:
    called, change, words = WRONG[name]
    folder = shutil.copytree(own, tmp_path / called)
    change(folder)
    with pytest.raises(SluiceError, match=re.escape(words)):
        load_vocabulary(str(folder))


def test_a_vocabulary_that_no_recipe_could_name_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ParamsError, match=r"vocabulary \./own: it is not a valid name; expected such as mine-2048"):
        write_vocabulary(tmp_path / "own", "./own", TEXTS, 300, TrainedOn("mine", "0" * 64))


def test_spellings_of_specials_are_text_to_a_plain_load(vocabulary: Vocabulary, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(vocabulary.tokenizer_json)
    plain = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert json.loads(vocabulary.tokenizer_json)["added_tokens"] == []
    for spelling in SPECIALS:
        for text in (spelling, f"x{spelling}y", f' "{spelling}"\n', spelling * 3):
            ids = plain.encode(text).ids
            assert min(ids) >= len(SPECIALS)
            assert plain.decode(ids) == text


def test_specials_come_first_and_decode_to_their_spelling(vocabulary: Vocabulary) -> None:
    assert dict(vocabulary.specials) == {spelling: number for number, spelling in enumerate(SPECIALS)}
    assert len(SPECIALS) == 16
    assert vocabulary.decode(range(16)) == "".join(SPECIALS)
