"""Bad files, a row each: the input, its outcome, and the evidence that is recorded. Nothing crashes, nothing is lost uncounted."""

import base64
import codecs
from dataclasses import dataclass, field

import pytest

from pipeline.stages.normalize.params import FilterParams, NormalizeParams
from tests.pipeline.stages.normalize.conftest import Normalized, normalize_in
from tests.pipeline.stages.normalize.license.test_texts import BSD, MIT
from tests.pipeline.stages.normalize.test_clean_source import TAG, code
from tests.support.planted_secrets import ALPHANUMERIC, characters, key_block

AT = "@"
KEY = "AKIA" + "QWERTYUIOPASDFGH"
TOKEN = "ghp_" + characters(ALPHANUMERIC, 36)
ENCODED = base64.b64encode(characters(ALPHANUMERIC, 40).encode()).decode()
REUSE = 'version = 1\n[[annotations]]\npath = "elsewhere/**"\nSPDX-License-Identifier = "ISC"\n'
# A line of a gigabyte, scaled: what is too long is a limit of the Params, and no part of the way grows faster than the text.
LIMIT = 20_000
CODE = code("a")


@dataclass(frozen=True)
class Row:
    """`outcome` is `kept` or the reason; `evidence` is part of the record; `holds` and `hides` concern the stored text."""

    content: str | bytes
    outcome: str
    evidence: str = ""
    holds: str = ""
    hides: str = ""
    beside: dict[str, str | bytes] = field(default_factory=dict)
    path: str = "x.cpp"


def tagged(*expressions: str) -> str:
    return "".join(f"// {TAG} {expression}\n" for expression in expressions)


