"""Evidence of one source: where inheritance stops, and which license texts are nearest."""

import pytest

from pipeline.stages.normalize.license.evidence import SourceEvidence, expression_ids, vendored_root


@pytest.mark.parametrize(
    ("path", "root"),
    [("a/Vendor/b/c.h", "a/Vendor"), ("vendor/x/vendor/y.c", "vendor/x/vendor"), ("a/vendor.c", None), ("c.h", None)],
)
def test_the_vendored_root_is_the_innermost_folder_of_such_a_name(path: str, root: str | None) -> None:
    assert vendored_root(path, {"vendor"}) == root


def test_the_nearest_license_texts_are_those_of_the_first_folder_above_that_has_any() -> None:
    evidence = SourceEvidence({"LICENSE": b"MIT", "a/COPYING": b"x", "a/LICENSES/ISC.txt": b"y"}, "MIT", {"vendor"})
    found = {path: evidence.nearest_texts(path) for path in ("a/b/c.h", "b/c.h", "b/vendor/x/c.h", "vendor/c.h")}
    assert {path: texts and texts.paths for path, texts in found.items()} == {
        "a/b/c.h": ("a/COPYING",),
        "b/c.h": ("LICENSE",),
        "b/vendor/x/c.h": None,
        "vendor/c.h": None,
    }


def test_tags_of_a_long_collection_of_texts_are_those_of_its_parts() -> None:
    tagged = b"SPDX-License-" + b"Identifier: MIT\n"
    texts = [SourceEvidence({"LICENSE": tagged * number}, "MIT", ()).nearest_texts("a.c") for number in (1, 5_000)]
    assert [(each.problem is None, each.is_near) for each in texts if each] == [(True, False), (False, True)]


def test_the_ids_of_expressions_are_their_words_without_operators() -> None:
    assert expression_ids(["(MIT OR ISC) AND Apache-2.0", "GPL-2.0+ WITH x"]) == {
        "MIT",
        "ISC",
        "Apache-2.0",
        "GPL-2.0+",
        "x",
    }
