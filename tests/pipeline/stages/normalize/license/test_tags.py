"""A file's statements about its license: tags in any comment style, and prose that contradicts a permission."""

import pytest

from pipeline.stages.normalize.license.policy import LicenseClass
from pipeline.stages.normalize.license.tags import Tag, find_tags, find_title

TAG = "SPDX-License-" + "Identifier:"

TAGGED = {
    "a line comment": (f"// {TAG} MIT\n", [Tag("MIT", 1)]),
    "a block comment": (f"/* {TAG} MIT */\n", [Tag("MIT", 1)]),
    "a block's margin": (
        f"/*\n * {TAG} BSD-3-Clause OR GPL-2.0-or-later\n */",
        [Tag("BSD-3-Clause OR GPL-2.0-or-later", 2)],
    ),
    "a hash": (f"# {TAG} Apache-2.0", [Tag("Apache-2.0", 1)]),
    "a semicolon": (f";; {TAG} MIT", [Tag("MIT", 1)]),
    "a mark-up comment": (f"<!-- {TAG} MIT -->", [Tag("MIT", 1)]),
    "three slashes": (f"/// {TAG} MIT   \n", [Tag("MIT", 1)]),
    "no comment": (f"{TAG} MIT\n", [Tag("MIT", 1)]),
    "after code": (f"int a; // {TAG} MIT\n", [Tag("MIT", 1)]),
    "two": (f"// {TAG} MIT\n\n// {TAG} GPL-2.0-only\n", [Tag("MIT", 1), Tag("GPL-2.0-only", 3)]),
    "a snippet": (
        f"// {TAG} MIT\n// SPDX-SnippetBegin\n// {TAG} BSL-1.0\n// SPDX-SnippetEnd\n",
        [Tag("MIT", 1), Tag("BSL-1.0", 3)],
    ),
    "an ignored region": (
        f"// REUSE-IgnoreStart\n// {TAG} GPL-2.0-only\n// REUSE-IgnoreEnd\n// {TAG} MIT\n",
        [Tag("MIT", 4)],
    ),
    "a literal": (f'write("{TAG} GPL-2.0-only");\n', []),
    "a sentence": (f"// This file has no {TAG} MIT\n", []),
    "a box": (f" | {TAG} MIT      |\n", [Tag("MIT", 1)]),
    "an escaped line end": (f"/* {TAG} MIT\\n\n */", [Tag("MIT", 1)]),
    "within backticks": (f"``{TAG} MIT`` for the text below\n`{TAG} ISC`.\n", [Tag("MIT", 1), Tag("ISC", 2)]),
    "before another comment": (f"// {TAG} Apache-2.0 // see LICENSE\n", [Tag("Apache-2.0", 1)]),
    "the end of a sentence": (f"// {TAG} MIT.\n", [Tag("MIT", 1)]),
    "nothing": ("// MIT\n", []),
}


@pytest.mark.parametrize(("text", "tags"), TAGGED.values(), ids=TAGGED)
def test_tags_are_found_with_their_line(text: str, tags: list[Tag]) -> None:
    assert find_tags("a.c", text) == tags


def test_the_title_of_a_license_text_counts_and_its_prose_does_not() -> None:
    assert find_title("MIT is compatible with the GPL.\nGNU General Public License users may ...") is None
    title = find_title("   GNU LESSER GENERAL PUBLIC LICENSE\n       Version 3, 29 June 2007\n")
    assert title is not None
    assert title.license_class is LicenseClass.TAGGED


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("MIT/Zlib", "MIT OR Zlib"),
        ("'ISC'", "ISC"),
        ("<BSD-3-Clause>", "BSD-3-Clause"),
        ("Zlib (see COPYING)", "Zlib"),
        ("MIT -- see the LICENSE file", "MIT"),
        ("Apache 2.0", "Apache-2.0"),
        ("MIT (not for sale)", "MIT (not for sale)"),
        ("MIT/Example", "MIT/Example"),
        ("MIT AND ISC", "MIT AND ISC"),
    ],
)
def test_what_is_written_around_an_identifier_is_left_out_where_known_ones_remain(written: str, meant: str) -> None:
    assert [tag.expression for tag in find_tags("a.c", f"// SPDX-License-Identifier: {written}\nint a;\n")] == [meant]
