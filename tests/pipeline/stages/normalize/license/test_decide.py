"""License decisions: the evidence that counts, the expression and branch that follow from it, and the limits of inheritance."""

import pytest

from pipeline.stages.normalize.license.evidence import vendored_root
from pipeline.stages.normalize.params import VENDORED_ROOTS
from tests.pipeline.stages.normalize.license.given_evidence import (
    LGPL_NOTICE,
    METADATA,
    REUSE,
    TAG,
    licenses_of,
    sidecar,
    tagged,
)
from tests.pipeline.stages.normalize.license.test_texts import MIT, spdx_text

LICENSED = {
    "a tag": ({}, "", "a.c", tagged("MIT"), ("MIT", "allowed", "MIT", "file")),
    "a tag before everything else": (
        {"PKG-INFO": METADATA, "a.c.license": sidecar("ISC")},
        "GPL-2.0-only",
        "a.c",
        tagged("Zlib"),
        ("Zlib", "allowed", "Zlib", "file"),
    ),
    "two tags": ({}, "", "a.c", tagged("MIT") + tagged("ISC"), ("MIT AND ISC", "allowed", "MIT AND ISC", "file")),
    "one tag twice": ({}, "", "a.c", tagged("MIT") + tagged("mit"), ("MIT", "allowed", "MIT", "file")),
    "a choice": (
        {},
        "",
        "a.c",
        tagged("GPL-2.0-or-later OR BSD-3-Clause"),
        ("GPL-2.0-or-later OR BSD-3-Clause", "allowed", "BSD-3-Clause", "file"),
    ),
    "a part under another license": (
        {"LICENSE": MIT.encode()},
        "",
        "a.c",
        "int a;\n// (c) 2014 Someone. Licensed under Apache License 2.0\nint b;\n",
        ("MIT AND Apache-2.0", "allowed", "MIT AND Apache-2.0", "license_text"),
    ),
    "the project's own license beside the public domain": (
        {"LICENSE": spdx_text("BSD-3-Clause").encode()},
        "",
        "a.c",
        "// Released under a BSD license as described in the file LICENSE.\n// hash() was placed in the public domain.\nint a;\n",
        (
            "BSD-3-Clause AND LicenseRef-scancode-public-domain",
            "allowed",
            "BSD-3-Clause AND LicenseRef-scancode-public-domain",
            "license_text",
        ),
    ),
    "adapted from the public domain": (
        {"LICENSE": MIT.encode()},
        "",
        "a.c",
        "// Slightly adapted version of hash (originally by Someone, in the public domain)\nint a;\n",
        (
            "MIT AND LicenseRef-scancode-public-domain",
            "allowed",
            "MIT AND LicenseRef-scancode-public-domain",
            "license_text",
        ),
    ),
    "this file in the public domain": (
        {"LICENSE": MIT.encode()},
        "",
        "a.c",
        "// Based on the hash of Someone. This file has been placed in the public domain.\nint a;\n",
        ("LicenseRef-scancode-public-domain", "allowed", "LicenseRef-scancode-public-domain", "header"),
    ),
    "weak copyleft": ({}, "", "a.c", tagged("MPL-2.0"), ("MPL-2.0", "tagged", "MPL-2.0", "file")),
    "a sidecar": ({"a.c.license": sidecar("ISC")}, "", "a.c", "int a;", ("ISC", "allowed", "ISC", "sidecar")),
    "a sidecar below a vendored root": (
        {"vendor/a.c.license": sidecar("ISC")},
        "",
        "vendor/a.c",
        "int a;",
        ("ISC", "allowed", "ISC", "sidecar"),
    ),
    "REUSE": (
        {"REUSE.toml": REUSE.format("closest", "ISC").encode()},
        "",
        "a.c",
        "int a;",
        ("ISC", "allowed", "ISC", "reuse"),
    ),
    "a tag closer than REUSE": (
        {"REUSE.toml": REUSE.format("closest", "ISC").encode()},
        "",
        "a.c",
        tagged("MIT"),
        ("MIT", "allowed", "MIT", "file"),
    ),
    "a tag together with REUSE": (
        {"REUSE.toml": REUSE.format("aggregate", "ISC").encode()},
        "",
        "a.c",
        tagged("MIT"),
        ("MIT AND ISC", "allowed", "MIT AND ISC", "file"),
    ),
    "REUSE over a tag": (
        {"REUSE.toml": REUSE.format("override", "ISC").encode()},
        "",
        "a.c",
        tagged("Zlib"),
        ("ISC", "allowed", "ISC", "reuse"),
    ),
    "dep5": ({".reuse/dep5": b"Files: *\nLicense: ISC\n"}, "", "a.c", "int a;", ("ISC", "allowed", "ISC", "dep5")),
    "the package's metadata": ({"PKG-INFO": METADATA}, "", "src/a.c", "int a;", ("MIT", "allowed", "MIT", "package")),
    "a pin that asserts nothing beside metadata": (
        {"PKG-INFO": METADATA},
        "NOASSERTION",
        "a.c",
        "int a;",
        ("MIT", "allowed", "MIT", "package"),
    ),
    "a pin that asserts nothing beside a license text": (
        {"LICENSE": MIT.encode()},
        "NOASSERTION",
        "a.c",
        "int a;",
        ("MIT", "allowed", "MIT", "license_text"),
    ),
    "metadata below the archive's folder": (
        {"x-1.0/PKG-INFO": METADATA, "x-1.0/src/x.egg-info/PKG-INFO": b"License-Expression: GPL-2.0-only\n\n"},
        "",
        "x-1.0/a.c",
        "int a;",
        ("MIT", "allowed", "MIT", "package"),
    ),
    "the pin's declaration": (
        {},
        "BSD-3-Clause AND MIT",
        "a.c",
        "int a;",
        ("BSD-3-Clause AND MIT", "allowed", None, "package"),
    ),
    "metadata and declaration that differ": (
        {"PKG-INFO": METADATA},
        "LGPL-2.1-or-later",
        "a.c",
        "int a;",
        ("MIT AND LGPL-2.1-or-later", "tagged", None, "package"),
    ),
    "a license text with a tag": (
        {"lib/LICENSE": sidecar("ISC"), "LICENSE": b"text"},
        "MIT",
        "lib/src/a.c",
        "int a;",
        ("ISC", "allowed", "ISC", "license_text"),
    ),
    "a license text with a tag below a vendored root": (
        {"vendor/lib/LICENSE": sidecar("ISC")},
        "MIT",
        "vendor/lib/a.c",
        "int a;",
        ("ISC", "allowed", "ISC", "license_text"),
    ),
    "texts that are the branches of the package's choice": (
        {"LICENSE.GPL.txt": spdx_text("GPL-2.0-only").encode(), "LICENSE.txt": MIT.encode()},
        "MIT OR GPL-2.0-only",
        "a.c",
        "int a;",
        ("MIT OR GPL-2.0-only", "allowed", "MIT", "license_text"),
    ),
    "the text of the Lesser license beside the one that it adds to": (
        {"COPYING": spdx_text("GPL-3.0-only").encode(), "COPYING.LESSER": spdx_text("LGPL-3.0-only").encode()},
        "",
        "a.c",
        "int a;",
        ("LGPL-3.0-only", "tagged", "LGPL-3.0-only", "license_text"),
    ),
    "or later of a license without an id for it": (
        {},
        "",
        "a.c",
        tagged("Apache-2.0+"),
        ("Apache-2.0+", "allowed", None, "file"),
    ),
    "metadata with other line ends": (
        {"PKG-INFO": METADATA.replace(b"\n", b"\r\n").replace(b"License-E", b"license-e")},
        "",
        "a.c",
        "int a;",
        ("MIT", "allowed", "MIT", "package"),
    ),
    "an LGPL notice under an LGPL package": (
        {},
        "LGPL-2.1-only",
        "a.c",
        LGPL_NOTICE,
        ("LGPL-2.1-only", "tagged", None, "package"),
    ),
}


