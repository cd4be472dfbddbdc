"""A license is the one that the first lines name, and its branch satisfies it."""

import hashlib
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pipeline.build.oracles.audited_licenses import (
    _is_as_detailed,
    class_of,
    inheriting_documents,
    misallowed_rows,
    misdropped_licenses,
    mislicensed_documents,
    mispinned_documents,
    misstated_licenses,
    policy_sha256,
    satisfies,
)
from pipeline.core.table_names import DOCUMENTS, DROPPED, FILES
from pipeline.stages.normalize.license.policy import (
    ClassifiedExpression,
    classify_expression,
    parse_policy,
    policy_bytes,
)
from tests.pipeline.stages.normalize.license.test_read_comments import HEADERS, POLICY, PROJECT, in_block

CLASSES = ("allowed", "tagged", "refused")
SOUND = {
    "source": "one",
    "path": "a.c",
    "text": "// SPDX-License-Identifier: MIT\nint a;\n",
    "license": "MIT",
    "license_class": "allowed",
    "license_branch": "MIT",
    "license_evidence": "file",
    "license_detail": "",
}
ZLIB = {"license": "Zlib", "license_branch": "Zlib"}


def is_flawed(change: dict[str, str], sha256: str = hashlib.sha256(policy_bytes()).hexdigest()) -> bool:
    table = pa.Table.from_pylist([SOUND | change])
    stored: Any = SimpleNamespace(
        identity={"license_policy_sha256": sha256}, table=lambda _, names: table.select(names)
    )
    return list(mislicensed_documents(stored)) == [("one", "a.c")]


TAG = "a.c:1: SPDX-License-Identifier: "


@pytest.mark.parametrize(
    ("license", "evidence", "detail", "holds"),
    [
        ("MIT", "license_text", "LICENSE: the text of MIT", True),
        ("Zlib", "license_text", "LICENSE: the text of MIT", False),
        ("MIT", "file", f"{TAG}MIT", True),
        ("MIT AND Zlib", "file", f"{TAG}MIT\na.c:2: SPDX-License-Identifier: Zlib", True),
        ("MIT", "file", f"{TAG}MIT\na.c:2: SPDX-License-Identifier: Zlib", False),
        ("Apache-2.0", "file", f"{TAG}Apache-2.0 WITH LLVM-exception", False),
        ("Zlib", "package", f"{TAG}MIT\npin: declared_license = MIT", False),
        ("MIT", "package", "PKG-INFO:3: Classifier: License :: OSI Approved", True),
        ("Zlib", "sidecar", "a.c.license:1: SPDX-License-Identifier: MIT", False),
        ("LGPL-2.1-or-later", "file", f"{TAG}LGPL-2.1+", True),
        ("BSD-2-Clause-Views", "file", f"{TAG}(BSD-2-Clause-FreeBSD)", True),
        ("BSD-3-Clause", "header", "a.c: the header contains the notice of LicenseRef-BSD-family", True),
        ("BSD-3-Clause", "header", "a.c: the header contains the notice of <redacted-email-1>", True),
        ("BSD-3-Clause", "header", "a.c: the header contains a text that is not shown", True),
        ("BSD-3-Clause", "header", "a.c: the header contains the notice of MIT.", False),
    ],
)
def test_a_license_is_of_the_names_that_its_detail_holds(license: str, evidence: str, detail: str, holds: bool) -> None:
    row = {"license": license, "license_branch": license, "license_evidence": evidence, "license_detail": detail}
    license_class = class_of(license, {each: name for name in CLASSES for each in POLICY[name]})

    assert is_flawed({"text": "int a;\n", **row, "license_class": license_class}) is not holds


@pytest.mark.parametrize("header", [each for headers in HEADERS["kept"].values() for each in headers])
def test_the_license_rule_tells_of_each_header_what_it_names(header: str) -> None:
    found = PROJECT.decide("src/a.c", in_block(header))

    assert found.drop_reason or _is_as_detailed(
        {"license": found.expression, "license_evidence": found.evidence, "license_detail": found.detail}
    )


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"license": "MIT AND Zlib", "license_branch": "MIT AND Zlib"},
        ZLIB | {"license_evidence": "decision"},
        {"license": "GPL-2.0-only", "license_branch": "GPL-2.0-only", "license_evidence": "decision"},
        ZLIB | {"license_evidence": "sidecar"},
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
        ZLIB | {"license_evidence": "header"},
        ZLIB | {"license_evidence": "package"},
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
    row = {"license": found.expression, "license_branch": found.branch, "license_evidence": "sidecar"}

    assert not is_flawed(row | {"license_class": CLASSES[found.license_class]})


@pytest.mark.parametrize(
    ("chosen", "expression", "is_enough"),
    [
        ({"B"}, "A AND B", False),
        ({"B"}, "A AND (B OR C)", False),
        ({"A", "C"}, "A AND (B OR C)", True),
        ({"A"}, "(A OR B) AND C", False),
        ({"A"}, "A)", False),
    ],
)
def test_licenses_are_enough_for_all_that_an_expression_joins(
    chosen: set[str], expression: str, is_enough: bool
) -> None:
    assert satisfies(chosen, expression) == is_enough


