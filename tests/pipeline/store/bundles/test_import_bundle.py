"""An import brings the snapshot with all that it was made from, or its rows alone, and takes nothing else than an export."""

import hashlib
import io
import re
import shutil
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from pipeline.build.promotion import promote
from pipeline.build.stage_objects import parts_of
from pipeline.build.withdrawal import holders
from pipeline.core.errors import DamagedError, FormatError, MissingError, SnapshotError
from pipeline.core.params import canonical_json, parse_json
from pipeline.core.table_names import FILES
from pipeline.lineage.why import why
from pipeline.pins.selection import Selector
from pipeline.removal.erasure import RECEIPT_KIND, Receipt, erase
from pipeline.removal.judged_import import refuse_withdrawn_import
from pipeline.store.bundles.archive_members import ArchiveReader, ArchiveWriter
from pipeline.store.bundles.bundle import BundleContents, parse_contents
from pipeline.store.bundles.import_bundle import import_bundle
from pipeline.store.fsck import fsck
from pipeline.store.log import RECEIPT, Holding
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store

Members = dict[str, bytes]


def stored_in(store: Store) -> list[Path]:
    return sorted(store.root.glob("objects/*/*/*"))


def test_an_import_is_as_if_it_were_built_here(tiny_store: Store, store: Store, whole_bundle: Path) -> None:
    live = tiny_store.ref("tiny", "live") or ""
    found = import_bundle(store, whole_bundle, "other")

    assert (found.snapshot_id, found.num_new) == (live, found.num_objects)
    assert fsck(store) == []
    assert {name: each for name, each in tiny_store.refs("tiny").items() if name != "live"} == store.refs("other")
    assert why(store, "other", "lantern", "src/glob.cc").kept
    assert promote(store, "other").new == live
    again = import_bundle(store, whole_bundle, "other")
    assert (again.num_new, again.digest) == (0, found.digest)
    assert [entry["ref"] for entry in store.history("other")].count("candidate") == 1, "nothing moves twice"


def test_what_the_store_has_is_kept_and_what_is_damaged_is_replaced(
    tiny_store: Store, tmp_path: Path, whole_bundle: Path
) -> None:
    shutil.copytree(tiny_store.root, tmp_path / "store")
    store = Store(tmp_path / "store")
    gone, damaged = store.ref("tiny", "verify") or "", store.ref("tiny", "normalize") or ""
    store.discard(gone)
    (store.read(damaged).path / "report.json").write_text("{}")

    assert import_bundle(store, whole_bundle, "tiny").num_new == 2
    assert fsck(store) == []


def test_rows_alone_are_sound_and_say_what_is_not_there(store: Store, whole_bundle: Path) -> None:
    found = import_bundle(store, whole_bundle, with_proof=False)
    snapshot = open_snapshot(store, found.snapshot_id)

    rows = [store.read(source.rows) for source in snapshot.sources]
    num_shards = sum(len(each.shards) for each in rows if each.is_joined)
    assert num_shards == 2
    assert len(stored_in(store)) == found.num_objects == 1 + len(rows) + num_shards
    assert fsck(store) == []
    for ask in (lambda: promote(store, "imported"), lambda: why(store, "imported", "lantern", "a", "candidate")):
        with pytest.raises(MissingError, match=r"no verify stage is recorded.*import its whole bundle"):
            ask()
    (holder,) = holders(store, [Selector(f"sha256:{'0' * 64}")])
    assert holder.num_documents is None, "nobody can tell by bytes"
    path = next(store.root.glob("objects/*/*/*/rows_train.arrow"))
    path.write_bytes(b"")
    assert "rows_train.arrow" in "".join(fsck(store))
    assert import_bundle(store, whole_bundle).proof is not None
    assert fsck(store) == []
    assert holders(store, [Selector(f"sha256:{'0' * 64}")]) == []


@pytest.mark.parametrize("selector", ["lantern/src/**", "quarry/src/partition.c", "odds/data/scanner.c"])
def test_what_is_withdrawn_here_is_not_named_nor_stored(store: Store, whole_bundle: Path, selector: str) -> None:
    """Of the latter two no stage kept a document."""
    store.log_withdrawal(selector, "its owner asked")
    name, _, path = selector.partition("/")
    place = re.escape(path.rstrip("*"))
    with pytest.raises(SnapshotError, match=rf"source {name} holds {place}.*, and {re.escape(selector)} withdraws it"):
        import_bundle(store, whole_bundle, refuse=refuse_withdrawn_import)
    assert store.corpora() == []
    assert [*store.root.glob("objects/*/*/*")] == [], "no byte of it is stored"
    snapshot = parse_contents(reader_of(whole_bundle).first(), "").snapshot
    store.log_withdrawal(selector, "its owner asked", holding=Holding(frozenset({snapshot})))
    with pytest.raises(SnapshotError, match=f"it holds what {re.escape(selector)} withdraws"):
        import_bundle(store, whole_bundle, with_proof=False)


