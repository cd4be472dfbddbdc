"""Short lines of headers: names of licenses and limits that stand alone, and lines that do not."""

import pytest

from pipeline.stages.normalize.license.prose.short_lines import joined_capitals, limiting_line, named_lines


@pytest.mark.parametrize(
    ("line", "license"),
    [
        ("EUPL-1.2", "EUPL-1.2"),
        ("(OSL 2.1)", "OSL-2.1"),
        ("This file is under SSPL.", "SSPL-1.0"),
        ("EUPL v1.2", "EUPL-1.2"),
        ("Copyright (GPL)", "GPL-1.0-or-later"),
    ],
)
def test_a_line_that_is_a_name_is_that_license(line: str, license: str) -> None:
    assert named_lines(f"/*\n * a.cpp\n *\n * {line}\n */", False) == (license,)


@pytest.mark.parametrize("line", ["zlib", "OpenSSL glue", "Ruby", "Python 2.0", "curl helpers", "Uses boost::mpl"])
def test_the_name_of_a_library_is_no_license(line: str) -> None:
    assert named_lines(f"// {line}\n", False) == ()


def test_a_limit_stands_alone_in_a_line_or_sentence() -> None:
    assert limiting_line("// Reads tables.\n//\n// Foo Inc. Proprietary\n") == "Proprietary"
    assert limiting_line("// Reads the proprietary format of cameras\n") is None
    assert limiting_line("// confi-\n// dential\n") == "confidential"


def test_capitals_with_blanks_are_a_word() -> None:
    assert joined_capitals("S E C R E T, a b c d e f") == "SECRET, a b c d e f"