ROWS: dict[str, Row] = {
    # Encodings
    "UTF-16 with a mark": Row(codecs.BOM_UTF16_LE + ("// é\n" + CODE).encode("utf-16-le"), "kept", holds="// é\n"),
    "UTF-16 without a mark": Row(code("a").encode("utf-16-le"), "binary", "control character U+0000 at character 1"),
    "a lone surrogate in UTF-16": Row(
        codecs.BOM_UTF16_LE + b"\x00\xd8" + CODE.encode("utf-16-le"),
        "undecodable",
        "mark of utf_16_le, but byte 0",
    ),
    "a lone surrogate in UTF-8": Row(codecs.BOM_UTF8 + b"// \xed\xa0\x80\n" + CODE.encode(), "undecodable", "byte 3"),
    "a NUL": Row(code("a").replace("int", "in\0t", 1), "binary", "control character U+0000 at character 2"),
    "overlong UTF-8": Row(codecs.BOM_UTF8 + b"// \xc0\xaf\n" + CODE.encode(), "undecodable", "byte 3"),
    "overlong UTF-8 without a mark": Row(b"// \xc0\xaf\n" + CODE.encode(), "undecodable", "ambiguous"),
    "mixed line ends": Row(CODE.replace("\n", "\r\n", 3).replace("}\n", "}\r", 1), "kept", "crlf_to_lf", hides="\r"),
    "one endless line": Row("int a[] = {" + "1," * LIMIT + "};\n", "too_large", f"max_num_bytes is {LIMIT}"),
    "a long line": Row("int a[] = {" + "1," * 600 + "};\n" + CODE, "long_line", "longest_line is 1213"),
    "an empty file": Row("", "too_small", "num_bytes is 0"),
    "blank lines alone": Row("\n" * 200, "few_alphanumerics", "alphanumeric_fraction is 0"),
    "comments alone": Row(
        "\n// words of a comment that says a lot\nint a;" * 9, "repeated_lines", "unique_line_fraction"
    ),
    "one long comment": Row(
        "int a;\n/* " + "\n".join(f"line {n} of many" for n in range(40)) + " */\n", "mostly_comments"
    ),
    # Licenses
    "a license as an exception": Row(
        tagged("MIT WITH Apache-2.0") + CODE, "license_unknown", "is not an SPDX expression"
    ),
    "an exception of another license": Row(
        tagged("MIT WITH LLVM-exception") + CODE, "license_refused", "LLVM-exception does not go with MIT"
    ),
    "two names with a stroke": Row(tagged("MIT/X11") + CODE, "kept", "SPDX-License-Identifier: MIT OR X11"),
    "two with a stroke of which one is none": Row(
        tagged("MIT/Example") + CODE, "license_unknown", "'MIT/Example' is not an SPDX expression"
    ),
    "a reference": Row(tagged("LicenseRef-x") + CODE, "license_refused", "LicenseRef-x is refused"),
    "NONE": Row(tagged("NONE") + CODE, "license_refused", "NONE is refused"),
    "an empty tag": Row(tagged("") + CODE, "license_unknown", "the expression is empty"),
    "two tags that contradict": Row(tagged("MIT", "GPL-2.0-only") + CODE, "license_refused", "x.cpp:2:"),
    "a tag in a string literal": Row(
        f'const char* tag = "{TAG} GPL-2.0-only";\n' + CODE, "kept", "declared_license = MIT", holds="GPL-2.0-only"
    ),
    "a choice": Row(tagged("GPL-2.0-only OR BSD-3-Clause") + CODE, "kept", "BSD-3-Clause"),
    "a REUSE.toml that matches nothing": Row(CODE, "kept", "declared_license = MIT", beside={"REUSE.toml": REUSE}),
    "a broken REUSE.toml": Row(
        CODE, "license_quarantined", "REUSE.toml is not TOML", beside={"REUSE.toml": "[[annotations"}
    ),
    "a REUSE.toml of stars": Row(
        CODE,
        "kept",
        "declared_license = MIT",
        beside={"REUSE.toml": f'[[annotations]]\npath = "{"**a" * 40}b"\nSPDX-License-Identifier = "ISC"'},
        path="a" * 200 + ".cpp",
    ),
    "a license text with a restriction after it": Row(
        CODE,
        "license_quarantined",
        "in addition to MIT it says `non commercial`",
        beside={"LICENSE": MIT + "\nFor non-commercial use only.\n"},
    ),
    "a license text in UTF-16": Row(CODE, "kept", "LICENSE: the text of MIT", beside={"LICENSE": MIT.encode("utf-16")}),
    "a tag in small letters": Row(
        f"// {TAG.lower()} GPL-2.0-only\n" + CODE, "license_refused", "GPL-2.0-only is refused"
    ),
    "a tag in a raw string": Row(
        f'const char* s = R"(\n{TAG} GPL-2.0-only\n)";\n' + CODE, "kept", "declared_license = MIT"
    ),
    "a tag with code after its comment": Row(f"/* {TAG} ISC */ int q;\n" + CODE, "kept", "ISC"),
    "an expression without end": Row(
        CODE, "license_unknown", "5000 characters", beside={"x.cpp.license": f"{TAG} {'(' * 5000}"}
    ),
    "a license text with one word changed": Row(
        CODE,
        "license_quarantined",
        "nearly MIT: `limited` instead of `limitation`",
        beside={"LICENSE": MIT.replace("limitation", "limited", 1)},
    ),
    "a header with one word changed below a vendored root": Row(
        "/*\n" + BSD.replace("must retain", "may drop", 1) + "*/\n" + CODE,
        "license_quarantined",
        "third_party/x.cpp says `BSD-3-Clause copyright 2020 2024 the heron authors",
        path="third_party/x.cpp",
    ),
    "a license text of NULs": Row(
        CODE, "license_quarantined", "not a known license text", beside={"lib/LICENSE": b"\0" * 99}, path="lib/x.c"
    ),
    # Secrets
    "a secret over a line continuation": Row(
        f'auto key = "{KEY[:9]}\\\n{KEY[9:]}";\n' + CODE,
        "kept",
        hides=KEY[9:],
        holds='"<redacted-secret-1>\\\n<redacted-secret-1>";',
    ),
    "a secret in a raw string": Row(
        f'auto key = R"x({TOKEN})x";\n' + CODE, "kept", hides=TOKEN, holds='R"x(<redacted-secret-1>)x"'
    ),
    "a secret in a comment": Row(f"/* {KEY} */\n" + CODE, "kept", hides=KEY, holds="/* <redacted-secret-1> */"),
    "a secret in base 64": Row(
        f'auto key = "{ENCODED}";\n' + CODE, "kept", hides=ENCODED[:-2], holds='"<redacted-secret-1>";'
    ),
    "a key without its end": Row(
        "/*\n" + "\n".join(key_block()[:-1]) + "\n*/\n" + CODE,
        "kept",
        hides=key_block()[2],
        holds="<redacted-secret-1>",
    ),
    "an address that ends an identifier": Row(
        f"// x_ada{AT}host.org\n" + CODE, "kept", hides="ada", holds="// <redacted-email-1>"
    ),
    "an identifier with an at sign": Row(f"// x_ada{AT}host.org_y\n" + CODE, "kept", holds=f"x_ada{AT}host.org_y"),
    "a text that only resembles an address": Row(
        f"// name{AT}2 a{AT}b c{AT}\n" + CODE, "kept", holds=f"name{AT}2 a{AT}b c{AT}"
    ),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Normalized:
    """All rows, each a source of its own, in one build."""
    sources = {f"row-{index:02}": {row.path: row.content, **row.beside} for index, row in enumerate(ROWS.values())}
    params = NormalizeParams(filters=FilterParams(max_num_bytes=LIMIT))
    return normalize_in(tmp_path_factory.mktemp("bad"), sources, params)


@pytest.mark.parametrize("name", ROWS)
def test_bad_input_has_the_expected_outcome_and_its_reason_is_recorded(name: str, made: Normalized) -> None:
    row, source = ROWS[name], f"row-{list(ROWS).index(name):02}"
    documents = made.rows(source, "documents.parquet")
    dropped = made.rows(source, "dropped.parquet")
    assert len(documents) + len(dropped) == 1
    if documents:
        (document,) = documents
        evidence = "\n".join((document["license_detail"], document["license_branch"], *document["edits"]))
        assert ("kept", row.evidence in evidence) == (row.outcome, True), evidence
        assert row.holds in document["text"]
        assert not row.hides or row.hides not in document["text"]
    else:
        assert dropped[0]["reason"] == row.outcome, dropped[0]["detail"]
        assert row.evidence in dropped[0]["detail"]


def test_nothing_is_lost(made: Normalized) -> None:
    report = made.result.report
    assert report.rows_in == report.rows_out + sum(report.dropped.values()) == len(ROWS)
    assert not made.result.failures
