"""The member that holds a file is named as its archive has it; bytes that are gone are said, and all else is answered."""

import hashlib
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.build.withdrawal import withdraw
from pipeline.core.errors import DamagedError
from pipeline.core.table_names import DOCUMENTS
from pipeline.lineage.origins.received_document import _member, only_row
from pipeline.lineage.origins.token_places import row_name
from pipeline.lineage.origins.which import TokenOrigin, TokenOrigins
from pipeline.lineage.stored_build import StoredBuild, stored_build
from pipeline.store.store import Store


def _origin(build: StoredBuild, row: str, slot: int) -> TokenOrigin:
    return TokenOrigins(build).of(row_name(row), slot)


def test_withdrawn_and_removed_bytes_are_said(tiny_store: Store, tmp_path: Path) -> None:
    shutil.copytree(tiny_store.root, tmp_path / "store")
    store = Store(tmp_path / "store")
    build = stored_build(store, "tiny")
    before = _origin(build, "lantern/train/3", 17)
    withdraw(store, f"sha256:{before.document['blob_sha256']}", "its owner asked")
    shutil.rmtree(build.part("collect", "lantern").path)

    found = _origin(stored_build(store, "tiny"), "lantern/train/3", 17)

    assert (found.start, found.end, found.archive["member"]) == (None, None, None)
    assert "the collected bytes are not in the store any more" in found.missing
    (withdrawn,) = found.withdrawn
    assert withdrawn.startswith(f"by sha256:{before.document['blob_sha256']} on 2")
    assert withdrawn.endswith(": its owner asked")
    assert (found.text_start, found.license) == (before.text_start, before.license)


def test_a_row_that_is_not_one_is_damage(tiny_store: Store) -> None:
    part = stored_build(tiny_store, "tiny").part("normalize", "lantern")

    with pytest.raises(DamagedError, match="0 of its rows have path nowhere; expected one"):
        only_row(part, DOCUMENTS, "path", "nowhere")


def test_an_archive_that_changed_is_damage_and_one_that_was_removed_is_said(store: Store) -> None:
    sha256 = hashlib.sha256(b"archive").hexdigest()
    pin = {"name": "one", "kind": "archive", "revision": sha256}
    path = store.put_blob([b"archive"], sha256, "one")
    path.write_bytes(b"Archive")
    build: Any = SimpleNamespace(store=store)

    with pytest.raises(DamagedError, match=f"blob {sha256[:12]}: its bytes changed"):
        _member(build, pin, "a.c")
    store.log_blob(sha256, is_removed=True)
    path.unlink()
    assert _member(build, pin, "a.c") is None
