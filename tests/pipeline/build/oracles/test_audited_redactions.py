"""Placeholders stand for what they say, where it can be, and their share of a source is counted."""

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pipeline.build.oracles.audited_redactions import SourceRedactions, add_redactions

LIKE_C = [".c"]


def _stored(table: pa.Table) -> Any:
    return SimpleNamespace(table=lambda name, columns: table.select(columns))


def _redactions(text: str, content: bytes | None, path: str = "a.c", num_redactions: int = 1) -> Any:
    row = {"source": "one", "path": path, "text": text, "num_bytes": len(text), "num_redactions": num_redactions}
    files = [("other.c", b"int a;\n")] + ([] if content is None else [(path, content)])
    table = pa.Table.from_pylist([dict(zip(("path", "content"), each, strict=True)) for each in files])
    found = SourceRedactions()
    add_redactions(found, _stored(pa.Table.from_pylist([row])), _stored(table), LIKE_C)
    return found


@pytest.mark.parametrize(
    ("text", "content", "holds"),
    [
        ('f("<redacted-email-1>");', b'f("ada@host.org");', True),
        ("// <redacted-email-1>", b"// ada (at) host (dot) org", True),
        ('f("<redacted-email-1>");', b'f("a data base");', False),
        ("f(<redacted-network-address-1>);", b"f(8, 8, 4, 4);", True),
        ('f("<redacted-network-address-1>");', b'f("price");', False),
        ('f("<redacted-path-1>/a", "<redacted-email-1>");', b'f("/home/ada/a", "price");', False),
        ('f("<redacted-path-1>", "<redacted-path-2>");', b'f("/home/ada", "price");', False),
        ("// <redacted-path-1><redacted-path-2>/x.c", b"// /Users/bob/Users/carol/x.c", True),
        ("// <redacted-path-1><redacted-path-2>/x.c", b"// price/x.c", False),
        ("// <redacted-path-1>/<redacted-path-2>/x.c", b"// /home/bob//home/carol/x.c", True),
        ("// <redacted-path-1>/<redacted-path-2>/x.c", b"// price/cost/x.c", False),
        ('f("<redacted-path-1>");', b'f("C:\\\\Users\\\\ada");', True),
        ('f("<redacted-path-1>");', b'f("price");', False),
        ('f("<redacted-path-1>/a");', b'f("~ada/a");', True),
        ('f("<redacted-secret-1>");', b'f("price");', True),
        ("<redacted-secret-1>", b"return price;", False),
        ("// of the first\n<redacted-secret-1>", b"// of the first\nreturn price;", False),
        ("    <redacted-of-a-program-1>", b"    return price;", False),
        ("    <redacted-of-a-program-1>", b"    price;", True),
        ("// <redacted-secret-1>", b"// return price;", True),
        ("\n\n\n\n// abcdef\n<redacted-secret-1>", b"\n\n\n\n// abcdef\nreturn price;", False),
        ("x <redacted-email-1>", b"y price", True),
        ("x <redacted-email-1> <redacted-secret-1>", b"y price price", True),
        (" <redacted-secret-1>", b" price", True),
        ("a <redacted-email-1> b", b"a b", True),
        ("a <redacted-email-1> <redacted-email-2> b", b"a ada@host.org ada@host.net b", True),
        ("<redacted-email-1>, <redacted-email-2>, <redacted-email-3>", b"ada@host.org, a@b.org, price", False),
        ('f("<redacted-secret-1>");', b'f("return price;");', True),
        ("<redacted-email-1> <redacted-secret-1>", b"<redacted-email-1> price", True),
        ("<redacted-path-1>/a.h", b"another line", True),
        ("<redacted-email-1>", "pri\u00e9".encode("latin-1"), True),
        ("int a;\n<redacted-email-1>", b"int a;\r\nprice", False),
        ("int a;\n<redacted-email-1>", b"int a;\rprice", False),
        ('f("<redacted-email-1>);', b'f("ada@host.org");', False),
        ('f("<redacted-email-1>', b'f("ada@host.org");', False),
        ('f(<redacted-email-1>");', b'f("ada@host.org");', False),
        ("// <redacted-email-1>", b"// ada@host.org.", False),
        ("//<redacted-email-1>", b"// ada@host.org", False),
        ("// mailto<redacted-email-1>", b"// mailto:ada@host.org", False),
        ("// <redacted-email-1>", "// zoë@host.org".encode(), True),
        ("f(<redacted-network-address-1>;", b"f(8.8.8.8);", False),
        ("f<redacted-network-address-1>;", b"f(8.8.8.8;", False),
        ('f("<redacted-path-1>/a");', b'f("/home/ada/a");', True),
        ('f("<redacted-path-1>);', b'f("/home/ada");', False),
        ("f(<redacted-path-1>", b"f(/home/ada,", False),
        ("f<redacted-path-1>", b"f(/home/ada", False),
        ("f(<redacted-path-1><redacted-secret-1>", b"f(/home/ada}", True),
        ('f("<redacted-secret-1>);', b'f("price");', False),
        ('f("<redacted-secret-1>");', rb'f("price\"");', True),
        ("f(<redacted-secret-1>);", b'f("price" "cost");', True),
        ("// <redacted-secret-1>", b"//  price", False),
        ("// <redacted-secret-1>", b"// price\t", False),
        ("/* <redacted-secret-1>", b"/* price*/", False),
        ("<redacted-secret-1> price", b"cost/* price", False),
        ('f("<redacted-secret-1>");', b'f(" price// ");', True),
        ('f("jo:<redacted-secret-1>");', b'f("jo:price ");', True),
        ('f("jo: <redacted-secret-1>");', b'f("jo:  price");', False),
        ('f("<redacted-secret-1> x");', b'f("price  x");', False),
        ('f("<redacted-secret-1>" + b);', b'f("price" + a + "cost" + b);', True),
        ('f("a"<redacted-secret-1>"b");', b'f("a" + price + "b");', False),
        ('f("<redacted-secret-1>");', b'f("price/* ");', True),
        ('f("<redacted-secret-1>");', b'f("price", /* cost */ "b");', False),
        ('f("<redacted-email-1>");', b'f(" ada@host.org ");', False),
        ("\"a: '<redacted-secret-1>'\"", b"\"a: 'price // '\"", True),
        ("\"don't: '<redacted-secret-1>'\"", b"\"don't: 'price // '\"", True),
        (r'"{\"a\": \"<redacted-secret-1>\"}"', rb'"{\"a\": \"price/* \"}"', True),
        (r'"{\"a\": \"<redacted-secret-1>\"}"', rb'"{\"a\": \"price\", \"b\": \"/*\"}"', False),
        (r'"\\", "<redacted-secret-1>"', rb'"\\", "price "', True),
        ('R"(<redacted-secret-1>)"', b'R"(pri"ce)"', True),
        ('R"x(<redacted-secret-1>)x"', b'R"x("pri)"ce)x"', True),
        ('f(g(a)"<redacted-secret-1>")', b'f(g(a)" price")', True),
        ('R"(<redacted-secret-1>)"', b'R"(price)" R"(/*)"', False),
        ("// it's <redacted-secret-1> or 'x'", b"// it's /*price or 'x'", False),
        ("// '<redacted-secret-1>'", b"// 'pri\"ce'", True),
        ('/* "<redacted-secret-1>"\n/* */', b'/* "price*/ "\n/* */', False),
        ('int a; /* "<redacted-secret-1>"\n/* */', b'int a; /* "price*/ "\n/* */', False),
        ('int a;\n/* "<redacted-secret-1>"\n/* */', b'int a;\n/* "price*/ "\n/* */', False),
        ("/* <redacted-secret-1> */", b"/* <redacted-email-1>*/ int a; /* b */", True),
        ('/* "<redacted-secret-1>" */', b'/* "/*price " */', True),
        ('f("<redacted-secret-1>x");', b'f(" pricex");', True),
    ],
)
def test_what_a_placeholder_stands_for_can_be_what_it_says(text: str, content: bytes, holds: bool) -> None:
    found = _redactions(text, content, num_redactions=text.count("<redacted-"))

    assert found.implausible == ([] if holds else [("one", "a.c")])


