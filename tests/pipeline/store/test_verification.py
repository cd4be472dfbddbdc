"""Objects are verified with all their inputs, each file once, and what is damaged or missing is named."""

import pytest

from pipeline.core.errors import DamagedError, MissingError
from pipeline.store.store import Store
from pipeline.store.verification import verify_objects
from tests.support.stored_text import commit_text


def test_objects_are_verified_back_to_those_without_inputs_and_each_once(store: Store) -> None:
    first = commit_text(store, b"first")
    second = commit_text(store, b"second!", source=first)
    third = commit_text(store, b"third!!!", one=second, other=first)
    commit_text(store, b"what nothing names")

    verified = verify_objects(store, [third, second])
    assert (verified.num_objects, verified.num_bytes) == (3, 5 + 7 + 8)
    assert verify_objects(store, [third, first, first]) == verified


def test_a_damaged_input_and_a_missing_one_are_named_with_what_needs_it(store: Store) -> None:
    first = commit_text(store, b"first")
    second = commit_text(store, b"second", source=first)
    (store.read(first).path / "content.txt").write_bytes(b"farst")
    with pytest.raises(DamagedError, match=f"content.txt of object {first[:12]}"):
        verify_objects(store, [second])
    store.discard(first)
    with pytest.raises(MissingError, match=f"{first[:12]}.*input of test/object {second[:12]}"):
        verify_objects(store, [second])
