"""Erased bytes are nowhere in what the store received, a receipt says what still holds a copy, and fsck knows it."""

import io
import shutil
from pathlib import Path

import pytest

import pipeline.removal.erasure as erasure_module
from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import TINY, pins_of
from pipeline.build.run_stage import run_stages
from pipeline.build.withdrawal import collected_parts, restore, version_digests, withdraw, withdraw_all
from pipeline.cli.main import main
from pipeline.core.change_text import change_path, changed_file
from pipeline.core.digests import text_sha256
from pipeline.core.errors import SnapshotError
from pipeline.core.table_names import DOCUMENTS, DROPPED, FILES, HISTORY, TREE, VERSIONS
from pipeline.lineage.origins.received_document import received_document
from pipeline.lineage.stored_build import stored_build
from pipeline.pins.build_block import BuildBlock
from pipeline.removal.author_files import author_files
from pipeline.removal.erased_archives import bytes_in_archives
from pipeline.removal.erasure import erase
from pipeline.store.fsck import fsck
from pipeline.store.garbage import reclaim
from pipeline.store.store import Store
from pipeline.store.store_layout import MANIFEST
from tests.conftest import WITHDRAWN
from tests.pipeline.removal.conftest import FILES_OF, OWN_SHA256, SHARED, Collected


def test_the_bytes_are_in_no_collected_source_and_no_archive(collected: Collected) -> None:
    withdraw(collected.store, "made/a.c", "a test")
    after = collected.collect()["made"]
    receipt_id, receipt = erase(collected.store, ["made/a.c"], "a test")

    assert collected.contents(collected.first["made"]) == {**FILES_OF["made"], "a.c": b""}
    assert collected.contents(after) == {"b.c": SHARED, "LICENSE": FILES_OF["made"]["LICENSE"]}
    assert (receipt.digests, receipt.blobs) == ((OWN_SHA256,), (collected.pins[0].revision,))
    assert collected.blobs() == {collected.pins[1].revision}
    assert [each["object_id"] for each in receipt.rewritten] == [collected.first["made"]]
    assert receipt.held_by == ()
    assert fsck(collected.store) == []
    assert receipt_id in {kept.object_id for kept in reclaim(collected.store, lambda name: False).kept}
    assert collected.collect()["made"] == after
    assert collected.blobs() == {collected.pins[1].revision}, (
        "what was erased is not fetched for a source that is known"
    )
    num_lines = len(collected.store.withdrawals())
    assert erase(collected.store, ["made/a.c"], "a test")[0] is None
    assert len(collected.store.withdrawals()) == num_lines


def test_an_archive_that_another_source_needs_for_the_same_bytes_stays_and_is_named(
    collected: Collected,
) -> None:
    withdraw(collected.store, "made/b.c", "a test")
    receipt = erase(collected.store, ["made/b.c"], "a test")[1]

    other = {"kind": "collect/part", "object_id": collected.first["other"], "blobs": [collected.pins[1].revision]}
    assert receipt.held_by == (other,)
    assert collected.blobs() == {collected.pins[1].revision}
    assert collected.contents(collected.first["other"])["c.c"] == SHARED


def test_after_gc_the_archive_is_found_by_what_was_dropped(collected: Collected) -> None:
    withdraw(collected.store, f"sha256:{OWN_SHA256}", "a test")
    collected.collect()
    reclaim(collected.store, lambda name: False)
    receipt = erase(collected.store, [f"sha256:{OWN_SHA256}"], "a test")[1]

    assert (receipt.rewritten, receipt.blobs) == ((), (collected.pins[0].revision,))
    assert fsck(collected.store) == []


def test_what_a_live_snapshot_holds_is_refused_with_who_holds_it(tiny_store: Store, tmp_path: Path) -> None:
    store = Store(Path(shutil.copytree(tiny_store.root, tmp_path / "store")))
    live = store.ref("tiny", "live") or ""
    withdraw(store, WITHDRAWN, "a test")
    before = {path: path.stat().st_mtime_ns for path in store.root.glob("objects/**/*")}

    with pytest.raises(SnapshotError, match=rf"erasure of lantern/src/\*\*: tiny/live \({live[:12]}\) holds it"):
        erase(store, [WITHDRAWN], "a test")
    assert {path: path.stat().st_mtime_ns for path in store.root.glob("objects/**/*")} == before


