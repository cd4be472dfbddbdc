"""Ids of documents do not collide and do not change."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.digests import document_id, text_sha256

EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_the_digest_of_a_text_is_that_of_its_utf_8() -> None:
    assert text_sha256("") == EMPTY


def test_the_id_of_a_document_is_the_one_it_always_was() -> None:
    assert document_id("source", "a/b.cpp", EMPTY) == "3fa6cd8375b8d5413b3a43a42e3bc81587365dbb31a291238a10d609efcf500c"


@given(*[st.tuples(st.text(max_size=5), st.text(max_size=5), st.text(max_size=5))] * 2)
def test_different_triples_have_different_ids(first: tuple[str, str, str], second: tuple[str, str, str]) -> None:
    assert (document_id(*first) == document_id(*second)) == (first == second)
