"""A license is the one that the first lines name, and its branch satisfies it."""

import hashlib
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pipeline.build.oracles.audited_licenses import mislicensed_documents
from pipeline.stages.normalize.license.policy import (
    ClassifiedExpression,
    classify_expression,
    parse_policy,
    policy_bytes,
)

CLASSES = ("allowed", "tagged", "refused")
SOUND = {
    "source": "one",
    "path": "a.c",
    "text": "// SPDX-License-Identifier: MIT\nint a;\n",
    "license": "MIT",
    "license_class": "allowed",
    "license_branch": "MIT",
    "license_evidence": "file",
}
ZLIB = {"license": "Zlib", "license_branch": "Zlib"}


def is_flawed(change: dict[str, str], sha256: str = hashlib.sha256(policy_bytes()).hexdigest()) -> bool:
    table = pa.Table.from_pylist([SOUND | change])
    stored: Any = SimpleNamespace(
        identity={"license_policy_sha256": sha256}, table=lambda _, names: table.select(names)
    )
    return list(mislicensed_documents(stored)) == [("one", "a.c")]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"license": "MIT AND Zlib", "license_branch": "MIT AND Zlib"},
        ZLIB | {"license_evidence": "decision"},
        ZLIB | {"license_evidence": "header"},
        ZLIB | {"text": "\n" * 5 + SOUND["text"]},
        ZLIB | {"text": SOUND["text"] * 2},
        ZLIB | {"text": "// REUSE-IgnoreStart\n" + SOUND["text"]},
        ZLIB | {"text": 'char a[] = R"(\n' + SOUND["text"]},
        ZLIB | {"text": "// SPDX-License-Identifier: of-no-policy\n"},
        ZLIB | {"text": "// SPDX-License-Identifier: MIT OR Zlib\n"},
        {"license_evidence": "header", "license": "MIT OR Zlib"},
    ],
    ids=str,
)
def test_a_license_that_the_first_lines_do_not_contradict_holds(change: dict[str, str]) -> None:
    assert not is_flawed(change)


@pytest.mark.parametrize(
    "change",
    [
        ZLIB,
        ZLIB | {"text": "\n" * 4 + "/* SPDX-License-Identifier: mit */\n"},
        {"license_branch": "Zlib"},
        {"license_branch": ""},
        {"license_class": "tagged"},
        {"license": "MIT AND Zlib"},
        {"license": "MIT AND (Zlib OR ISC)"},
        {"license": "MIT AND (Zlib OR ISC)", "license_branch": "Zlib AND ISC"},
        {"license_branch": "MIT AND ISC"},
        {"license_evidence": "header", "license": "GPL-2.0-only", "license_branch": "GPL-2.0-only"},
    ],
    ids=str,
)
def test_another_license_or_branch_is_a_flaw(change: dict[str, str]) -> None:
    assert is_flawed(change)
    assert not is_flawed(change, sha256="0" * 64)


@pytest.mark.parametrize(
    "expression",
    [
        "MIT",
        "GPL-2.0-only OR MIT",
        "MIT AND (LGPL-2.1-only OR Apache-2.0 WITH LLVM-exception) AND Zlib",
        "(MIT AND Zlib) OR (ISC AND GPL-2.0-only)",
        "MIT OR Zlib AND ISC",
        "MPL-1.1+",
    ],
)
def test_the_branch_that_the_license_rule_chooses_satisfies_the_expression(expression: str) -> None:
    found = classify_expression(expression, parse_policy(policy_bytes()))
    assert isinstance(found, ClassifiedExpression)
    row = {"license": found.expression, "license_branch": found.branch, "license_evidence": "header"}

    assert not is_flawed(row | {"license_class": CLASSES[found.license_class]})
