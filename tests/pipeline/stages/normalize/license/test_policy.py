"""SPDX expressions: what the policy says of them, and every trap of the grammar that would let copyleft or nonsense through."""

import pytest

from pipeline.core.errors import ParamsError, StageError
from pipeline.stages.normalize.drop import Drop
from pipeline.stages.normalize.license.policy import (
    ClassifiedExpression,
    LicenseClass,
    classify_expression,
    load_policy,
    parse_policy,
    policy_bytes,
)

POLICY = parse_policy(policy_bytes())

JUDGED = [
    ("MIT", "MIT", "ALLOWED", "MIT"),
    ("mit", "MIT", "ALLOWED", "MIT"),
    ("BSD-3-clause", "BSD-3-Clause", "ALLOWED", "BSD-3-Clause"),
    ("(Apache-2.0 OR MIT)", "Apache-2.0 OR MIT", "ALLOWED", "Apache-2.0"),
    ("BSD-3-Clause OR GPL-2.0-or-later", "BSD-3-Clause OR GPL-2.0-or-later", "ALLOWED", "BSD-3-Clause"),
    ("GPL-2.0+ OR BSD-3-Clause", "GPL-2.0-or-later OR BSD-3-Clause", "ALLOWED", "BSD-3-Clause"),
    ("MIT or gpl-2.0", "MIT OR GPL-2.0-only", "ALLOWED", "MIT"),
    ("MPL-2.0 OR Apache-2.0", "MPL-2.0 OR Apache-2.0", "ALLOWED", "Apache-2.0"),
    ("MIT AND BSD-3-Clause", "MIT AND BSD-3-Clause", "ALLOWED", "MIT AND BSD-3-Clause"),
    ("MIT AND MIT", "MIT", "ALLOWED", "MIT"),
    ("BSD-3-Clause AND (MIT OR MIT) AND BSD-3-Clause", "BSD-3-Clause AND MIT", "ALLOWED", "BSD-3-Clause AND MIT"),
    ("MIT AND LGPL-2.1-or-later", "MIT AND LGPL-2.1-or-later", "TAGGED", "MIT AND LGPL-2.1-or-later"),
    (
        "MIT AND (BSD-2-Clause OR LGPL-2.1-or-later)",
        "MIT AND (BSD-2-Clause OR LGPL-2.1-or-later)",
        "ALLOWED",
        "MIT AND BSD-2-Clause",
    ),
    ("LGPL-2.1", "LGPL-2.1-only", "TAGGED", "LGPL-2.1-only"),
    ("GPL-2.0+", "GPL-2.0-or-later", "REFUSED", "GPL-2.0-or-later"),
    ("MIT AND GPL-2.0-only", "MIT AND GPL-2.0-only", "REFUSED", "MIT AND GPL-2.0-only"),
    ("Apache-2.0 WITH LLVM-exception", "Apache-2.0 WITH LLVM-exception", "ALLOWED", "Apache-2.0 WITH LLVM-exception"),
    ("GPL-3.0-or-later WITH GCC-exception-3.1", "GPL-3.0-or-later WITH GCC-exception-3.1", "REFUSED", None),
    ("LicenseRef-Proprietary", "LicenseRef-Proprietary", "REFUSED", "LicenseRef-Proprietary"),
    ("LicenseRef-scancode-other-permissive", "LicenseRef-scancode-other-permissive", "REFUSED", None),
    ("LicenseRef-scancode-public-domain", "LicenseRef-scancode-public-domain", "ALLOWED", None),
    ("LicenseRef-Mine OR MIT", "LicenseRef-Mine OR MIT", "ALLOWED", "MIT"),
    ("NONE", "NONE", "REFUSED", "NONE"),
    ("NOASSERTION", "NOASSERTION", "REFUSED", "NOASSERTION"),
    ("CC-BY-SA-4.0", "CC-BY-SA-4.0", "REFUSED", "CC-BY-SA-4.0"),
    ("MIT OR (MIT WITH LLVM-exception)", None, "ALLOWED", "MIT"),
]

REFUSED = [
    ("MIT WITH Apache-2.0", "license_unknown", "is not an SPDX expression"),
    ("MIT WITH LLVM-exception", "license_refused", "LLVM-exception does not go with MIT"),
    ("MIT AND (MIT WITH GCC-exception-3.1)", "license_refused", "GCC-exception-3.1 does not go with MIT"),
    ("Classpath-exception-2.0", "license_unknown", "is not an SPDX expression"),
    ("MIT/X11", "license_unknown", "'MIT/X11' is not an SPDX expression"),
    ("()", "license_unknown", "'()' is not an SPDX expression"),
    ("MIT AND ()", "license_unknown", "'MIT AND ()' is not an SPDX expression"),
    ("not under MIT", "license_unknown", "is not an SPDX expression"),
    ("MIT GPL-2.0", "license_unknown", "is not an SPDX expression"),
    ("MIT, BSD", "license_unknown", "is not an SPDX expression"),
    ("MIT AND", "license_unknown", "is not an SPDX expression"),
    ("MIT) OR (GPL-2.0-only", "license_unknown", "is not an SPDX expression"),
    ("", "license_unknown", "the expression is empty"),
    ("BSD", "license_unknown", "names BSD, which is not an SPDX identifier"),
    ("Boost OR MIT", "license_unknown", "names Boost, which is not an SPDX identifier"),
    ("GPL-2.0-with-classpath-exception", "license_unknown", "is not an SPDX expression"),
]


@pytest.mark.parametrize(("text", "expression", "license_class", "branch"), JUDGED, ids=[case[0] for case in JUDGED])
def test_an_expression_has_the_class_of_what_must_hold(
    text: str, expression: str | None, license_class: str, branch: str | None
) -> None:
    judged = classify_expression(text, POLICY)
    assert isinstance(judged, ClassifiedExpression)
    assert judged.license_class is LicenseClass[license_class]
    assert judged.expression == (expression or judged.expression)
    assert judged.branch == (branch or judged.branch)


@pytest.mark.parametrize(("text", "reason", "detail"), REFUSED, ids=[case[0] or "nothing" for case in REFUSED])
def test_an_invalid_expression_is_refused_with_the_reason(text: str, reason: str, detail: str) -> None:
    refusal = classify_expression(text, POLICY)
    assert isinstance(refusal, Drop)
    assert refusal.reason == reason
    assert detail in refusal.detail


def test_a_license_reference_counts_where_the_policy_names_it() -> None:
    policy = parse_policy(policy_bytes().replace(b'"0BSD"', b'"0BSD", "LicenseRef-Ours"'))
    judged = classify_expression("LicenseRef-Ours AND MIT", policy)
    assert isinstance(judged, ClassifiedExpression)
    assert judged.license_class is LicenseClass.ALLOWED


def test_a_normal_expression_is_normal_already() -> None:
    for text, *_ in JUDGED:
        judged = classify_expression(text, POLICY)
        assert isinstance(judged, ClassifiedExpression)
        assert classify_expression(judged.expression, POLICY) == judged


def test_another_policy_than_the_pinned_one_is_an_error() -> None:
    with pytest.raises(StageError, match=f"digest {POLICY.sha256}; expected {'0' * 64}"):
        load_policy("0" * 64)
    assert load_policy(POLICY.sha256) == POLICY


def test_an_id_in_two_classes_is_an_error() -> None:
    with pytest.raises(ParamsError, match="MIT is in two classes"):
        parse_policy(policy_bytes().replace(b'"MPL-2.0"', b'"MPL-2.0", "MIT"'))