LOST = b"// SPDX-License-Identifier: MIT\nint a;\n"


def is_misdropped(
    content: bytes,
    reason: str = "license_refused",
    path: str = "src/a.c",
    kept: dict[str, str] | None = None,
    others: tuple[str, ...] = (),
    said: tuple[str, str | None] = ("", None),
    **identity: Any,
) -> bool:
    row = {"path": "src/kept.c", "text": "int b;\n", "license_evidence": "package"} | (kept or {})
    dropped = [
        {"source": "one", "path": path, "reason": reason, "detail": said[0], "license": said[1]},
        {"source": "one", "path": "src/b.c", "reason": "too_small", "detail": "", "license": None},
    ]
    files = [("src/b.c", b"int b;\n"), (path, content), *((other, b"") for other in others)]
    tables = {
        DOCUMENTS: pa.Table.from_pylist([row]),
        DROPPED: pa.Table.from_pylist(dropped),
        FILES: pa.Table.from_pylist([{"path": path, "content": each} for path, each in files]),
    }
    stored: Any = SimpleNamespace(
        identity={"license_policy_sha256": hashlib.sha256(policy_bytes()).hexdigest()} | identity,
        table=lambda name, columns: tables[name].select(columns),
    )
    return list(misdropped_licenses(stored, stored)) == [("one", path)]


@pytest.mark.parametrize("reason", ["license_refused", "license_unknown", "license_quarantined"])
def test_a_file_whose_own_tag_is_allowed_is_not_dropped_for_its_license(reason: str) -> None:
    assert is_misdropped(LOST, reason)
    assert is_misdropped(LOST.replace(b"\n", b"\r\n"), reason)
    assert is_misdropped(b"// SPDX-License-Identifier: mit\n", reason)
    says_more = is_misdropped(LOST + b"// Not for commercial use.\n", reason)
    assert says_more == (reason != "license_quarantined")


@pytest.mark.parametrize("reason", ["license_refused", "license_unknown", "license_quarantined"])
def test_a_file_that_says_nothing_is_not_dropped_beside_one_that_was_kept(reason: str) -> None:
    assert is_misdropped(b"int a;  // the first\n", reason)
    assert is_misdropped(b"int use, copyleft;\n", reason)
    assert is_misdropped(b"int a;\n", reason, kept={"license_evidence": "license_text"})


@pytest.mark.parametrize(
    ("content", "changes"),
    [
        (LOST, {"reason": "contaminated"}),
        (LOST, {"path": f"{'0' * 40}:src/a.c"}),
        (LOST.replace(b"MIT", b"GPL-2.0-only"), {}),
        (LOST.replace(b"MIT", b"MPL-2.0"), {}),
        (LOST.replace(b"MIT", b"of-no-policy"), {}),
        (LOST * 2, {}),
        (LOST + "// \u00e9\n".encode(), {}),
        (LOST + b"// Not for commercial use.\n", {"reason": "license_quarantined"}),
        (LOST + b'char notice[] = "BSD";\n', {"reason": "license_quarantined"}),
        (LOST, {"others": ("src/a.c.license",)}),
        (LOST, {"others": ("REUSE.toml",)}),
        (LOST, {"others": (".reuse/dep5",)}),
        (LOST, {"decisions": [{}]}),
        (LOST, {"license_policy_sha256": "0"}),
        (b"// Not for sale without a permission.\n", {}),
        (b'char a[] = "MIT";\n', {}),
        (b"int a;\n", {"kept": {"path": "other/kept.c"}}),
        (b"int a;\n", {"kept": {"license_evidence": "file"}}),
        (b"int a;\n", {"kept": {"text": "// Free for all.\n"}}),
    ],
    ids=str,
)
def test_a_drop_for_a_license_that_the_file_does_not_contradict_holds(content: bytes, changes: dict[str, Any]) -> None:
    assert not is_misdropped(content, **changes)


def test_a_drop_for_what_the_file_says_holds() -> None:
    flawed = []
    for header in (*HEADERS["refused"], *HEADERS["lines"], *HEADERS["free_words"]):
        text = in_block(header)
        found = PROJECT.decide("src/a.c", text)
        said = (found.detail, found.expression)
        if found.drop_reason and is_misdropped(text.encode(), found.drop_reason, said=said):
            flawed.append(header)
    assert flawed == []


@pytest.mark.parametrize(
    "said",
    [
        ("src/a.c says `no ai training`, against MIT by license_text", "MIT"),
        ("LICENSE says `the first`, against the rest\nand `int a`", "MIT"),
        ("src/a.c says `-`, against MIT by package", "MIT"),
        ("src/a.c is unclear", "start"),
    ],
)
def test_a_drop_for_words_that_the_file_does_not_say_is_a_flaw(said: tuple[str, str]) -> None:
    assert is_misdropped(b"// A start\nint a;\n", "license_quarantined", said=said)


