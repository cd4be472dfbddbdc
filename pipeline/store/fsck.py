"""Check of a whole store: every object, ref, record and blob."""

from collections.abc import Iterator

from pipeline.core.digests import file_sha256
from pipeline.core.errors import ParamsError, StoreError
from pipeline.store.log import PROMOTIONS, WITHDRAWALS
from pipeline.store.objects import MANIFEST, StoredObject, read_manifest
from pipeline.store.store import Store
from pipeline.store.store_layout import visible


def fsck(store: Store) -> list[str]:
    """Return all damage in the store, one line each: what is damaged or missing, and which objects or refs need it."""
    damaged: dict[str, str] = {}
    needed_by: dict[str, list[str]] = {}
    for path in sorted(path.parent for path in store.root.glob(f"objects/*/*/*/{MANIFEST}")):
        try:
            manifest = read_manifest(path)
            for input_id in set(manifest.inputs.values()):
                needed_by.setdefault(input_id, []).append(f"{manifest.kind} {path.name[:12]}")
            StoredObject(path, manifest).verify()
        except StoreError as error:
            damaged[path.name] = str(error)
    others = list(_bad_refs(store, needed_by)) + list(_bad_records(store)) + list(_bad_blobs(store))
    damaged |= {name: f"object {name[:12]}: it is missing." for name in needed_by if store.locate(name) is None}
    return [
        f"{text} Needed by {', '.join(needed_by.get(name, ['nothing']))}." for name, text in sorted(damaged.items())
    ] + others


def _bad_refs(store: Store, needed_by: dict[str, list[str]]) -> Iterator[str]:
    """Iterate over refs that do not hold an id; enter the others into `needed_by`."""
    for path in visible(store.root.glob("refs/**/*")):
        place = path.relative_to(store.root / "refs")
        if path.is_dir():
            continue
        try:
            object_id = store.ref(place.parent.as_posix(), place.name)
        except (StoreError, ParamsError) as error:
            yield str(error)
            continue
        needed_by.setdefault(object_id or "", []).append(f"ref {place}")


def _bad_records(store: Store) -> Iterator[str]:
    """Iterate over verdicts and logs that cannot be read."""
    for path in visible(store.root.glob("verdicts/*.json")):
        try:
            store.verdicts(path.stem)
        except StoreError as error:
            yield str(error)
    for log, required in ((PROMOTIONS, "corpus"), (WITHDRAWALS, "selector")):
        try:
            list(store.entries(log, required))
        except StoreError as error:
            yield str(error)


def _bad_blobs(store: Store) -> Iterator[str]:
    for path in visible(store.root.glob("blobs/*")):
        if not path.is_file():
            yield f"blob {path.name[:12]}: it is not a file. Remove it: the next build downloads it again."
        elif file_sha256(path) != path.name:
            yield f"blob {path.name[:12]}: its bytes changed. The next build that needs it downloads it again."
