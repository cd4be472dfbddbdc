"""A permissive label does not free a text whose equal or near copy says that it is under copyleft."""

import pytest

from tests.pipeline.stages.normalize.conftest import Normalize
from tests.pipeline.stages.normalize.duplicates.test_duplicates import similarity, statements
from tests.pipeline.stages.normalize.test_clean_source import TAG

GPL, MIT, LGPL = (f"// {TAG} {license}\n" for license in ("GPL-2.0-only", "MIT", "LGPL-2.1-only"))
NOTICE = (
    "/* This program is free software; you can redistribute it and/or modify it under the terms of the GNU General\n"
    " * Public License as published by the Free Software Foundation; version 2 of the License. */\n"
)
COPIES = {
    "an equal text with a tag of its own": (GPL + statements("x"), MIT + statements("x"), "copyleft_copy"),
    "an equal text that inherits": (GPL + statements("x"), statements("x"), "copyleft_copy"),
    "a near text with a tag of its own": (GPL + statements("x"), MIT + statements("x", changed=30), "copyleft_copy"),
    "a near text that inherits": (GPL + statements("x"), statements("x", changed=30), "copyleft_copy"),
    "a notice instead of a tag": (NOTICE + statements("x"), MIT + statements("x", changed=5), "copyleft_copy"),
    "a text that is less similar": (GPL + statements("x"), MIT + statements("x", changed=45), "kept"),
    "another text": (GPL + statements("x"), MIT + statements("y"), "kept"),
    "a copy under weak copyleft": (LGPL + statements("x", 60), MIT + statements("x", 60), "near_duplicate"),
}


@pytest.mark.parametrize(("copyleft", "relabeled", "outcome"), COPIES.values(), ids=COPIES)
def test_a_relabeled_copy_is_held(copyleft: str, relabeled: str, outcome: str, normalize: Normalize) -> None:
    made = normalize({"a": {"theirs.c": copyleft}, "b": {"ours.c": relabeled}})
    outcomes = made.outcomes()
    assert outcomes["b/ours.c"].replace("exact", "near") == outcome
    assert made.result.report.measures["num_rows_not_conserved"] == 0
    if outcome == "copyleft_copy":
        (row,) = made.rows("duplicates", "duplicates.parquet")
        (refused,) = made.rows("a", "dropped.parquet")
        assert (row["keeper_source"], row["keeper_path"], row["keeper_id"]) == ("a", "theirs.c", refused["record_id"])
        assert row["jaccard"] == pytest.approx(similarity(copyleft, relabeled))


def test_a_text_that_only_inherits_copyleft_holds_what_only_inherits_its_permission(normalize: Normalize) -> None:
    files = {"x.c": statements("x")}
    licenses = {"a": "GPL-2.0-only"}
    assert normalize({"a": files, "b": files}, licenses=licenses).outcomes()["b/x.c"] == "copyleft_copy"
    own = {"x.c": MIT + statements("x")}
    assert normalize({"a": files, "c": own}, licenses=licenses).outcomes()["c/x.c"] == "kept"


def test_a_held_text_keeps_no_other_out(normalize: Normalize) -> None:
    made = normalize(
        {
            "a": {"gpl.c": GPL + statements("x")},
            "b": {"near.c": statements("x", changed=25)},
            "c": {"far.c": statements("x", changed=45)},
        }
    )
    assert made.outcomes() == {"a/gpl.c": "license_refused", "b/near.c": "copyleft_copy", "c/far.c": "kept"}