def test_words_are_those_of_the_file_however_they_are_divided() -> None:
    divided = b"/* con-\n * fi-\n * den-\n * tia l */\n"
    assert not is_misdropped(divided, "license_quarantined", said=("src/a.c says `confidentia l`", "MIT"))
    spelled = b"/* Recipes, numerical: software */\n"
    assert not is_misdropped(
        spelled, "license_quarantined", said=("src/a.c says `LicenseRef-Numerical-Recipes`", "MIT")
    )


def test_what_states_no_license_of_its_own_inherits_one() -> None:
    evidence = ["file", "license_text", "header", "package", "decision"]
    table = pa.Table.from_pylist([{**SOUND, "path": name, "license_evidence": name} for name in evidence])
    stored: Any = SimpleNamespace(table=lambda _, names: table.select(names))

    assert list(inheriting_documents(stored)) == [("one", "license_text"), ("one", "package")]


@pytest.mark.parametrize(
    ("detail", "declared", "holds"),
    [
        ("pin: declared_license = MIT", "MIT", True),
        ("pin: declared_license = MIT", "BSD-3-Clause", False),
        ("LICENSE:1: MIT\npin: declared_license = MIT", "Zlib", False),
        ("LICENSE:1: MIT", "Zlib", True),
    ],
)
def test_a_detail_quotes_the_license_of_its_pin(detail: str, declared: str, holds: bool) -> None:
    table = pa.Table.from_pylist([{"source": "one", "path": "a.c", "license_detail": detail}])
    stored: Any = SimpleNamespace(table=lambda name, columns: table.select(columns))

    found = list(mispinned_documents(stored, {"declared_license": declared}))
    assert found == ([] if holds else [("one", "a.c")])
    assert list(mispinned_documents(stored, {})) == []


@pytest.mark.parametrize(
    ("license", "name", "is_allowed"),
    [
        ("MIT", "allowed", True),
        ("MIT OR GPL-2.0-only", "allowed", True),
        ("Apache-2.0 WITH LLVM-exception", "allowed", True),
        ("MIT AND MPL-2.0", "tagged", True),
        ("(MIT OR GPL-2.0-only) AND MPL-2.0", "tagged", True),
        ("GPL-2.0-only", "refused", False),
        ("GPL-2.0-only", "allowed", False),
        ("MIT AND GPL-2.0-only", "allowed", False),
        ("MPL-2.0", "allowed", False),
        ("MIT", "tagged", False),
        (None, None, False),
        (None, "allowed", False),
        ("of no policy", "allowed", False),
    ],
)
def test_rows_of_a_license_that_is_not_allowed_are_seen(
    license: str | None, name: str | None, is_allowed: bool
) -> None:
    rows = pa.table({"license": pa.array([license] * 2), "license_class": pa.array([name] * 2)})
    stored: Any = SimpleNamespace(table=lambda table, columns: rows if "train" in table else rows.slice(0, 0))
    asked = {"tagged": True, "policy_sha256": policy_sha256()}

    assert len(list(misallowed_rows("one", stored, asked))) == int(not is_allowed)
    of_another_policy = asked | {"policy_sha256": "0"}
    assert len(list(misallowed_rows("one", stored, of_another_policy))) == int(name not in ("allowed", "tagged"))
    is_left = is_allowed and name == "allowed"
    assert len(list(misallowed_rows("one", stored, asked | {"tagged": False}))) == int(not is_left)


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("MIT", "allowed"),
        ("MPL-2.0 AND MIT", "tagged"),
        ("GPL-2.0-only AND MIT", "refused"),
        ("of-none", "refused"),
        ("", ""),
    ],
)
def test_an_expression_is_of_the_least_demanding_class_that_is_enough(expression: str, name: str) -> None:
    assert class_of(expression, {"MIT": "allowed", "MPL-2.0": "tagged", "GPL-2.0-only": "refused"}) == name


@pytest.mark.parametrize(
    ("license", "reason", "decisions", "is_seen"),
    [
        ("MIT", "license_refused", (), True),
        ("MIT OR GPL-2.0-only", "license_refused", (), True),
        ("MIT", "license_refused", ({"path": "*"},), False),
        ("MIT", "license_quarantined", (), False),
        ("GPL-2.0-only", "license_refused", (), False),
        ("GPL-2.0-only AND MIT", "license_refused", (), False),
        ("MIT WITH LLVM-exception", "license_refused", (), False),
        ("MIT", "too_small", (), False),
    ],
)
def test_a_refusal_of_what_the_policy_allows_is_seen(license: str, reason: str, decisions: Any, is_seen: bool) -> None:
    detail = f"{license} is refused\na.c: the notice" if reason == "license_refused" else "a.c says `GPL`, against MIT"
    drop = {"source": "one", "path": "a.c", "reason": reason, "detail": detail, "license": license}
    dropped, files = (
        pa.Table.from_pylist([drop]),
        pa.table({"path": ["a.c"], "content": [b"// GPL, or the MIT license"]}),
    )
    identity = {"license_policy_sha256": policy_sha256(), "decisions": decisions}
    stored: Any = SimpleNamespace(identity=identity, table=lambda name, columns: dropped.select(columns))
    collected: Any = SimpleNamespace(table=lambda name, columns: files.select(columns))

    assert list(misstated_licenses(stored, collected, {}, {})) == ([("one", "a.c")] if is_seen else [])
