"""License decisions: the evidence that counts, the limits of inheritance, and unclear cases, which are never kept."""

import pytest

from pipeline.stages.normalize.license.decide import LicenseRuling, PackageFacts, SourceLicenses
from pipeline.stages.normalize.license.evidence import vendored_root
from pipeline.stages.normalize.license.policy import parse_policy, policy_bytes
from pipeline.stages.normalize.params import VENDORED_ROOTS, EvidencePolicy, LicenseParams
from tests.pipeline.stages.normalize.license.test_texts import MIT, spdx_text

TAG = "SPDX-License-" + "Identifier:"
POLICY = parse_policy(policy_bytes())
METADATA = b"Metadata-Version: 2.4\nName: x\nLicense-Expression: MIT\n\nLicense-Expression: GPL-2.0-only\n"
GPL_TEXT = b"      GNU GENERAL PUBLIC LICENSE\n       Version 2, June 1991\n"
LGPL_NOTICE = "// the GNU Lesser General Public License\nint a;\n"
GPL_NOTICE = "// under the GNU General Public License\nint a;\n"
REUSE = '[[annotations]]\npath = "**"\nprecedence = "{}"\nSPDX-License-Identifier = "{}"\n'


def licenses_of(
    evidence: dict[str, bytes], declared: str = "", inherits: bool = True, params: LicenseParams | None = None
) -> SourceLicenses:
    return SourceLicenses(evidence, PackageFacts(declared, inherits), POLICY, params or LicenseParams())


def tagged(expression: str) -> str:
    return f"// {TAG} {expression}\nint a;\n"


def sidecar(expression: str) -> bytes:
    return f"{TAG} {expression}\n".encode()


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

