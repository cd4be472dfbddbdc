"""Short lines of headers: names of licenses and limits that stand alone, and lines that do not."""

import pytest

from pipeline.stages.normalize.license.prose.short_lines import heavy_line, joined_capitals, limiting_line, named_lines


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


@pytest.mark.parametrize(
    "line",
    [
        "Interdiction de revente.",
        "Prohibición de copia.",
        "Не для продажи.",
        "Не для коммерческого использования.",
        "Разрешено использовать только в учебных целях.",
        "個人利用のみ可",
        "転売禁止",
        "販売禁止。",
        "非商用のみ",
        "禁止銷售",
        "仅用于学习",
        "재배포를 금지합니다",
        "Chỉ dùng nội bộ",
        "Cấm bán lại",
        "Không dùng cho mục đích thương mại",
        "Requires a valid subscription.",
        "A support contract is needed to use this driver.",
        "The Foo software may be used only with Foo integrated circuits.",
        "If you want to use this in your product, mail me first.",
        "The copyright notice above does not evidence any actual or intended publication of such source code.",
    ],
)
def test_a_short_limit_in_any_language_is_one(line: str) -> None:
    assert limiting_line(f"// {line}\n") is not None


@pytest.mark.parametrize(
    "line",
    [
        "Requires a valid subscription id, else returns -1.",
        "May be used only with little-endian targets.",
        "禁止事項の一覧を返す",
        "Только для чтения.",
        "个人信息结构体",
        "Chỉ số của mảng",
        "Не для этого размера.",
    ],
)
def test_what_documents_a_program_in_any_language_is_none(line: str) -> None:
    assert limiting_line(f"// {line}\n") is None


def test_capitals_with_blanks_are_a_word() -> None:
    assert joined_capitals("S E C R E T, a b c d e f") == "SECRET, a b c d e f"


def test_a_heavy_line_is_the_first_that_no_program_says() -> None:
    assert heavy_line("// Adds.\n// Do not redistribute.\n") == "Do not redistribute."
    assert heavy_line("// Do not distribute the load.\n") is None
