"""The contents of a bundle are read as they were written, and nothing else is taken for them."""

import json
from typing import Any

import pytest

from pipeline.core.errors import DamagedError, FormatError
from pipeline.core.params import canonical_json, digest
from pipeline.store.bundles.bundle import CONTENTS, BundleContents, parse_contents

ONE, OTHER = "1" * 64, "2" * 64
VERDICT = {
    "blocking": True,
    "gate": "g",
    "limit": 0.0,
    "measure": "m",
    "measured": 0.0,
    "outcome": "passed",
    "passed": True,
}
MADE = BundleContents(OTHER, ONE, {OTHER: 10, ONE: 20}, {ONE: [VERDICT]}, "3" * 64, 9)


def parsed(written: bytes, name: str = CONTENTS) -> BundleContents:
    return parse_contents((name, written), "bundle x")


def test_what_it_says_is_read_as_it_was_written_in_the_same_order() -> None:
    found = parsed(MADE.as_bytes())
    assert found == MADE
    assert list(found.objects) == [OTHER, ONE]
    assert found.digest == json.loads(MADE.as_bytes())["digest"]


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (2, "it has format 2; expected 1. Use the version of Sluice that wrote it, or a newer one"),
        ("1", 'it has format "1"; expected 1'),
        (None, "it has format null; expected 1"),
    ],
)
def test_another_format_is_refused_with_what_to_do(version: object, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        parsed(canonical_json(json.loads(MADE.as_bytes()) | {"format_version": version}))


CHANGES: list[dict[str, Any]] = [
    {"snapshot": "../x"},
    {"snapshot": 7},
    {"proof": "x"},
    {"objects": [["../x", 1]]},
    {"objects": [[ONE, -1]]},
    {"objects": [[ONE, 1 << 60]]},
    {"objects": {ONE: 1}},
    {"objects": [[ONE, "1"]]},
    {"card_num_bytes": -1},
    {"card_sha256": ""},
    {"verdicts": {ONE: [{}]}},
    {"verdicts": {ONE: [VERDICT | {"limit": "x"}]}},
    {"verdicts": [1]},
    {"more": 1},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_value_of_another_kind_is_refused_also_where_the_digest_fits(change: dict[str, Any]) -> None:
    fields = {name: each for name, each in json.loads(MADE.as_bytes()).items() if name != "digest"} | change
    with pytest.raises(DamagedError, match=r"^bundle x: its bundle.json .* Export the snapshot again"):
        parsed(canonical_json(fields | {"digest": digest(fields)}))


@pytest.mark.parametrize(
    "written",
    [
        *(b"", b"{}", b"[]", b"{" * 100_000, MADE.as_bytes() + b" ", b'{"format_version":1}'),
        MADE.as_bytes().replace(f'"{ONE}","snapshot"'.encode(), b'NaN,"snapshot"'),
    ],
)
def test_what_is_no_contents_is_refused(written: bytes) -> None:
    with pytest.raises(DamagedError, match=r"^bundle x: its bundle.json"):
        parsed(written)


def test_another_first_member_is_named() -> None:
    with pytest.raises(DamagedError, match=r"it begins with '1111.*/manifest.json'; expected bundle.json"):
        parsed(b"{}", f"{ONE}/manifest.json")
