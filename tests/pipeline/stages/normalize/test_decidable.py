"""Decisions that nothing may follow from are refused before anything is built."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import DecisionError
from pipeline.pins.decisions import Decision
from pipeline.stages.normalize.decidable import refuse_undecidable
from pipeline.stages.normalize.scrub.detectors import DETECTORS

KEY = "AKIA" + "QWERTYUIOPASDFGH"
WAIVABLE = sorted({word for each in DETECTORS for word in (each.name, each.placeholder)})


def decision(path: str = "a.c", **fields: Any) -> Decision:
    return Decision(source="mine", path=path, person="A. Reader", reason="Read.", **fields)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (decision(license="MIT/X11"), "MIT/X11' is not an SPDX expression"),
        (decision(license="Mine"), "names Mine, which is not an SPDX identifier"),
        (decision(license="MIT AND"), "is not an SPDX expression"),
        (decision(license="mit or isc"), "license is 'mit or isc'; expected 'MIT OR ISC'"),
        (decision(release=("license_refused",)), "release holds 'license_refused'; expected reasons among"),
        (decision(release=("withdrawn",)), "release holds 'withdrawn'"),
        (decision(release=("contaminated",)), "release holds 'contaminated'"),
        (decision(release=("exact_duplicate",)), "release holds 'exact_duplicate'"),
        (decision(release=("binary",)), "release holds 'binary'"),
        (decision(release=("unscrubbable",)), "release holds 'unscrubbable' without `sha256`"),
        (
            decision(waive="everything", line=3),
            "waive is 'everything'; expected one of " + ", ".join(WAIVABLE),
        ),
        (decision(path=f"src/{KEY}.c", license="MIT"), "the path of a decision about mine holds a secret"),
        (decision(license=f"LicenseRef-{KEY}"), "the license of a decision about mine holds a secret"),
    ],
)
def test_what_cannot_be_decided_is_refused_with_what_to_do(found: Decision, message: str) -> None:
    with pytest.raises(DecisionError) as caught:
        refuse_undecidable([decision(license="MIT"), found], "decisions.toml")

    assert message in str(caught.value)
    assert str(caught.value).startswith("decisions.toml: ")
    assert KEY not in str(caught.value)
    assert len(str(caught.value)) <= 2_000


def test_what_can_be_decided_is_not_refused() -> None:
    found = [
        decision(license="MIT OR GPL-2.0-only"),
        decision(license="GPL-3.0-only"),
        decision(license="LicenseRef-Mine"),
        decision(release=("license_quarantined", "generated", "mostly_comments")),
        decision(release=("unscrubbable",), sha256="0" * 64),
        decision(waive="secret", line=3),
        decision(waive="random-literal", line=3),
        decision(waive="aws-access-token", value_sha256="0" * 64),
    ]

    refuse_undecidable(found, str(Path("decisions.toml")))
