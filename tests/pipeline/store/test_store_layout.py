"""A name of a corpus, a run or a ref leads to one place in the store, or is refused; so is a store of another version."""

import hashlib
from pathlib import Path

import pytest

from pipeline.core.command_line import OutputPath
from pipeline.core.errors import DamagedError, FormatError, LockedError, ParamsError
from pipeline.storage.checked_text import checked_line
from pipeline.store.fsck import fsck
from pipeline.store.store import Store
from pipeline.store.store_layout import refuse_bad_corpus, refuse_outputs_in_store
from tests.support.stored_text import commit_text

BAD = [
    "",
    ".",
    "..",
    "../x",
    "a/b",
    "/etc/x",
    "a\nb",
    "a\0b",
    "a b",
    "ü",
    "x" * 101,
    ".refs",
    "-x",
    "runs",
    "runs/",
    "runs/../x",
    "runs/a/b",
]


@pytest.mark.parametrize(
    "name", ["tiny", "quick-2", "a.b_c", "Runs", "refs", "blobs", "x" * 100, "runs/tiny-0a1b", "runs/refs"]
)
def test_names_and_runs_are_accepted(name: str) -> None:
    refuse_bad_corpus(name)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_name_is_refused_before_anything_is_touched(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path / "store")
    for use in (
        lambda: store.ref(name, "live"),
        lambda: store.refs(name),
        lambda: store.writer(name, "a test").__enter__(),
    ):
        with pytest.raises(ParamsError, match="it is"):
            use()
    assert list(tmp_path.iterdir()) == []


def test_an_absolute_name_does_not_empty_the_file_of_that_name(store: Store, tmp_path: Path) -> None:
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("all of it")
    with pytest.raises(ParamsError, match=r"thesis\.txt"), store.writer(str(thesis), "a test"):
        pass
    assert thesis.read_text() == "all of it"


@pytest.mark.parametrize("corpus", ["refs", "blobs", "objects"])
def test_no_corpus_collides_with_the_folders_of_the_store(store: Store, corpus: str) -> None:
    arriving = store.partial_blob("0" * 64)
    arriving.write_bytes(b"half of it")
    with store.writer(corpus, "a test") as scratch:
        (scratch / "made").mkdir()
        object_id = store.commit(scratch / "made", "test/object", {}, {})
        try:
            store.move_ref(corpus, "live", None, object_id, "a test")
        except LockedError:
            pytest.fail("a corpus waits for itself")
    assert arriving.read_bytes() == b"half of it"
    assert store.ref(corpus, "live") == object_id


@pytest.mark.parametrize("name", ["../../outside", "/etc/passwd", "a\0b", ""])
def test_a_ref_never_reads_outside_its_corpus(store: Store, name: str) -> None:
    (store.root / "refs" / "tiny").mkdir(parents=True)
    (store.root / "outside").write_text("0" * 64)

    assert store.ref("tiny", name) is None


def test_a_store_of_another_version_is_refused_and_one_without_objects_is_not(tmp_path: Path) -> None:
    (tmp_path / "old" / "objects").mkdir(parents=True)
    (tmp_path / "new" / "blobs").mkdir(parents=True)

    with pytest.raises(FormatError, match=r"it has format 1; expected 3.* Move it aside, move its"):
        Store(tmp_path / "old")
    commit_text(Store(tmp_path / "new"), b"text")
    assert (tmp_path / "new" / "format").read_text() == checked_line("format", "3")
    for other in ("2\n", "4 and more\n"):
        (tmp_path / "new" / "format").write_text(other)
        with pytest.raises(FormatError, match=f"it has format {other[0]}"):
            Store(tmp_path / "new")


@pytest.mark.parametrize("content", [b"", b"3", b"3\n", b"\xff", checked_line("format", "3").encode() + b" "])
def test_a_format_that_is_not_as_written_is_refused_with_the_line_to_write(store: Store, content: bytes) -> None:
    commit_text(store, b"text")
    (store.root / "format").write_bytes(content)

    with pytest.raises(DamagedError, match=checked_line("format", "3").strip()):
        Store(store.root)
    (problem,) = fsck(store)
    assert "file format" in problem


def test_what_an_earlier_version_wrote_is_taken_over_by_a_new_store(tmp_path: Path) -> None:
    root, sha256 = tmp_path / "new", hashlib.sha256(b"archive").hexdigest()
    for place, content in {
        f"blobs/{sha256}": b"archive",
        "names/git/one": f"{sha256}\n".encode(),
        "log/withdrawals.jsonl": b'{"is_undone":false,"reason":"no","selector":"zlib","when":"2026"}\n',
    }.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_bytes(content)
    store = Store(root)
    assert [entry["selector"] for entry in store.withdrawals()] == ["zlib"]

    with store.writer("mine", "a test"):
        assert store.named_blob("git/one") == root / "blobs" / sha256
    store.log_withdrawal("zlib", "again", is_undone=True)

    assert [entry["is_undone"] for entry in store.withdrawals()] == [False, True]
    assert fsck(store) == []


@pytest.mark.parametrize("folder", ["objects/x", "refs/mine/live", "log", "format", "units", "runs"])
def test_no_output_is_written_among_the_own_files_of_a_store(tmp_path: Path, folder: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "store")
    for root, place in ((tmp_path / "store", "store"), (tmp_path / "link", "store"), (tmp_path / "store", "link")):
        with pytest.raises(ParamsError, match=r"it is among the own files of the store .*; expected another place"):
            refuse_outputs_in_store(root, [None, OutputPath(tmp_path / place / folder)])
    refuse_outputs_in_store(
        tmp_path / "store", [OutputPath(tmp_path / "store" / "reports" / folder), OutputPath(folder)]
    )
    refuse_outputs_in_store(tmp_path / "store", [tmp_path / "store" / folder])  # which is read
    Store(tmp_path / "other").prepare()
    with pytest.raises(ParamsError, match=r"it is among the own files of the store .*other;"):
        refuse_outputs_in_store(tmp_path / "store", [OutputPath(tmp_path / "other" / folder)])


def test_every_file_that_a_store_makes_is_its_own(tiny_store: Store) -> None:
    found = {path.name for path in tiny_store.root.iterdir()} - {"reports"}
    for name in sorted(found):
        with pytest.raises(ParamsError):
            refuse_outputs_in_store(tiny_store.root, [OutputPath(tiny_store.root / name)])
