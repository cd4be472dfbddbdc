"""Comments that may speak of a license: where they are, and which belong together."""

from pipeline.stages.normalize.license.comments import Prose, prose_of

CODE = "int a;\n"


def test_the_leading_comments_are_a_header_and_a_comment_in_code_is_not() -> None:
    text = "// Licensed to us.\n" + CODE + "/* not permitted here */\n" + CODE
    assert prose_of("a.c", text) == [Prose("// Licensed to us.", True), Prose("/* not permitted here */", False)]


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
    assert [prose.text for prose in prose_of("a.c", text)] == ["Confidential.\nDo not distribute.\n"]


def test_comments_of_other_things_are_no_prose() -> None:
    assert prose_of("a.c", "// Adds two numbers.\n" + CODE + "// and returns them\n") == []


def test_letters_of_other_scripts_are_read_as_prose() -> None:
    assert [prose.text for prose in prose_of("a.c", CODE + "// 禁止\n")] == ["// 禁止"]
