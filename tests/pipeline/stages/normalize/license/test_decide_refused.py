"""Files that leave for their license: refused, unknown or unclear, each with its reason and the evidence."""

import pytest

from pipeline.stages.normalize.license.decide import LicenseRuling
from pipeline.stages.normalize.params import EvidencePolicy, LicenseParams
from tests.pipeline.stages.normalize.license.given_evidence import (
    GPL_NOTICE,
    GPL_TEXT,
    LGPL_NOTICE,
    METADATA,
    REUSE,
    licenses_of,
    sidecar,
    tagged,
)
from tests.pipeline.stages.normalize.license.test_texts import MIT, spdx_text

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


@pytest.mark.parametrize(("evidence", "declared", "path", "text", "reason", "detail"), REFUSED.values(), ids=REFUSED)
def test_it_leaves_with_the_reason_and_the_evidence(
    evidence: dict[str, bytes], declared: str, path: str, text: str, reason: str, detail: str
) -> None:
    refusal = licenses_of(evidence, declared).decide(path, text)
    assert refusal.drop_reason == reason, refusal
    assert detail in refusal.detail


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


@pytest.mark.parametrize(
    "field",
    [
        "Licencia: propietaria",
        "Licencja: własnościowa",
        "Licentie: gesloten",
        "Lizenz: kommerziell",
        "Лицензия: закрытая",
        "ライセンス: 非公開",
        "许可证:专有",
        "라이선스: 독점",
        "Giấy phép: độc quyền",
    ],
)
def test_a_field_of_another_language_that_names_no_known_license_is_unclear(field: str) -> None:
    licenses = licenses_of({"LICENSE": MIT.encode()}, "MIT")
    assert licenses.decide("a.c", f"/* {field} */\nint a;\n").drop_reason == "license_quarantined"
    assert licenses.decide("a.c", f"/*\n{MIT}\n{field}\n*/\nint a;\n").drop_reason == "license_quarantined"


@pytest.mark.parametrize(
    "field", ["Licencia: MIT", "ライセンス: MIT", "Lizenz: siehe LICENSE", "许可证: 见文件", "ライセンス: 下記"]
)
def test_a_field_that_names_the_license_or_says_where_it_is_stays(field: str) -> None:
    licenses = licenses_of({"LICENSE": MIT.encode()}, "MIT")
    assert licenses.decide("a.c", f"/* {field} */\nint a;\n").drop_reason is None


@pytest.mark.parametrize(
    "limit",
    [
        "This permission does not extend to companies with more than 100 employees.",
        "Use by Foo Corp. and its subsidiaries is not permitted.",
        "Employees of Initech are excluded from this grant.",
        "You are not allowed to offer the Software as a hosted service.",
        "These permissions end on 31 December 2027.",
        'The license does not apply to the files of the folder "premium".',
    ],
)
def test_a_limit_after_a_whole_known_text_is_one(limit: str) -> None:
    licenses = licenses_of({"LICENSE": MIT.encode()}, "MIT")
    assert licenses.decide("a.c", f"/*\n{MIT}\n{limit}\n*/\nint a;\n").drop_reason == "license_quarantined"
    limited = licenses_of({"LICENSE": f"{MIT}\n\n{limit}\n".encode()}, "MIT")
    assert limited.decide("a.c", "int a;\n").drop_reason == "license_quarantined"


@pytest.mark.parametrize("style", ["/// {}\n", "// {}\n", "/*\n * {}\n */\n"])
@pytest.mark.parametrize(
    "words",
    [
        "CONFIDENTIAL",
        "INTEL CONFIDENTIAL",
        "Confidential and proprietary to Globex.",
        "Contains trade secrets of Frobozz Magic Co.",
        "Do not distribute.",
        "Not for redistribution.",
        "Under NDA. Delete after review.",
        "CC BY-NC 4.0",
        "Code taken from a Stack Overflow answer (CC BY-SA 4.0).",
        "AGPL-3.0-only",
        "Business Source License 1.1",
        "Governed by the Unreal Engine EULA.",
        "Personal use only.",
        "Não distribuir.",
        "Dieser Quelltext ist vertraulich zu behandeln.",
        "保密文件,请勿外传。",
    ],
)
def test_heavy_words_in_a_comment_between_functions_are_a_limit(words: str, style: str) -> None:
    licenses = licenses_of({"LICENSE": MIT.encode()}, "MIT")
    text = f"int first(int a) {{ return a; }}\n{style.format(words)}int second(int a) {{ return a; }}\n"
    assert licenses.decide("a.c", text).drop is not None


@pytest.mark.parametrize(
    "words",
    [
        "For internal use only, see foo_public().",
        "The confidential bit of the header is set by the caller.",
        "Do not distribute the load evenly when the queue is short.",
        "Trade the secret for a session key.",
        "GPL = general purpose latch.",
        "CC register: condition codes; NC pins are not connected.",
        "Only for evaluation of constant expressions.",
        "Users must not free the result.",
        "Parses the license field of the package file.",
    ],
)
def test_what_a_comment_between_functions_says_of_the_program_stays(words: str) -> None:
    licenses = licenses_of({"LICENSE": MIT.encode()}, "MIT")
    text = f"int first(int a) {{ return a; }}\n// {words}\nint second(int a) {{ return a; }}\n"
    assert licenses.decide("a.c", text).drop is None
