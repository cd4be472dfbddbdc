"""Comments that may speak of a license: where they are, and which belong together."""

import pytest

from pipeline.stages.normalize.license.prose.comments import Prose, prose_of

CODE = "int a;\n"


def test_the_leading_comments_are_a_header_and_a_comment_in_code_is_not() -> None:
    text = "// Licensed to us.\n" + CODE + "/* not permitted here */\n" + CODE
    assert prose_of("a.c", text) == [
        Prose("// Licensed to us.", True),
        Prose("/* not permitted here */", False, False, True),
    ]


@pytest.mark.parametrize(
    ("before", "is_inside"),
    [
        ('#include "a.h"\n// #include <b.h>\n#include <c.h>\n', False),
        ('// Copyright 2001 A\n#include "a.h"\n// #include <b.h>\n#include <c.h>\n', True),
        (CODE, True),
    ],
)
def test_a_license_is_that_of_a_part_where_code_or_another_copyright_stands_before_it(
    before: str, is_inside: bool
) -> None:
    [*_, last] = prose_of("a.c", f"{before}\n// Copyright 2002 B, License of B\n{CODE}")
    assert (last.text, last.is_inside) == ("// Copyright 2002 B, License of B", is_inside)


def test_a_comment_with_the_words_of_a_license_is_a_header_wherever_it_is() -> None:
    assert prose_of("a.c", CODE + "// License of A\n") == [Prose("// License of A", True)]


def test_comments_with_nothing_between_them_are_one() -> None:
    text = CODE + "/* all uses */\n\n/* prohibited */\n// by A\n" + CODE + "// no license\n"
    assert [prose.text for prose in prose_of("a.c", text)] == [
        "/* all uses */\n\n/* prohibited */\n// by A",
        "// no license",
    ]


def test_code_that_is_left_out_is_prose() -> None:
    text = f"{CODE}#if 0\nConfidential.\nDo not distribute.\n#endif\n{CODE}"
    assert [prose.text for prose in prose_of("a.c", text)][:1] == ["Confidential.\nDo not distribute.\n"]


def test_comments_of_other_things_are_no_prose() -> None:
    assert prose_of("a.c", CODE + "// Adds two numbers.\n" + CODE + "int b;  // and returns them\n") == []


def test_letters_of_other_scripts_are_read_as_prose() -> None:
    assert [prose.text for prose in prose_of("a.c", CODE + "// 禁止\n")] == ["// 禁止"]


def test_a_comment_after_the_includes_or_after_all_code_is_a_header_and_one_among_code_is_not() -> None:
    text = "#include <a>\n\n// not permitted\n" + CODE + "// not permitted\n" + CODE + "/* not permitted */\n#endif\n"
    assert [prose.is_header for prose in prose_of("a.c", text)] == [True, False, True]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ('MODULE_LICENSE("GPL");\n', "License: GPL"),
        ('static const char license[] = "GPL-3.0";\n', "License: GPL-3.0"),
        ('char _license[] SEC("license") = "GPL";\n', "License: GPL"),
        ('#define PLUGIN_LICENSE "GPL"\n', "License: GPL"),
        ("#ifdef LEGAL\nThis is confidential.\n#endif\n", "This is confidential.\n"),
        ("#ifdef LICENSE_TEXT\nAsk first.\n#endif\n", "Ask first.\n"),
    ],
)
def test_what_code_states_is_prose(code: str, said: str) -> None:
    assert prose_of("a.c", CODE + code + CODE) == [Prose(said, True)]


@pytest.mark.parametrize(
    "hidden",
    [
        '#pragma comment(user, "Not for resale")\nint b;\n',
        'const char notice[] = R"(Not for resale)";\n',
        "#ifdef WE_ARE_OLD\nNot for resale; it is not yours to give away.\n#endif\n",
        "/* Not for re\N{SOFT HYPHEN}sale */\n",
    ],
)
def test_text_that_a_compiler_does_not_show_is_read(hidden: str) -> None:
    said = [prose.text for prose in prose_of("a.cpp", f"int a;\n{hidden}")]
    assert any("Not for resale" in text for text in said)


def test_a_raw_literal_that_is_no_notice_is_code() -> None:
    text = 'int a;\nconst char license[] = "MIT";\nconst char query[] = R"(select all)";\n'
    assert not any("select" in prose.text for prose in prose_of("a.cpp", text))