REFUSED = {
    "copyleft": ({}, "MIT", "a.c", tagged("GPL-3.0-only"), "license_refused", "GPL-3.0-only is refused\na.c:1: SPDX"),
    "tags that conflict": (
        {},
        "",
        "a.c",
        tagged("MIT") + tagged("GPL-2.0-only"),
        "license_refused",
        "MIT AND GPL-2.0-only",
    ),
    "an unknown id": (
        {},
        "MIT",
        "a.c",
        tagged("MIT/Example"),
        "license_unknown",
        "'MIT/Example' is not an SPDX expression",
    ),
    "brackets across two tags": (
        {},
        "",
        "a.c",
        tagged("(MIT") + tagged("ISC)"),
        "license_unknown",
        "'(MIT' is not an SPDX",
    ),
    "a choice of which one text is here": (
        {"LICENSE": spdx_text("GPL-2.0-only").encode()},
        "MIT OR GPL-2.0-only",
        "a.c",
        "int a;",
        "license_refused",
        "GPL-2.0-only",
    ),
    "a reference": ({}, "MIT", "a.c", tagged("LicenseRef-X"), "license_refused", "LicenseRef-X is refused"),
    "nothing at all": (
        {},
        "",
        "a.c",
        "int a;",
        "license_quarantined",
        "neither the file nor the package states a license; no license text in its folder or above",
    ),
    "no assertion": (
        {},
        "NOASSERTION",
        "a.c",
        "int a;",
        "license_refused",
        "NOASSERTION is refused\npin: declared_license",
    ),
    "a GPL package": (
        {"LICENSE": GPL_TEXT},
        "GPL-2.0-or-later",
        "a.c",
        "int a;",
        "license_refused",
        "GPL-2.0-or-later is refused",
    ),
    "below a vendored root": (
        {"PKG-INFO": METADATA, "LICENSE": sidecar("MIT")},
        "MIT",
        "src/third_party/lib/a.c",
        "int a;",
        "license_quarantined",
        "the file states no license, and it is below the vendored root src/third_party/; no license text in its folder or above",
    ),
    "below a vendored root with an untagged text": (
        {"vendor/lib/COPYING": b"some text"},
        "MIT",
        "vendor/lib/a.c",
        "int a;",
        "license_quarantined",
        "nearest license text: vendor/lib/COPYING",
    ),
    "vendored in vendored": (
        {"vendor/a/LICENSE": sidecar("MIT")},
        "MIT",
        "vendor/a/extern/b.c",
        "int a;",
        "license_quarantined",
        "below the vendored root vendor/a/extern/",
    ),
    "a GPL notice under a permissive package": (
        {"PKG-INFO": METADATA},
        "MIT",
        "a.c",
        GPL_NOTICE,
        "license_refused",
        "GPL-1.0-or-later is refused\na.c: the header contains the notice of GPL-1.0-or-later",
    ),
    "a mention of the GPL under a permissive package": (
        {"PKG-INFO": METADATA},
        "MIT",
        "a.c",
        "// A loader that needs some GPL code of others.\nint a;\n",
        "license_quarantined",
        "a.c says `GPL-1.0-or-later`, against MIT by package\nPKG-INFO:3: License-Expression: MIT",
    ),
    "a tag beside a GPL notice": (
        {},
        "",
        "a.c",
        tagged("MIT") + GPL_NOTICE,
        "license_quarantined",
        "a.c says `GPL-1.0-or-later`, against MIT by file",
    ),
    "an LGPL notice under a permissive package": (
        {},
        "MIT",
        "a.c",
        LGPL_NOTICE,
        "license_quarantined",
        "against MIT by package",
    ),
    "a GPL notice under a weak package": (
        {},
        "MPL-2.0",
        "a.c",
        GPL_NOTICE,
        "license_refused",
        "GPL-1.0-or-later is refused",
    ),
    "a GPL notice beside a sidecar": (
        {"a.c.license": sidecar("MIT")},
        "",
        "a.c",
        GPL_NOTICE,
        "license_quarantined",
        "against MIT by sidecar",
    ),
    "a GPL tag that REUSE overrides": (
        {"REUSE.toml": REUSE.format("override", "ISC").encode()},
        "",
        "a.c",
        tagged("GPL-2.0-only"),
        "license_quarantined",
        "against ISC by reuse",
    ),
    "a denial": (
        {},
        "MIT",
        "a.c",
        "// This file is not under MIT.\nint a;",
        "license_quarantined",
        "says `this file is not under",
    ),
    "a GPL text beside a permissive declaration": (
        {"lib/COPYING": GPL_TEXT},
        "MIT",
        "lib/a.c",
        "int a;",
        "license_quarantined",
        "unclear: lib/COPYING says `GNU GENERAL PUBLIC LICENSE Version`",
    ),
    "a library of texts": (
        {"LICENSES/MIT.txt": b"text"},
        "",
        "LICENSES/a.c",
        "int a;",
        "license_quarantined",
        "no license text",
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


@pytest.mark.parametrize(("evidence", "declared", "path", "text", "reason", "detail"), REFUSED.values(), ids=REFUSED)
def test_it_leaves_with_the_reason_and_the_evidence(
    evidence: dict[str, bytes], declared: str, path: str, text: str, reason: str, detail: str
) -> None:
    refusal = licenses_of(evidence, declared).decide(path, text)
    assert refusal.drop_reason == reason, refusal
    assert detail in refusal.detail


def test_a_decision_names_file_and_line_of_each_tag() -> None:
    licensed = licenses_of({}).decide("src/a.c", "\n" + tagged("MIT") + tagged("ISC"))
    assert licensed.drop is None
    assert licensed.detail == f"src/a.c:2: {TAG} MIT\nsrc/a.c:4: {TAG} ISC"


def test_the_strict_policy_refuses_every_inherited_license() -> None:
    strict = licenses_of({"PKG-INFO": METADATA}, "MIT", params=LicenseParams(license_evidence=EvidencePolicy.FILE))
    refusal = strict.decide("a.c", "int a;")
    assert (refusal.drop_reason, "the recipe inherits none" in refusal.detail) == ("license_refused", True)
    assert strict.decide("a.c", tagged("MIT")).drop is None


def test_a_pin_can_refuse_to_inherit() -> None:
    refusal = licenses_of({"PKG-INFO": METADATA}, "MIT", inherits=False).decide("a.c", "int a;")
    assert (refusal.drop_reason, "its pin inherits none" in refusal.detail) == ("license_quarantined", True)


def test_weak_copyleft_can_be_refused() -> None:
    refusal = licenses_of({}, params=LicenseParams(keep_tagged=False)).decide("a.c", tagged("MPL-2.0"))
    assert refusal.drop_reason == "license_refused"
    assert refusal.detail.startswith("MPL-2.0 is weak copyleft")


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


def test_only_what_was_seen_to_be_copyleft_is_marked_so() -> None:
    decided = {
        name: licenses_of(evidence, declared).decide(path, text)
        for name, (evidence, declared, path, text, *_) in REFUSED.items()
    }
    marked = {name for name, refusal in decided.items() if refusal.drop and refusal.is_copyleft}
    assert {"copyleft", "tags that conflict", "a GPL package", "a GPL notice beside a sidecar"} <= marked
    assert not marked & {"an unknown id", "nothing at all", "below a vendored root", "no assertion", "a reference"}


@pytest.mark.parametrize(
    ("beside", "is_limited"),
    [
        ({"COPYING": b"License terms\n\nYou may not hand this on, and use is limited to evaluation.\n"}, True),
        ({"NOTICE": b"Parts of this program must not be sold.\n"}, True),
        (
            {
                "EULA.txt": b"By opening this you agree to pay us a fee per seat.\nThis program is licensed to members only.\n"
            },
            True,
        ),
        ({"LICENSE": b"Dual license: MIT for hobbyists, commercial for firms.\n\n" + MIT.encode()}, True),
        ({"LICENSE.commercial": b"Firms must pay for this program.\n"}, True),
        (
            {"NOTICE": b"Example\nCopyright 2020 The Example Authors\nThis product includes software by J. Roe.\n"},
            False,
        ),
        ({"COPYING": b"See the file LICENSE.\n"}, False),
    ],
)
def test_a_text_that_limits_beside_a_license_is_outweighed_by_no_pin(
    beside: dict[str, bytes], is_limited: bool
) -> None:
    licenses = licenses_of({"LICENSE": MIT.encode(), **beside}, "MIT")
    assert (licenses.decide("a.c", "int a;\n").drop_reason == "license_quarantined") is is_limited
    concluded = licenses.decide("a.c", "int a;\n", LicenseRuling(expression="MIT", lines=("decided",)))
    assert concluded.drop_reason is None
