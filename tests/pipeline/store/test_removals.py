"""The marks of a killed garbage collection: what they name is removed by whoever holds the store next, with all that names it."""

from pipeline.store.fsck import fsck
from pipeline.store.store import Store
from tests.support.stored_text import commit_text


def test_what_is_marked_goes_with_its_verdicts_and_then_the_mark(store: Store) -> None:
    kept, gone = commit_text(store, b"1"), commit_text(store, b"2")
    store.put_verdicts(gone, [])
    assert [path.name for path in store.records_of({gone})] == [f"{gone}.json"]

    (store.root / "removing").write_text("not as written")
    assert len(list(store.bad_mark())) == 1
    assert not store.is_removing()
    store.remove_objects([gone])

    assert not store.is_removing()
    assert store.locate(gone) is None
    assert store.read(kept).object_id == kept
    assert fsck(store) == []