def test_nothing_that_was_skipped_of_a_withdrawn_file_says_why_after_the_next_build(
    tiny_store: Store, tmp_path: Path
) -> None:
    store = Store(Path(shutil.copytree(tiny_store.root, tmp_path / "store")))
    names = ["loom/src/warp.c", "odds/data/**"]
    withdraw_all(store, names, "a test")
    with open_build(BuildRequest("tiny", TINY.params, pins_of(TINY), "a test"), store) as build:
        parts = dict(next(run_stages(build, "collect")).parts)

    for name, start in (("loom", "src/warp.c"), ("odds", "data/")):
        drops = store.read(parts[name]).table(DROPPED).to_pylist()
        found = {(row["reason"], row["detail"]) for row in drops if changed_file(row["path"]).startswith(start)}
        assert found == {("withdrawn", f"by {next(each for each in names if each.startswith(name))}")}
    store.remove_ref("tiny", "live", "a test")
    rewritten = erase(store, names, "a test")[1].rewritten
    assert {each["object_id"] for each in rewritten}.isdisjoint(parts.values())


def test_what_a_source_in_shards_holds_is_searched_too(tiny_store: Store) -> None:
    (joined,) = (part for part in collected_parts(tiny_store) if part.is_joined)
    content = joined.table(FILES, ["content"])["content"][0].as_py().decode()
    name = max((word for word in content.split() if word.isalpha()), key=len)

    assert joined.identity["name"] in author_files(tiny_store, name).by_source


def test_a_version_of_a_file_goes_with_its_changes_and_the_subjects_of_their_commits(
    tiny_store: Store, tmp_path: Path
) -> None:
    store = Store(Path(shutil.copytree(tiny_store.root, tmp_path / "store")))
    (loom,) = (part for part in collected_parts(store) if part.has(VERSIONS))
    links = loom.table(HISTORY).to_pylist()
    digests = version_digests(loom)
    version = next(digests[path][1] for path in loom.table(FILES)["path"].to_pylist() if path in digests)
    paths = {path for path, ends in digests.items() if version in ends}
    subject = next(link["subject"] for link in links if "weaver@" in link["subject"])
    names = [f"sha256:{version}", f"sha256:{text_sha256(subject)}"]
    found = {holder.object_id: holder.num_documents for holder in withdraw_all(store, names, "a test")}
    assert found[store.ref("tiny", "live") or ""] == len(paths & set(loom.table(FILES)["path"].to_pylist()))

    store.remove_ref("tiny", "live", "a test")
    digests_erased = erase(store, names, "a test")[1].digests
    with open_build(BuildRequest("tiny", TINY.params, pins_of(TINY), "a test"), store) as build:
        again = store.read(dict(next(run_stages(build, "collect")).parts)["loom"])

    assert version in digests_erased
    for part in (store.read(loom.object_id), again):
        rows = {row["blob_sha256"]: row["content"] for row in part.table(VERSIONS).to_pylist()}
        contents = {row["path"]: row["content"] for row in part.table(FILES).to_pylist()}
        assert not rows.pop(version, b"")
        assert all(rows.values())
        assert not any(contents.get(path) for path in paths)
        for before, after in zip(links, part.table(HISTORY).to_pylist(), strict=True):
            is_gone = change_path(before["commit_hash"], before["path"]) in paths or before["subject"] == subject
            assert after == {**before, "subject": "" if is_gone else before["subject"]}


