"""A person is found by a name or an address as files spell it, in every encoding that normalize decodes, and nobody else is."""

import unicodedata

import pytest

from pipeline.core.errors import ParamsError
from pipeline.removal.named_author import NamedAuthor
from pipeline.stages.normalize.encodings.legacy_encodings import CANDIDATES


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
        ("ada.e@host.org", "ada.e at host dot org".encode("utf-16-le")),
        ("ada.e@host.org", "\ufeffada.e@host.org です".encode("utf-16-be")),
        ("ada.e@host.org", b"ada.e+lists @ host.org"),
        ("ada.e@host.org", "連絡先はada.e＠host.orgまで".encode()),
        ("ada.e@host.org", b"_ada.e@host.org_"),
        ("Ada Example", "by Ada\u00a0Example".encode()),
        ("Ada Example", "by Ada\u00a0Example é".encode("latin-1")),
        ("Ada Example", "by Ada\u202f\u200bExample".encode()),
        ("Ada Example", b"Ada&nbsp;Example"),
        ("Ada Example", "\ufeff// by Ada\r\n// Example".encode("utf-16-le")),
        ("Ada Example", "// Ada\r\n    // Example".encode("utf-16-be")),
        ("Ada Example", b"x" + "Ada Example".encode("utf-16-le")),
        ("Ada Example", "// 本文件的作者Ada Example，请不要删除这一行注释".encode("gb18030")),
        ("王小明", "作者王小明编写".encode()),
        ("王小明", "作者 王小明".encode("big5")),
        ("李明", "// 李明".encode("gb18030")),
        ("山田 太郎", "作者は山田太郎です".encode("cp932")),
        ("山田太郎", "山田\u3000太郎".encode("euc_jp")),
        ("山田太郎", "作者は山田太郎です".encode("iso2022_jp")),
        ("홍길동", "홍길동이 씀".encode("cp949")),
        ("Иван Петров", "ИВАН ПЕТРОВ".encode("koi8_r")),
        ("Łukasz Żak", "ŁUKASZ ŻAK".encode("cp1250")),
        ("Straße Groß", b"STRASSE GROSS"),
        ("Jan Großmann", "by Jan Großmann".encode("latin-1")),
        ("Jan Großmann", "by Jan Großmann".encode("utf-16-le")),
        ("Weiß Anna", "WEIß ANNA".encode("cp1252")),
        ("Jörg Müller", b"\xef\xbb\xbf// " + "Jörg Müller".encode("latin-1")),
        ("ada@host.org", b"ada@host.org...thanks"),
        ("ada@host.org", b"ada@host.org--Ada"),
    ],
)
def test_it_is_found(author: str, content: bytes) -> None:
    assert NamedAuthor(author).is_in(content)


@pytest.mark.parametrize(
    ("author", "content"),
    [
        ("Jörg Müller", "by Jörg Müllerin".encode()),
        ("Jörg Müller", b"by Jorg; int Muller"),
        ("ada.e@host.org", b"ada.e@host.org.uk"),
        ("ada.e@host.org", b"x.ada.e@host.org"),
        ("ada.e@host.org", b"ada.e@host.orgs"),
        ("Anna", b"Annals"),
        ("Anna", "Annaé".encode()),
        ("Anna", "Annaé".encode("latin-1")),
        ("Ян Ким", "Ян Кимов".encode("cp1251")),
        ("王小明", "王小 x 明".encode()),
        ("ada.e@host.org", "éada.e@host.org".encode()),
    ],
)
def test_nobody_else_is(author: str, content: bytes) -> None:
    assert not NamedAuthor(author).is_in(content)


_NAMES = (
    "Ada Example",
    "Jörg Müller",
    "Łukasz Żak",
    "Иван Петров",
    "Νίκος Παππάς",
    "王小明",
    "山田太郎",
    "홍길동",
    "สมชาย ใจดี",
    "דוד כהן",
)


@pytest.mark.parametrize("encoding", [name for names in CANDIDATES.values() for name in names.split()])
def test_each_encoding_is_read_that_normalize_decodes(encoding: str) -> None:
    for name in _NAMES:
        content = f"// © {name}, é 王\r\n".encode(encoding, "ignore")
        if name in content.decode(encoding):
            assert NamedAuthor(name).is_in(content), name


@pytest.mark.parametrize("author", ["", "Al", "王", "Ян", "x" * 201, "Ada\x00Example", "....@@@@"])
def test_a_text_that_is_no_author_is_refused_and_not_quoted(author: str) -> None:
    with pytest.raises(ParamsError, match="one line with an address or a name") as refused:
        NamedAuthor(author)
    assert not author.strip() or author not in str(refused.value)


def test_long_lines_of_blanks_and_of_its_first_words_take_no_time() -> None:
    assert not NamedAuthor("Jane Q. Doe").is_in((b"jane" + b" " * 500) * 2_000)
    assert not NamedAuthor("ada@host.org").is_in(b"ada at " * 100_000)


def test_a_name_whose_bytes_are_not_utf_8_is_told_so() -> None:
    with pytest.raises(ParamsError, match="and its bytes are not UTF-8; expected one line"):
        NamedAuthor(b"Jos\xe9 M\xfcller".decode("utf-8", "surrogateescape"))