def test_bytes_that_were_erased_here_do_not_come_back(tiny_store: Store, whole_bundle: Path, tmp_path: Path) -> None:
    store = Store(Path(shutil.copytree(tiny_store.root, tmp_path / "store")))
    store.log_withdrawal("odds/data/**", "its owner asked")
    for name in store.corpora():
        store.remove_ref(name, "live", "a test")
    rewritten = [each["object_id"] for each in erase(store, ["odds/data/**"], "its owner asked")[1].rewritten]
    whole = parts_of(tiny_store.read(tiny_store.ref("tiny", "collect") or ""))["odds"]
    for object_id in {*rewritten, whole}:  # as gc does, which leaves no source without its shards
        shutil.rmtree(store.locate(object_id) or "")

    with pytest.raises(SnapshotError, match=r"source odds holds data/.*, and odds/data.* withdraws it"):
        import_bundle(store, whole_bundle, refuse=refuse_withdrawn_import)
    assert [store.locate(object_id) for object_id in rewritten] == [None] * len(rewritten)


@pytest.mark.parametrize(("with_proof", "holder"), [(True, "collected source lantern"), (False, "source lantern")])
def test_bytes_that_were_erased_under_another_name_do_not_come_back(
    tiny_store: Store, store: Store, whole_bundle: Path, tmp_path: Path, with_proof: bool, holder: str
) -> None:
    part = tiny_store.read(parts_of(tiny_store.read(tiny_store.ref("tiny", "collect") or ""))["lantern"])
    digests = {row["path"]: row["blob_sha256"] for row in part.table(FILES, ["path", "blob_sha256"]).to_pylist()}
    (tmp_path / "receipt").mkdir()
    receipt = Receipt(("another", "renamed"), (digests["src/glob.cc"],), (), (), (), 0, ())
    (tmp_path / "receipt" / RECEIPT).write_bytes(canonical_json(asdict(receipt)))
    store.log_withdrawal("renamed", "a test", receipt=store.commit(tmp_path / "receipt", RECEIPT_KIND, {}, {}))
    store.log_withdrawal("another", "a test")

    with pytest.raises(
        SnapshotError,
        match=rf"its {holder} holds src/glob.cc, and these bytes were erased .* another or renamed;.*SELECTOR",
    ):
        import_bundle(store, whole_bundle, refuse=refuse_withdrawn_import, with_proof=with_proof)


def test_an_import_waits_for_a_build_of_its_corpus_and_for_no_other(store: Store, rows_bundle: Path) -> None:
    began, may_end, ended = threading.Event(), threading.Event(), list[str]()

    def build() -> None:
        with store.writer("tiny", "a build"):
            began.set()
            may_end.wait(60)
            ended.append("the build")

    thread = threading.Thread(target=build)
    thread.start()
    began.wait(60)
    import_bundle(store, rows_bundle)
    assert ended == []
    threading.Timer(0.1, may_end.set).start()
    import_bundle(store, rows_bundle, "tiny")
    assert ended == ["the build"]
    thread.join()


@pytest.mark.parametrize("share", [0, 0.001, 0.02, 0.3, 0.6, 0.97, 0.9999])
@pytest.mark.parametrize("change", ["a bit", "the rest"])
def test_a_bundle_with_a_changed_byte_or_cut_off_is_refused_whole(
    store: Store, rows_bundle: Path, tmp_path: Path, share: float, change: str
) -> None:
    content = bytearray(rows_bundle.read_bytes())
    place = int(share * len(content))
    content[place] ^= 4
    (tmp_path / "bad.bundle").write_bytes(content if change == "a bit" else content[:place])
    with pytest.raises(DamagedError) as refused:
        import_bundle(store, tmp_path / "bad.bundle")

    assert refused.value.remedy
    assert stored_in(store) == []
    assert fsck(store) == [] or not store.root.exists()


def reader_of(path: Path) -> ArchiveReader:
    return ArchiveReader(io.BytesIO(path.read_bytes()), "bundle", "")


