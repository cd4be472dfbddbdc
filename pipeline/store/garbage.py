"""Garbage collection: objects that no ref reaches, with their keys and verdicts, and leftovers of killed writers.

A ref reaches what it names and all inputs of that: a live snapshot keeps its rows, a checkpoint keeps its snapshot. No other
process may write meanwhile, since a build's newest objects have no ref yet.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.core.durable import remove
from pipeline.core.errors import MissingError
from pipeline.formats.snapshot_json import SNAPSHOT_KIND
from pipeline.store.checked_text import read_value, text_of
from pipeline.store.objects import MANIFEST, Manifest, read_manifest
from pipeline.store.store import Store
from pipeline.store.store_layout import visible


@dataclass(frozen=True)
class Reclaimed:
    """Objects and archives that were removed, or would be removed without `is_rehearsal`."""

    num_kept: int
    object_ids: tuple[str, ...]
    blobs: tuple[str, ...]
    num_leftovers: int
    num_bytes: int


def reclaim(store: Store, with_blobs: bool = False, is_rehearsal: bool = False) -> Reclaimed:
    """Remove every object that no ref reaches, and leftovers of killed writers; with `with_blobs` also unused archives.

    Raises LockedError while a build or a training run holds the store, DamagedError for a damaged or missing ref, or proof of a
    snapshot: what it named would be removed.
    """
    if not store.root.is_dir():
        raise MissingError(f"store {store.root}", "there is no such folder", "", "Correct --store, or build first.")
    with store.in_use(alone=True):
        folders = {path.parent.name: path.parent for path in sorted(store.root.glob(f"objects/*/*/*/{MANIFEST}"))}
        needed = _needed(store)
        gone = sorted(folders.keys() - needed.keys())
        blobs = sorted(_blobs_without_source(store, needed.values())) if with_blobs else []
        leftovers = sorted(_leftovers(store, gone))
        sizes = [folders[name] for name in gone] + [store.root / "blobs" / name for name in blobs] + leftovers
        num_bytes = sum(_num_bytes(path) for path in sizes)
        if not is_rehearsal:
            _remove(store, gone, blobs, leftovers)
    return Reclaimed(len(folders) - len(gone), tuple(gone), tuple(blobs), len(leftovers), num_bytes)


def forget(store: Store, ref: str, reason: str) -> int:
    """Remove the refs of a corpus, or of a run as `runs/NAME`, and return how many there were.

    Raises LockedError while it is being written, MissingError if it has no refs.
    """
    refs = store.refs(ref)
    if not refs:
        raise MissingError(f"refs of {ref}", "it has none", "a corpus, or runs/NAME", "`show` lists refs.")
    with store.writer(ref, f"forgetting {ref}"):
        for name in refs:
            store.remove_ref(ref, name, reason)
    return len(refs)


def _needed(store: Store) -> dict[str, Manifest | None]:
    """Return every id that a ref reaches, with its manifest: what it names, the inputs of that, and the proofs of snapshots."""
    for error in store.bad_refs():
        raise error
    needed: dict[str, Manifest | None] = {}
    waiting = sorted(store.named_by())
    while waiting:
        name = waiting.pop()
        path = store.locate(name) if name not in needed else None
        if path is None:
            needed.setdefault(name)
            continue
        needed[name] = manifest = read_manifest(path)
        waiting.extend(manifest.inputs.values())
        if manifest.kind == SNAPSHOT_KIND and (verified_by := store.verified_by(name)) is not None:
            waiting.append(verified_by)
    return needed


def _blobs_without_source(store: Store, needed: Iterable[Manifest | None]) -> Iterator[str]:
    """Iterate over archives that no reachable object was read from and that have no name."""
    named = [path for path in visible(store.root.glob("names/**/*")) if path.is_file()]
    places = [path.relative_to(store.root).as_posix() for path in named]
    used = {read_value(store.root, place, place, "Remove it: it is fetched again.") or "" for place in places}
    used |= {str(manifest.identity.get("revision", "")) for manifest in needed if manifest is not None}
    yield from (path.name for path in visible(store.root.glob("blobs/*")) if path.name not in used)


def _leftovers(store: Store, gone: list[str]) -> Iterator[Path]:
    """Iterate over temporary files of killed writers, folders without a manifest, downloads, and keys of removed objects."""
    for folder in ("refs", "keys", "verdicts", "verified", "names", "blobs", "rejected", "log"):
        yield from (path for path in (store.root / folder).glob("**/.*") if path.is_file())
    yield from (store.root / "tmp").glob("*")
    yield from (path for path in store.root.glob("objects/*/*/*") if not (path / MANIFEST).exists())
    records = [place for name in gone for place in (f"verdicts/{name}.json", f"verified/{name}")]
    yield from (store.root / place for place in records if (store.root / place).exists())
    removed = set(gone)
    pointers = visible([*store.root.glob("keys/*"), *store.root.glob("verified/*")])
    yield from (path for path in pointers if path.name not in removed and _value(path) in removed)


def _value(path: Path) -> str:
    return (text_of(path) or "").partition(" ")[0]


def _remove(store: Store, gone: list[str], blobs: list[str], leftovers: list[Path]) -> None:
    for path in leftovers:
        remove(path)
    for name in blobs:
        store.log_blob(name, is_removed=True)
        (store.root / "blobs" / name).unlink()
    for name in gone:
        store.discard(name)


def _num_bytes(path: Path) -> int:
    """Return the bytes freed with a file or folder. Bytes that other objects share by a hard link are not freed."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return sum(status.st_size for status in (file.lstat() for file in files) if status.st_nlink == 1)
