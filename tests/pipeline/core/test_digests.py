"""Ids of documents do not collide and do not change, and a file is read again when it changed."""

import hashlib
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.digests import document_id, known_sha256, text_sha256

EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_the_digest_of_a_text_is_that_of_its_utf_8() -> None:
    assert text_sha256("") == EMPTY


def test_the_id_of_a_document_is_the_one_it_always_was() -> None:
    assert document_id("source", "a/b.cpp", EMPTY) == "3fa6cd8375b8d5413b3a43a42e3bc81587365dbb31a291238a10d609efcf500c"


@given(*[st.tuples(st.text(max_size=5), st.text(max_size=5), st.text(max_size=5))] * 2)
def test_different_triples_have_different_ids(first: tuple[str, str, str], second: tuple[str, str, str]) -> None:
    assert (document_id(*first) == document_id(*second)) == (first == second)


def test_what_this_process_read_is_not_read_again_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    os.utime(path)
    time.sleep(0.05)
    assert known_sha256(path) == hashlib.sha256(b"one").hexdigest()
    with monkeypatch.context() as patched:
        patched.setattr(hashlib, "file_digest", lambda *_: pytest.fail("it is read again"))
        known_sha256(path)
    status = path.stat()
    path.write_bytes(b"two")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert known_sha256(path) == hashlib.sha256(b"two").hexdigest()
