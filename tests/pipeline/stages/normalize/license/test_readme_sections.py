"""Sections about the license in READMEs: found by their heading; what they say beyond the folder's license makes it unclear."""

import pytest

from pipeline.stages.normalize.license.readme_sections import license_section, readmes_of, said_beyond
from tests.pipeline.stages.normalize.license.given_evidence import licenses_of
from tests.pipeline.stages.normalize.license.test_texts import MIT

MARKED = (
    "# Tables\n\nReads tables.\n\n## License\n\n{}\n\n## Authors\n\nYou may not use this commercially, said nobody.\n"
)
UNDERLINED = "Tables\n======\n\nReads tables.\n\nLicensing\n---------\n\n{}\n\nAuthors\n-------\n\nOnly members.\n"
HARMLESS = [
    "MIT",
    "This project is licensed under the [MIT License](LICENSE), see there.",
    "Released under the terms of the MIT license.",
    "The documentation is licensed under CC BY 4.0.",
    "The programs in the `examples` subdirectory are in the public domain.",
    "This library uses FFTW, which is under the GPL.",
    "It is MIT, which is based on an older version that was MIT-licensed as well.",
    "One file exclusively used for fuzz testing is subject to a separate license.",
    "Open Source (OSI approved)",
    "Parts are under other licenses. All licenses allow for non-commercial and commercial use.",
    "This repository follows the license agreement of the Foo project, see [MIT License](LICENSE).",
]
LIMITING = [
    "You may not use this commercially.",
    "Free for academic use only.",
    "This project is licensed under the GNU General Public License v3.",
    "GPL-3.0",
    "Please ask us before you use this in a product.",
    "Not for commercial use.",
    "Made available under the Eclipse Public License v2.0.",
    "Covered by the Common Development and Distribution License (CDDL) 1.0.",
    "Affero GPL",
    "The Hippocratic License applies.",
    "Leaked builds will be prosecuted.",
]


def decided(readme: str, section: str, path: str = "src/a.c") -> str | None:
    texts = {"LICENSE": MIT.encode(), readme: section.encode()}
    return licenses_of(texts, "MIT").decide(path, "int a;\n").drop_reason


@pytest.mark.parametrize("shape", [MARKED, UNDERLINED])
@pytest.mark.parametrize("words", LIMITING)
def test_a_limit_in_a_section_makes_the_folder_unclear(shape: str, words: str) -> None:
    assert decided("README.md", shape.format(words)) == "license_quarantined"
    assert decided("src/README", shape.format(words)) == "license_quarantined"
    assert decided("other/README.rst", shape.format(words)) is None


@pytest.mark.parametrize("shape", [MARKED, UNDERLINED])
@pytest.mark.parametrize("words", HARMLESS)
def test_a_section_that_names_the_license_of_the_folder_says_nothing_more(shape: str, words: str) -> None:
    assert decided("README.md", shape.format(words)) is None


def test_the_detail_quotes_the_readme() -> None:
    texts = {"LICENSE": MIT.encode(), "README.md": MARKED.format("You may not use this commercially.").encode()}
    found = licenses_of(texts, "MIT").decide("a.c", "int a;\n")
    assert "README.md says `you may not use this commercially" in found.detail


def test_a_readme_grants_nothing() -> None:
    texts = {"README.md": MARKED.format("MIT").encode()}
    assert licenses_of(texts, "").decide("a.c", "int a;\n").drop_reason == "license_quarantined"


def test_sections_end_where_the_next_begins() -> None:
    assert license_section(MARKED.format("MIT")).split() == ["MIT"]
    assert license_section("No heading.\n\nLicense: MIT\n") == ""
    assert said_beyond("", frozenset()) is None
    assert readmes_of(["a/README.md", "README", "a/readme.py"]) == {".": ["README"], "a": ["a/README.md"]}
