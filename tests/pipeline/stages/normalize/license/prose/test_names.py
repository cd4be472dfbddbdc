"""Names of licenses in prose."""

import pytest

from pipeline.stages.normalize.license.prose.names import unknown_name, with_tokens
from pipeline.stages.normalize.license.prose.words import plain_words

NAMED = {
    "under the MIT license": ["MIT"],
    "License: MIT": ["MIT"],
    "Apache License, Version 2.0": ["Apache-2.0"],
    "Apache License, Version 1.1": ["Apache-1.1"],
    "the Apache License v2.0 with LLVM Exceptions": ["Apache-2.0 WITH LLVM-exception"],
    "GNU Lesser General Public License, version 2.1": ["LGPL-2.1-only"],
    "version 2 or later of the GNU General Public License": ["GPL-2.0-or-later"],
    "GPLv3": ["GPL-3.0-only"],
    "http://opensource.org/licenses/MIT": ["MIT"],
    "the Creative Commons Attribution-NonCommercial license": ["CC-BY-NC-4.0"],
    "the Boost Software License": ["BSL-1.0"],
    "BSL 1.1": ["BUSL-1.1"],
    "boost::mpl and curl, built at MIT": [],
    "the zlib library and apache httpd": [],
}


@pytest.mark.parametrize(("prose", "licenses"), NAMED.items(), ids=NAMED)
def test_a_name_is_a_license_where_words_say_so(prose: str, licenses: list[str]) -> None:
    _, naming = with_tokens(plain_words(prose))
    assert naming.ids == licenses


def test_a_license_without_a_version_is_that_of_the_version_named_beside_it() -> None:
    words, naming = with_tokens(
        plain_words("GNU General Public License version 3. A copy of the GNU General Public License")
    )
    assert [naming.license_of(word) for word in words.split() if word[0] == "N"] == ["GPL-3.0-only", "GPL-3.0-only"]
    _, naming = with_tokens("the gnu general public license")
    assert naming.license_of("N0") == "GPL-1.0-or-later"


@pytest.mark.parametrize(
    "value",
    ["Foo Custom 1.0", "NonFree-2.0", "none", "OGTSL", "Proprietary"],
)
@pytest.mark.parametrize(
    "line", ["// License: {}", " * Licence: {}.", "# @license {}", "/// \\license {}", "/* License : {} */"]
)
def test_a_line_that_names_an_unknown_license_is_not_silence(line: str, value: str) -> None:
    found = unknown_name(f"// Copyright 2020 Example\n{line.format(value)}\n")

    assert found is not None
    assert found.startswith(value)


@pytest.mark.parametrize(
    "value",
    [
        "MIT",
        "BSD-3-Clause",
        "Apache License 2.0",
        "zlib/libpng",
        "Public Domain",
        "see LICENSE.txt",
        "CPAL-1.0",
        "Parity-7.0.0",
        "Watcom-1.0",
        "GPLv2",
        "the same",
        "X11",
    ],
)
def test_a_line_that_names_a_known_license_or_another_place_is_read_by_others(value: str) -> None:
    assert unknown_name(f"// License: {value}\n") is None
    assert unknown_name(f"bool license: 1;\nint x; // {value}\n") is None
