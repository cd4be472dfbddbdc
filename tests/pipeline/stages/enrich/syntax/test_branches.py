"""Unbalanced branches: which byte ranges are blanked, and which must stay."""

import pytest

from pipeline.stages.enrich.syntax.branches import MAX_NUM_LINES, conditionals_of, unbalanced_branches, with_spaces


def blanked(text: str) -> str:
    content = text.encode()
    return with_spaces(content, unbalanced_branches(conditionals_of(content))).decode()


def visible(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("#ifdef A\nif (x) {\n#else\nif (y) {\n#endif\n}\n", ["if (x) {", "}"]),
        ('#ifdef __cplusplus\nextern "C" {\n#endif\nint f();\n#ifdef __cplusplus\n}\n#endif\n', ["int f();"]),
        ("#if A\nf(\n#elif B\ng(\n#else\nh(\n#endif\n1);\n", ["f(", "1);"]),
        ("#if OUTER\n#if A\n{\n#else\n{{\n#endif\n}\n#endif\n", ["#if OUTER", "{", "}", "#endif"]),
        ("#if A\\\n && B\n{\n#endif\n", []),
    ],
    ids=["alternatives", "alone", "three", "nested", "continued"],
)
def test_the_first_branch_is_kept_and_a_single_one_is_blanked(text: str, left: list[str]) -> None:
    assert visible(blanked(text)) == left


@pytest.mark.parametrize(
    "text",
    [
        "#ifdef A\nint f() { return 1; }\n#else\nint f();\n#endif\n",
        '#if A\nconst char *s = "{";\n#endif\n',
        "#if A\n// {\n/* ( */\nchar c = '{';\n#endif\n",
        '#if A\nconst char *s = R"x({{)x";\n#endif\n',
        "#if A\n{\n",
        "{\n#endif\n",
        "#else\n{\n",
        "/*\n#if A\n{\n#endif\n*/\n",
    ],
    ids=["balanced", "string", "comment", "raw string", "open", "stray end", "stray else", "commented out"],
)
def test_balanced_and_broken_conditionals_are_kept(text: str) -> None:
    assert blanked(text) == text


@pytest.mark.parametrize(("num_lines", "stays"), [(MAX_NUM_LINES - 1, False), (MAX_NUM_LINES, True)])
def test_a_long_branch_is_kept_because_it_may_be_the_whole_file(num_lines: int, stays: bool) -> None:
    text = "#ifndef GUARD\nint f() {\n" + "x;\n" * num_lines + "#endif\n"

    assert (blanked(text) == text) == stays


def test_length_and_line_ends_are_kept() -> None:
    text = "#if A\nf(é, {\n#else\ng(漢\n#endif\n"

    assert len(blanked(text).encode()) == len(text.encode())
    assert blanked(text).count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        'R"(' * 20_000,
        "'" * 50_000,
        '"\\' * 50_000,
        "/*" * 50_000,
        "x" * 500_000 + "\\",
        "#if A\n" * 20_000,
        "#if A\n" * 20_000 + "#endif\n" * 20_000,
        "#if A\n" * 20_000 + "#else\n#endif\n" * 20_000,
    ],
)
def test_hostile_text_costs_linear_time(text: str) -> None:
    assert blanked(text) == text