def test_no_more_placeholders_are_new_than_were_counted() -> None:
    text, content = "<redacted-email-1> <redacted-email-2>", b"ada@host.org ada@example.net"

    assert _redactions(text, content, num_redactions=2).implausible == []
    assert _redactions(text, content, num_redactions=1).implausible == [("one", "a.c")]


def test_statements_are_known_in_languages_like_c_alone() -> None:
    assert _redactions("<redacted-secret-1>", b"return price;", path="a.py").implausible == []
    text, content = '/* "<redacted-secret-1>"\n/* */', b'/* "price*/ "\n/* */'
    assert _redactions(text, content, path="a.py").implausible == []


@pytest.mark.parametrize(
    ("num_kept", "num_lost", "num_redactions", "share"),
    [(0, 100_000, 1, 1), (50_000, 50_000, 1, 0.5), (0, 1_024, 1, 1_024 / 16_384), (50_000, 50_000, 0, 0)],
)
def test_the_share_of_a_source_is_that_of_its_bytes(
    num_kept: int, num_lost: int, num_redactions: int, share: float
) -> None:
    text, content = "a" * num_kept + "<redacted-secret-1>", b"a" * num_kept + b"b" * num_lost

    found = _redactions(text, content, num_redactions=num_redactions)

    assert found.share == pytest.approx(share, abs=1e-3)


def test_a_document_without_its_file_is_not_judged() -> None:
    found = _redactions("<redacted-email-1>", None)

    assert (found.share, found.implausible) == (0, [])