def test_what_else_was_made_of_it_is_named_and_other_files_stay_readable(
    tiny_store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(Path(shutil.copytree(tiny_store.root, tmp_path / "store")))
    old = store.ref("tiny", "live") or ""
    store.move_ref("kept", "candidate", None, old, "a run needs it")
    store.remove_ref("tiny", "live", "a test")
    withdraw(store, WITHDRAWN, "a test")

    assert main(["withdraw", "--erase", "--store", str(store.root)]) == 0
    lines = capsys.readouterr().out.splitlines()
    kinds = [line.split()[4] for line in lines if line.startswith("still holds a copy: ")]
    assert kinds[0] == "snapshot"
    assert "(kept/candidate, tiny/candidate)" in "".join(lines)
    assert {"normalize/rules", "enrich/part", "tokenize/part"} <= set(kinds)
    assert fsck(store) == []
    build = stored_build(store, "tiny", old)
    documents = build.part("normalize", "lantern").table(DOCUMENTS, ["document_id", "path"]).to_pylist()
    erased = next(row["document_id"] for row in documents if row["path"].startswith("src/"))
    assert received_document(build, "lantern", erased).missing == "its bytes were erased"
    where = ["--store", str(store.root), "--corpus", "tiny"]
    assert main(["why", "lantern", "include/lantern/log.hpp", "--of", old, *where]) == 0


def test_fsck_names_what_is_here_again_until_the_withdrawal_is_taken_back(collected: Collected) -> None:
    store, part = collected.store, collected.store.read(collected.first["made"])
    whole, blob = part.file(FILES).read_bytes(), (store.root / "blobs" / collected.pins[0].revision).read_bytes()
    withdraw(store, "made/a.c", "a test")
    erase(store, ["made/a.c"], "a test")
    part.file(FILES).write_bytes(whole)
    (store.root / "blobs" / collected.pins[0].revision).write_bytes(blob)

    again, holds = fsck(store)
    assert again.startswith(f"blob {collected.pins[0].revision[:12]}: it is here again, though erased on")
    assert holds.startswith(f"file {FILES} of object {part.object_id[:12]}: it holds again what was erased on")
    erase(store, ["made/a.c"], "a test")
    assert fsck(store) == []
    restore(store, "made/a.c", "a mistake")
    assert collected.collect() == collected.first
    assert collected.contents(collected.first["made"]) == FILES_OF["made"]
    assert fsck(store) == []


def test_the_undo_of_one_withdrawal_leaves_all_others_in_force(collected: Collected) -> None:
    store, (made, other) = collected.store, collected.pins
    blobs = {pin.name: (store.root / "blobs" / pin.revision).read_bytes() for pin in (made, other)}
    parts = {name: store.read(part_id) for name, part_id in collected.first.items()}
    tables = {name: part.file(FILES).read_bytes() for name, part in parts.items()}
    names = ["made/a.c", "other/d.c"]
    withdraw_all(store, names, "a test")
    after = collected.collect()["made"]
    receipt = erase(store, names, "a test")[1]
    assert receipt.removed_by[OWN_SHA256] == receipt.removed_by[made.revision] == ("made/a.c",)
    restore(store, "other/d.c", "a mistake")

    assert collected.collect()["made"] == after
    assert collected.blobs() == {other.revision}, "the archive of what stays withdrawn is not fetched"
    for name, part in parts.items():
        part.file(FILES).write_bytes(tables[name])
        store.put_blob([blobs[name]], part.identity["revision"], "a test")
    again, holds = fsck(store, [bytes_in_archives])
    assert again.startswith(f"blob {made.revision[:12]}: it is here again, though erased on")
    assert holds.startswith(f"file {FILES} of object {collected.first['made'][:12]}: it holds again what was erased on")
    assert erase(store, ["made/a.c"], "a test")[1].blobs == (made.revision,)
    assert fsck(store, [bytes_in_archives]) == []


@pytest.mark.parametrize(("place", "num_left"), [("_log", 0), ("_replace", 2), ("remove", 1)])
def test_a_kill_leaves_what_fsck_names_and_the_next_erasure_finishes(
    collected: Collected, monkeypatch: pytest.MonkeyPatch, place: str, num_left: int
) -> None:
    withdraw(collected.store, "made/a.c", "a test")

    def killed(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(erasure_module, place, killed)
        with pytest.raises(KeyboardInterrupt):
            erase(collected.store, ["made/a.c"], "a test")
    assert len(fsck(collected.store)) == num_left
    erase(collected.store, ["made/a.c"], "a test")
    assert fsck(collected.store) == []
    assert (collected.contents(collected.first["made"])["a.c"], len(collected.blobs())) == (b"", 1)


def test_a_changed_byte_of_a_rewritten_file_and_a_lost_receipt_are_damage(collected: Collected) -> None:
    store = collected.store
    withdraw(store, "made/a.c", "a test")
    receipt_id = erase(store, ["made/a.c"], "a test")[0]
    file = store.read(collected.first["made"]).file(FILES)
    sound = file.read_bytes()

    file.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    assert len(fsck(store)) == 1
    file.write_bytes(sound)
    shutil.rmtree(store.read(receipt_id or "").path)
    assert [line.partition(": ")[0][:24] for line in fsck(store)] == [
        "receipt of what was eras",
        "record of what was erase",
    ]


@pytest.mark.parametrize("author", ["Ada Example", "ada.e@host.org"])
def test_an_author_is_withdrawn_by_digests_alone(
    collected: Collected, author: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(author + "\n"))
    code = main(["withdraw", "--author", "--erase", "--reason", "as asked", "--store", str(collected.store.root)])
    shown = capsys.readouterr()
    assert code == 0, shown.err
    assert "1 files name the author in the bytes as collected: made 1" in shown.out
    assert collected.store.active_withdrawals() == [f"sha256:{OWN_SHA256}"]
    logs = b"".join(path.read_bytes() for path in (collected.store.root / "log").iterdir())
    assert author.encode() not in logs
    assert author not in shown.out + shown.err
    assert collected.contents(collected.first["made"])["a.c"] == b""
    assert collected.contents(collected.first["made"])["LICENSE"] == FILES_OF["made"]["LICENSE"]


@pytest.mark.parametrize(
    ("author", "arguments", "message"),
    [
        ("Nobody Nowhere", [], "author from stdin: none of the 5 collected files names it"),
        ("", [], "author from stdin: it has 0 characters"),
        ("Ada Example\nGrace Example", [], "found 2 lines on stdin; expected one"),
        ("Ada Example", ["--reason", "ada example asked"], "--reason holds the author"),
        ("Ada Example", ["made/a.c"], "found SELECTOR and --author"),
        ("Ada Example", ["--undo"], "found --undo with --author"),
    ],
)
def test_an_author_who_is_nowhere_or_cannot_be_searched_is_refused(
    collected: Collected,
    author: str,
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(author + "\n"))
    assert main(["withdraw", "--author", *arguments, "--store", str(collected.store.root)]) != 0
    assert message in " ".join(capsys.readouterr().err.split())
    assert collected.store.withdrawals() == []


@pytest.mark.parametrize("damaged", [FILES, MANIFEST])
@pytest.mark.parametrize(
    ("name", "author"), [("other", "Ada Example"), ("made", "Ada Example"), ("made", "Nobody Nowhere")]
)
def test_a_damaged_source_is_named_and_the_author_withdrawn_from_the_others(
    collected: Collected,
    name: str,
    author: str,
    damaged: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = collected.store.read(collected.first[name]).path / damaged
    place.write_bytes(place.read_bytes() + b"x")
    monkeypatch.setattr("sys.stdin", io.StringIO(author + "\n"))

    assert main(["withdraw", "--author", "--store", str(collected.store.root)]) == 1
    shown = capsys.readouterr()
    words = " ".join(shown.err.split())
    is_found = author == "Ada Example"  # by the archive, where its source is damaged
    assert f"not searched{', so that this answer is incomplete' if is_found else ''}: " in words
    assert ("name the author too: " in shown.out) == (is_found and name == "made")
    assert collected.first[name][:12] in words
    assert collected.store.active_withdrawals() == ([f"sha256:{OWN_SHA256}"] if name == "other" else [])
    if name == "made":
        (holder,) = withdraw(collected.store, f"sha256:{OWN_SHA256}", "a withdrawal waits for no repair")
        assert (holder.object_id, holder.num_documents) == (collected.first[name], None)


def test_a_file_that_a_build_needs_is_found_by_name_by_digest_and_by_author(tmp_path: Path) -> None:
    authors = b"Ada Example\n"
    files = {"e.c": SHARED, "AUTHORS": authors, "compile_commands.json": b"[]"}
    built = Collected(tmp_path / "built", {"built": files}, build=BuildBlock(database="compile_commands.json"))
    found = author_files(built.store, "Ada Example")
    assert (found.digests, found.by_source) == ((text_sha256(authors.decode()),), {"built": 1})

    names = ["built/AUTHORS", f"sha256:{found.digests[0]}"]
    withdraw_all(built.store, names, "a test")
    erase(built.store, names, "a test")
    after = built.store.read(built.collect()["built"])
    left = {row["path"]: row["content"] for row in built.store.read(built.first["built"]).table(TREE).to_pylist()}
    assert left == {"AUTHORS": b"", "compile_commands.json": b"[]"}
    assert after.table(TREE)["path"].to_pylist() == ["compile_commands.json"]
