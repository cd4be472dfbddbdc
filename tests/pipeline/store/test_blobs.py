"""A blob has the bytes that its name says, or is missing."""

import hashlib

import pytest

from pipeline.core.errors import DamagedError, DigestError, MissingError
from pipeline.store.fsck import fsck
from pipeline.store.store import Store


def test_a_blob_whose_bytes_changed_is_missing_and_is_downloaded_again(store: Store) -> None:
    sha256 = hashlib.sha256(b"right").hexdigest()
    path = store.put_blob([b"right"], sha256, "one")
    path.write_bytes(b"riGht")
    assert "bytes changed" in fsck(store)[0]
    assert store.blob(sha256) is None

    assert store.put_blob([b"right"], sha256, "one").read_bytes() == b"right"
    assert store.blob(sha256) == path
    assert fsck(store) == []


def test_wrong_bytes_are_kept_aside_and_both_digests_named(store: Store) -> None:
    pinned, found = hashlib.sha256(b"right").hexdigest(), hashlib.sha256(b"wrong").hexdigest()

    with pytest.raises(DigestError) as error:
        store.put_blob([b"wr", b"ong"], pinned, "source one")
    assert pinned in str(error.value)
    assert found in str(error.value)
    assert store.blob(pinned) is None
    assert (store.root / "rejected" / found).read_bytes() == b"wrong"


def test_a_download_that_breaks_leaves_no_blob(store: Store) -> None:
    def chunks():
        yield b"half"
        raise OSError("connection reset")

    with pytest.raises(OSError, match="connection reset"):
        store.put_blob(chunks(), "0" * 64, "source one")
    assert not list((store.root / "tmp" / ".blobs").iterdir())


def test_a_named_blob_is_found_by_its_name_until_it_is_gone(store: Store) -> None:
    first, second = (hashlib.sha256(content).hexdigest() for content in (b"first", b"second"))
    assert store.named_blob("git/one") is None
    place = store.put_blob([b"first"], first, "a test")
    store.name_blob("git/one", first)
    assert store.named_blob("git/one") == place
    store.name_blob("git/one", second)
    assert store.named_blob("git/one") is None
    assert store.put_blob([b"second"], second, "a test") == store.named_blob("git/one")
    (store.root / "names" / "git" / "one").write_bytes(b"damaged")
    assert store.named_blob("git/one") is None
    store.name_blob("git/one", second)
    assert fsck(store) == []


def test_a_blob_that_is_gone_without_a_line_in_the_log_is_named(store: Store) -> None:
    sha256 = hashlib.sha256(b"right").hexdigest()
    path = store.put_blob([b"right"], sha256, "one")
    assert fsck(store) == []
    path.unlink()
    (problem,) = fsck(store)
    assert sha256[:12] in problem


def test_blobs_are_verified_by_digest_and_name_and_what_was_removed_or_never_here_is_none(store: Store) -> None:
    first, second = (hashlib.sha256(content).hexdigest() for content in (b"first", b"second"))
    path = store.put_blob([b"first"], first, "one")
    store.name_blob("git/one", first)
    assert store.verify_blobs([first, "git/one", second, "git/two"]) == {first, "git/one"}

    path.write_bytes(b"First")
    for place in (first, "git/one"):
        with pytest.raises(DamagedError, match="its bytes changed"):
            store.verify_blobs([second, place])
    path.unlink()
    with pytest.raises(MissingError, match=first[:12]):
        store.verify_blobs(["git/one"])
    store.log_blob(first, is_removed=True)
    assert store.verify_blobs([first, "git/one"]) == set()

    (store.root / "names" / "git" / "one").write_bytes(b"")
    with pytest.raises(DamagedError, match="name git/one of a blob"):
        store.verify_blobs(["git/one"])
    (store.root / "names" / "git" / "one").unlink()
    with pytest.raises(MissingError, match="name git/one of a blob"):
        store.verify_blobs(["git/one"])
