"""Vocabularies: pre-tokens, training, special tokens, and files that are refused."""

import hashlib
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, pre_tokenizers

from pipeline.core.errors import DamagedError, MissingError, StageError
from pipeline.stages.tokenize.vocabulary import (
    MAX_TOKEN_BYTES,
    PATTERN,
    SPECIALS,
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
@settings(max_examples=300, deadline=None)
def test_three_regex_engines_split_alike_and_lose_nothing(text: str) -> None:
    expected = re.findall(PATTERN, text)
    by_tokenizer = [part for part, _ in pre_tokenizers.Split(Regex(PATTERN), "isolated").pre_tokenize_str(text)]
    assert expected == by_tokenizer == regex.findall(PATTERN, text)
    assert "".join(expected) == text


@given(AWKWARD)
@settings(max_examples=200, deadline=None)
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
