"""Comments, literals, directives and brackets are found as a compiler reads them, and texts that do not pair are known."""

import pytest

from pipeline.build.oracles.code_marks import marks_of


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("int f(int a) { return (a); }", [(5, 11, 0), (22, 24, 1), (13, 27, 0)]),
        ("f(\"{(\", 0x1'0, '{'); // }", [(1, 18, 0)]),
        ('/* { */ R"x({ )" )x" {}', [(21, 22, 0)]),
        ("#define OPEN {\\\n (\n{}", [(19, 20, 0)]),
        ('R"x( )x { )x" {}', [(14, 15, 0)]),
        ('R"x( x" { )x" {}', [(14, 15, 0)]),
        ("#define A {\n{ /* b */}", [(12, 21, 0)]),
        ('"\\"{" {}', [(6, 7, 0)]),
        ("// a \\\n {\n{}", [(10, 11, 0)]),
        ("#if A // {\n{}\n#endif", [(11, 12, 0)]),
        ("/** { **/{}", [(9, 10, 0)]),
        ("#define A /* ( */ {{\n{}", [(21, 22, 0)]),
        ("#define A /* ( */ {{ /*/ ( */ {\n{}", [(32, 33, 0)]),
        ("{}\n#define A /* b", [(0, 1, 0)]),
        ("{ /**/ }\n#define A /*/ b", [(0, 7, 0)]),
        ('#define A "/*" {\n{}', [(17, 18, 0)]),
    ],
)
def test_brackets_outside_of_comments_literals_and_directives_pair(
    text: str, pairs: list[tuple[int, int, int]]
) -> None:
    marks = marks_of(text.encode())

    assert marks.is_paired
    assert marks.pairs == tuple(pairs)


@pytest.mark.parametrize(
    ("text", "is_paired"),
    [
        ("(]{}".replace("]", ")"), True),
        ("({)}", False),
        ("{", False),
        ("}", False),
        ("#if A\n{\n#else\n{\n#endif\n}", False),
        ("#if A\n{}\n#elif B\n{}\n#else\n{}\n#endif", True),
        ("#ifdef A\n{}\n", False),
        ("{\n#ifndef A\n}{\n#endif\n}", True),
        ("{\n#if A\n}\n#endif\n", False),
        ("#if A\n{\n#define B\n}\n#endif\n", True),
        ("#endif\n", False),
        ("#else\n", False),
        ("#define A \\\n /* b */ \\\n {}\n", False),
        ("#define A \\\n {} /* b */\n", True),
        ("#pragma once\n#include <a.h>\n", True),
    ],
)
def test_a_text_pairs_in_each_branch(text: str, is_paired: bool) -> None:
    assert marks_of(text.encode()).is_paired == is_paired


def test_a_stretch_is_code_outside_of_all_marks() -> None:
    text = b'#define A 1\nint a = "x"; // y\n'
    marks = marks_of(text)

    assert [marks.are_code(text.index(word), text.index(word) + 1) for word in (b"A", b"int", b"x", b"y")] == [
        False,
        True,
        False,
        False,
    ]
    assert marks.directives == ((0, 11, 0),)
    assert not marks.are_code(text.index(b"int"), text.index(b"x") + 1)
