"""A file's statements about its license: tags in any comment style, and prose that contradicts a permission."""

import pytest

from pipeline.stages.normalize.license.evidence import FileText
from pipeline.stages.normalize.license.policy import LicenseClass
from pipeline.stages.normalize.license.tags import Tag, find_claim, find_tags, find_title

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
    "nothing": ("// MIT\n", []),
}

CLAIMS = {
    "GPL in full": (
        "/* ... under the terms of the GNU General Public\n * License as published */\n",
        LicenseClass.REFUSED,
    ),
    "GPL in short": ("// Licensed under GPLv3\nint a;", LicenseClass.REFUSED),
    "AGPL": ("// GNU Affero General Public License\n", LicenseClass.REFUSED),
    "LGPL in full": ("// the GNU Lesser General\n// Public License\n", LicenseClass.TAGGED),
    "LGPL in short": ("// LGPL-2.1\n", LicenseClass.TAGGED),
    "both": ("// LGPL or GPL\n", LicenseClass.REFUSED),
    "a denial": ("// This file is not under MIT.\n", LicenseClass.REFUSED),
    "a longer denial": (
        "/* This part is NOT covered\n   not licensed under the terms of the MIT license */",
        LicenseClass.REFUSED,
    ),
    "a secret": ("// Proprietary and confidential. proprietary and confidential\n", LicenseClass.REFUSED),
    "MIT": ("// Permission is hereby granted, free of charge\n", None),
    "Apache": (
        "// you may not use this file except in compliance with the License.\n// distributed under the License\n",
        None,
    ),
    "later": ("int a;\n// GNU General Public License\n", None),
    "a word": ("// see EGPLX and GPLANES\n", None),
}


@pytest.mark.parametrize(("text", "tags"), TAGGED.values(), ids=TAGGED)
def test_tags_are_found_with_their_line(text: str, tags: list[Tag]) -> None:
    assert find_tags("a.c", text) == tags


@pytest.mark.parametrize(("text", "license_class"), CLAIMS.values(), ids=CLAIMS)
def test_a_claim_has_its_class(text: str, license_class: LicenseClass | None) -> None:
    claim = find_claim("a.c", FileText("a.c", text).header)
    assert (claim.license_class if claim else None) == license_class


def test_the_title_of_a_license_text_counts_and_its_prose_does_not() -> None:
    assert find_title("MIT is compatible with the GPL.\nGNU General Public License users may ...") is None
    title = find_title("   GNU LESSER GENERAL PUBLIC LICENSE\n       Version 3, 29 June 2007\n")
    assert title is not None
    assert title.license_class is LicenseClass.TAGGED
