"""An export is the same bytes from every store, holds all that the snapshot names, and is not written from damaged objects."""

import shutil
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipeline.core.errors import DamagedError, MissingError
from pipeline.store.bundles.export_bundle import export_bundle
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from tests.pipeline.store.bundles.conftest import CARD
from tests.support.made.made_snapshot import commit_made


def test_a_bundle_is_the_same_bytes_from_a_store_that_was_judged_at_another_time(
    tiny_store: Store, whole_bundle: Path, tmp_path: Path
) -> None:
    shutil.copytree(tiny_store.root, tmp_path / "store")
    other = Store(tmp_path / "store", lambda: datetime(2001, 1, 1, tzinfo=UTC))
    for path in sorted((other.root / "verdicts").iterdir()):
        other.put_verdicts(path.stem, other.verdicts(path.stem)["verdicts"])
    snapshot = open_snapshot(other, other.ref("tiny", "live") or "")
    export_bundle(snapshot, tmp_path / "other.bundle", CARD)

    assert (tmp_path / "other.bundle").read_bytes() == whole_bundle.read_bytes()


def test_a_bundle_holds_every_object_that_the_proof_was_made_from_and_the_card(
    tiny_store: Store, whole_bundle: Path
) -> None:
    with tarfile.open(whole_bundle) as tar:
        names = tar.getnames()
        card = tar.extractfile("card.md")
        assert card is not None
        assert card.read().decode() == CARD
    reached: set[str] = set()
    waiting = [tiny_store.verified_by(tiny_store.ref("tiny", "live") or "") or ""]
    while waiting:
        name = waiting.pop()
        reached.add(name)
        waiting += [each for each in tiny_store.read(name).manifest.inputs.values() if each not in reached]
    files = {f"{name}/{path.name}" for name in reached for path in tiny_store.read(name).path.iterdir()}

    assert len(names) == len(set(names))
    assert set(names) == {"bundle.json", "card.md", *files}


def test_a_damaged_file_is_refused_and_what_was_there_stays(store: Store, tmp_path: Path) -> None:
    snapshot = open_snapshot(store, commit_made(store))
    path = next((store.root / "objects" / "tokenize" / "part").glob("*/rows_train.arrow"))
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    (tmp_path / "made.bundle").write_text("what was there")
    with pytest.raises(DamagedError, match=r"file rows_train\.arrow of object"):
        export_bundle(snapshot, tmp_path / "made.bundle", CARD, is_rows_only=True)

    assert (tmp_path / "made.bundle").read_text() == "what was there"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made.bundle", "store"]


def test_a_snapshot_without_a_proof_is_exported_with_its_rows_alone(store: Store, tmp_path: Path) -> None:
    snapshot = open_snapshot(store, commit_made(store))
    with pytest.raises(MissingError, match="no verify stage is recorded"):
        export_bundle(snapshot, tmp_path / "made.bundle", CARD)
