"""Files of licenses that comments name: those with a name of their own, and not those of every project."""

import pytest

from pipeline.stages.normalize.license.prose.license_files import license_files


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("For terms see LICENSE-COMMERCIAL.md", ("LICENSE-COMMERCIAL.md",)),
        ("See COPYING.LESSER for terms.", ("COPYING.LESSER",)),
        ("see license_commercial.txt and Licence-Enterprise.rst", ("license_commercial.txt", "Licence-Enterprise.rst")),
    ],
)
def test_a_file_with_a_name_of_its_own_is_another_license(text: str, found: tuple[str, ...]) -> None:
    assert license_files(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "See LICENSE.txt, LICENSE_1_0.txt, COPYING.md and LICENSES.html.",
        "under LICENSE-MIT or LICENSE-APACHE, at your option",
        "See LICENSE-THIRD-PARTY.md for what is included.",
        "LICENSE_KEY, LICENSE-KEY, license-server, license_manager.h and copying-collector.cpp",
    ],
)
def test_files_of_every_project_and_names_of_code_are_none(text: str) -> None:
    assert license_files(text) == ()
