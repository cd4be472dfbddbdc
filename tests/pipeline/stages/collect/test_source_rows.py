"""Rows of a source: digests of its files, and files that are withdrawn."""

import hashlib

from pipeline.lexing.languages import is_source
from pipeline.pins.selection import Selector, Selectors
from pipeline.stages.collect.contents import ReadFile
from pipeline.stages.collect.source_rows import source_file, without_withdrawn

FILES = [ReadFile("a.c", b"int a;\n"), ReadFile("b.c", b"int b;\n"), ReadFile("LICENSE", b"MIT\n")]


def test_a_file_has_the_digests_that_git_and_sha256_give() -> None:
    row = source_file("one", "r1", FILES[0])

    assert (row.source, row.revision, row.num_bytes, row.is_evidence) == ("one", "r1", 7, not is_source("a.c"))
    assert row.blob_sha256 == hashlib.sha256(b"int a;\n").hexdigest()
    assert row.git_blob_id == hashlib.sha1(b"blob 7\0int a;\n").hexdigest()


def test_files_that_a_selector_names_are_skipped_with_it() -> None:
    by_bytes = f"sha256:{hashlib.sha256(FILES[1].content).hexdigest()}"
    left, withdrawn = without_withdrawn("one", FILES, Selectors([Selector("one/a.c"), Selector(by_bytes)]))

    assert left == FILES[2:]
    assert [(each.path, each.num_bytes, each.reason, each.detail) for each in withdrawn] == [
        ("a.c", 7, "withdrawn", "by one/a.c"),
        ("b.c", 7, "withdrawn", f"by {by_bytes}"),
    ]
    assert without_withdrawn("one", FILES, Selectors([])) == (FILES, [])