def spoiled(path: Path, target: Path, spoil: Callable[[dict[str, Any]], None], **others: object) -> None:
    """Write a bundle with the manifest of its rows changed, with digests that fit, and other contents."""
    reader = reader_of(path)
    contents = parse_contents(reader.first(), "")
    card = b"".join(reader.member("card.md", contents.card_num_bytes))
    files: dict[str, Members] = {}
    for name, num_bytes in contents.objects.items():
        manifest = b"".join(reader.member(f"{name}/manifest.json", num_bytes))
        entries = parse_json(manifest)["files"]
        files[name] = {"manifest.json": manifest}
        files[name] |= {
            each["name"]: b"".join(reader.member(f"{name}/{each['name']}", each["num_bytes"])) for each in entries
        }
    (rows, snapshot) = contents.objects
    fields = parse_json(files[rows]["manifest.json"])
    spoil(fields)
    files[rows]["manifest.json"] = canonical_json(fields)
    renamed = {rows: hashlib.sha256(files[rows]["manifest.json"]).hexdigest()}
    fields = parse_json(files[snapshot]["manifest.json"])
    fields["inputs"] = dict.fromkeys(fields["inputs"], renamed[rows])
    files[snapshot]["manifest.json"] = canonical_json(fields)
    renamed[snapshot] = hashlib.sha256(files[snapshot]["manifest.json"]).hexdigest()
    sizes = {renamed[name]: len(files[name]["manifest.json"]) for name in contents.objects}
    made = {**vars(contents), "snapshot": renamed[snapshot], "objects": sizes} | others
    _write(target, BundleContents(**made), card, {renamed[name]: files[name] for name in contents.objects})


def _write(target: Path, contents: BundleContents, card: bytes, files: dict[str, Members]) -> None:
    with target.open("wb") as file:
        writer = ArchiveWriter(file)
        writer.add("bundle.json", len(contents.as_bytes()), [contents.as_bytes()])
        writer.add("card.md", len(card), [card])
        for name in contents.objects:
            listed = parse_json(files[name]["manifest.json"])["files"]
            writer.add(f"{name}/manifest.json", contents.objects[name], [files[name]["manifest.json"]])
            for entry, content in zip(listed, list(files[name].values())[1:], strict=False):
                writer.add(f"{name}/{entry['name']}", len(content), [content])
        writer.finish()


HOSTILE: dict[str, Callable[[dict[str, Any]], None]] = {
    "a file outside": lambda fields: fields["files"][0].update(name="../outside"),
    "a kind outside": lambda fields: fields.update(kind="../outside"),
    "inputs that are none": lambda fields: fields.update(inputs=[1]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_names_that_are_no_places_of_a_store_are_refused_where_all_digests_fit(
    store: Store, rows_bundle: Path, tmp_path: Path, name: str
) -> None:
    spoiled(rows_bundle, tmp_path / "bad.bundle", HOSTILE[name])
    with pytest.raises(DamagedError, match=r"bundle bad\.bundle: the manifest of .* names what no store holds"):
        import_bundle(store, tmp_path / "bad.bundle")
    assert stored_in(store) == []
    assert not list(tmp_path.rglob("*outside*"))


def test_what_is_spoiled_by_nothing_is_taken(store: Store, rows_bundle: Path, tmp_path: Path) -> None:
    spoiled(rows_bundle, tmp_path / "sound.bundle", lambda fields: None)
    assert (tmp_path / "sound.bundle").read_bytes() == rows_bundle.read_bytes()
    assert import_bundle(store, tmp_path / "sound.bundle").num_new == 2


@pytest.mark.parametrize("others", [{"proof": "0" * 64}, {"verdicts": {"0" * 64: []}}, {"snapshot": "0" * 64}], ids=str)
def test_objects_that_are_no_snapshot_with_what_it_was_made_from_are_refused(
    store: Store, rows_bundle: Path, tmp_path: Path, others: dict[str, object]
) -> None:
    spoiled(rows_bundle, tmp_path / "bad.bundle", lambda fields: None, **others)
    with pytest.raises(DamagedError, match="its objects are not a snapshot and what that was made from"):
        import_bundle(store, tmp_path / "bad.bundle")
    assert stored_in(store) == []


def test_an_object_of_another_version_is_refused_as_such(store: Store, rows_bundle: Path, tmp_path: Path) -> None:
    spoiled(rows_bundle, tmp_path / "new.bundle", lambda fields: fields.update(identity_version=3))
    with pytest.raises(
        FormatError, match=r"its identity has version 3; expected 2. Another version of Sluice wrote it"
    ):
        import_bundle(store, tmp_path / "new.bundle")
