"""The files of a store."""

import hashlib
import os
from collections.abc import Mapping

import pytest

from pipeline.store.store import Store, StoredReceipt
from tests.support.stored_text import commit_text


def test_what_is_written_is_as_readable_as_the_umask_allows(store: Store) -> None:
    before = os.umask(0o022)
    try:
        object_id = commit_text(store, b"1")
        store.move_ref("corpus", "live", None, object_id, "built")
        store.put_verdicts(object_id, [])
        store.remember("key", object_id)
        store.put_blob([b"1"], hashlib.sha256(b"1").hexdigest(), "one")
    finally:
        os.umask(before)
    modes = {path: path.stat().st_mode & 0o777 for path in store.root.rglob("*") if path.is_file()}
    assert {path: mode for path, mode in modes.items() if mode != 0o644} == {}


@pytest.mark.parametrize(
    ("content", "withdrawn", "erased"),
    [
        ({"removed_by": {"1": ["a"], "2": ["a", "b"], "3": []}}, ["a", "b"], "123"),
        ({"removed_by": {"1": ["a"], "2": ["a", "b"], "3": []}}, ["b"], "23"),
        ({"removed_by": {"1": ["a"], "2": ["a", "b"], "3": []}}, [], "3"),
        ({}, ["b"], "123"),
        ({}, [], ""),
        ({"selectors": []}, [], "123"),
    ],
)
def test_a_receipt_is_asked_for_each_digest_and_one_that_does_not_tell_is_in_force_while_any_withdrawal_is(
    content: Mapping[str, object], withdrawn: list[str], erased: str
) -> None:
    receipt = StoredReceipt(
        {"selectors": ["a", "b"], "digests": ["2", "1"], "blobs": ["3"], **content}, frozenset(withdrawn)
    )
    assert "".join(receipt.erased("digests", "blobs", "refused")) == erased
    assert receipt.removed_by("2") == ({"a", "b"} & {*withdrawn} if "selectors" not in content else set())
