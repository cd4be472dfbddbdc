"""The files of a store."""

import hashlib
import os

from pipeline.store.store import Store
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