@pytest.mark.parametrize(("evidence", "declared", "path", "text", "expected"), LICENSED.values(), ids=LICENSED)
def test_it_is_licensed_with_its_evidence(
    evidence: dict[str, bytes], declared: str, path: str, text: str, expected: tuple[str, str, str | None, str]
) -> None:
    licensed = licenses_of(evidence, declared).decide(path, text)
    assert licensed.drop is None, licensed
    expression, license_class, branch, source = expected
    assert (licensed.expression, licensed.license_class, licensed.evidence) == (expression, license_class, source)
    assert licensed.branch == (branch or expression)
    assert licensed.detail


def test_a_decision_names_file_and_line_of_each_tag() -> None:
    licensed = licenses_of({}).decide("src/a.c", "\n" + tagged("MIT") + tagged("ISC"))
    assert licensed.drop is None
    assert licensed.detail == f"src/a.c:2: {TAG} MIT\nsrc/a.c:4: {TAG} ISC"


@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("src/a.c", None),
        ("vendor.c", None),
        ("src/vendors/a.c", None),
        ("third_party/a/b.c", "third_party"),
        ("a/Third_Party/b.c", "a/Third_Party"),
        ("vendor/a/extern/b/c.c", "vendor/a/extern"),
    ],
)
def test_the_innermost_vendored_root_counts(path: str, root: str | None) -> None:
    assert vendored_root(path, VENDORED_ROOTS) == root


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ("License: Proprietary", "license_refused"),
        ("License: GPLv3", "license_refused"),
        ("Classifier: License :: OSI Approved :: GNU General Public License v3 (GPLv3)", "license_refused"),
        ("Classifier: License :: Other/Proprietary License", "license_refused"),
        ("License: MIT", None),
        ("License: UNKNOWN", None),
        ("License: MIT\nClassifier: License :: OSI Approved :: GNU General Public License v2 (GPLv2)", None),
        ("License-Expression: MIT\nLicense: GPLv3", None),
    ],
)
def test_fields_of_free_text_in_metadata_hold_beside_a_license_text(fields: str, reason: str | None) -> None:
    given = {"LICENSE": MIT.encode(), "PKG-INFO": f"Metadata-Version: 2.1\nName: x\n{fields}\n\nx\n".encode()}
    found = licenses_of(given, "MIT").decide("src/a.c", "int a;\n")
    assert found.drop_reason == reason, found
