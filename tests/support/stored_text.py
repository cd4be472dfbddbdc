"""An object of one text file, committed to a store."""

from pipeline.store.store import Store


def commit_text(store: Store, content: bytes, kind: str = "test/object", **inputs: str) -> str:
    store.root.mkdir(parents=True, exist_ok=True)
    folder = store.root / "tmp" / "made"
    folder.mkdir(parents=True)
    (folder / "content.txt").write_bytes(content)
    return store.commit(folder, kind, {"stage": "test"}, inputs)
