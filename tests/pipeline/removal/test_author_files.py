"""The expression of an author finds a name or an address as files spell it, and nobody else's."""

import unicodedata

import pytest

from pipeline.core.errors import ParamsError
from pipeline.removal.author_files import _expression


@pytest.mark.parametrize(
    ("author", "content"),
    [
        ("Jörg Müller", "// by JÖRG MÜLLER, 2019".encode()),
        ("Jörg Müller", "/* Jörg\n * Müller */".encode()),
        ("Jörg Müller", "by Jörg Müller,".encode("latin-1")),
        ("Jörg Müller", "by Jörg Müller,".encode("utf-16-le")),
        ("Jörg Müller", "by Jörg Müller,".encode("utf-16-be")),
        ("Jörg Müller", unicodedata.normalize("NFD", "by Jörg Müller.").encode()),
        ("ada.e@host.org", b"<Ada.E@HOST.org>"),
        ("ada.e@host.org", b"ada.e (at) host (dot) org"),
        ("ada.e@host.org", b"ada dot e at host dot org."),
    ],
)
def test_it_is_found(author: str, content: bytes) -> None:
    assert _expression(author).search(content)


@pytest.mark.parametrize(
    ("author", "content"),
    [
        ("Jörg Müller", "by Jörg Müllerin".encode()),
        ("Jörg Müller", b"by Jorg; int Muller"),
        ("ada.e@host.org", b"ada.e@host.org.uk"),
        ("ada.e@host.org", b"x.ada.e@host.org"),
        ("ada.e@host.org", b"ada.e@host.orgs"),
        ("Anna", b"Annals"),
    ],
)
def test_nobody_else_is(author: str, content: bytes) -> None:
    assert not _expression(author).search(content)


@pytest.mark.parametrize("author", ["", "Al", "x" * 201, "Ada\x00Example", "....@@@@"])
def test_a_text_that_is_no_author_is_refused_and_not_quoted(author: str) -> None:
    with pytest.raises(ParamsError, match="one line with an address or a name") as refused:
        _expression(author)
    assert not author.strip() or author not in str(refused.value)


def test_long_lines_of_blanks_and_of_its_first_words_take_no_time() -> None:
    assert not _expression("Jane Q. Doe").search((b"jane" + b" " * 500) * 2_000)
    assert not _expression("ada@host.org").search(b"ada at " * 100_000)
