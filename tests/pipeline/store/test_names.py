"""A name of a corpus, a run or a ref leads to one place in the store, or is refused."""

from pathlib import Path

import pytest

from pipeline.core.errors import LockedError, MissingError, ParamsError
from pipeline.store.names import refuse_bad_corpus
from pipeline.store.store import Store

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
def test_a_name_that_is_none_is_refused_before_anything_is_touched(tmp_path: Path, name: str) -> None:
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
def test_no_corpus_meets_what_the_store_keeps_for_itself(store: Store, corpus: str) -> None:
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


def test_the_first_digits_of_an_id_are_answered_with_the_whole(store: Store) -> None:
    folder = store.root / "tmp" / "made"
    folder.mkdir(parents=True)
    object_id = store.commit(folder, "test/object", {}, {})

    with pytest.raises(MissingError, match=f"Did you mean {object_id}"):
        store.read(object_id[:12])
    for odd in ("", "../x", "?" * 12, "0" * 63, object_id.upper() + "A"):
        with pytest.raises(MissingError, match="64 hex digits"):
            store.read(odd)
