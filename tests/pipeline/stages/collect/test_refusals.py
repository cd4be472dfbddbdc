"""Refusals of sources: what a reader raises names the source, and what is no code says why nothing was read."""

import errno
import re

import pytest

from pipeline.core.errors import ArchiveError, ParamsError, SourceError
from pipeline.stages.collect.contents import ReadFile, SkippedFile, SourceContents
from pipeline.stages.collect.refusals import naming_source, refuse_empty


@pytest.mark.parametrize(
    "raised",
    [
        IndexError("beyond"),
        RecursionError("deep"),
        ArchiveError("zip archive", "is odd"),
        OSError("Invalid data stream"),
        OSError(errno.EINVAL, "outside"),
    ],
)
def test_whatever_a_reader_raises_names_the_source(raised: Exception) -> None:
    with pytest.raises(ArchiveError, match=r"^demo: ") as caught, naming_source("demo"):
        raise raised
    assert caught.value.remedy


@pytest.mark.parametrize("raised", [OSError(errno.EIO, "disk"), ParamsError("a kind", "is wrong")])
def test_errors_of_the_disk_and_of_declarations_stay_what_they_are(raised: Exception) -> None:
    with pytest.raises(type(raised)) as caught, naming_source("demo"):
        raise raised
    assert caught.value is raised


def test_a_source_without_code_says_what_was_skipped() -> None:
    refuse_empty("demo", SourceContents((ReadFile("a.c", b""),), ()))
    skipped = (SkippedFile("a.py", 1, "other_language"), SkippedFile("line 1", 1, "bad_line", "it is not JSON"))
    with pytest.raises(
        SourceError, match=r"demo: it holds no source file \(1 bad_line, 1 other_language; line 1: it is"
    ):
        refuse_empty("demo", SourceContents((), skipped))


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        (SourceContents((ReadFile("readme.md", b""),), ()), "(1 read for its license alone, such as readme.md)"),
        (SourceContents((), ()), "(it is empty)"),
        (
            SourceContents((), (SkippedFile("line 1", 1, "bad_line", "line 1: it is not JSON"),)),
            "(1 bad_line; line 1: it is not JSON)",
        ),
        (SourceContents((), (SkippedFile("a.c", 1, "too_large", "line 1"),)), "(1 too_large; a.c: line 1)"),
    ],
)
def test_a_source_without_code_says_each_thing_once(contents: SourceContents, words: str) -> None:
    with pytest.raises(SourceError, match=re.escape(f"it holds no source file {words};")):
        refuse_empty("demo", contents)
