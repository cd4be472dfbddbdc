"""Verdicts are read as they were written, or refused by the object they are about."""

import pytest

from pipeline.core.errors import DamagedError
from pipeline.store.fsck import fsck
from pipeline.store.store import Store
from tests.support.stored_text import commit_text


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff", b'{"verdicts": []}', b"[" * 200_000])
def test_damaged_verdicts_are_refused_and_named(store: Store, content: bytes) -> None:
    object_id = commit_text(store, b"1")
    store.put_verdicts(object_id, [])
    assert (store.verdicts(object_id) or {})["verdicts"] == []
    (store.root / "verdicts" / f"{object_id}.json").write_bytes(content)

    with pytest.raises(DamagedError, match=f"verdicts of object {object_id[:12]}"):
        store.verdicts(object_id)
    (problem,) = fsck(store)
    assert object_id[:12] in problem
