"""Garbage collection: objects that nothing keeps, with their keys and verdicts, and leftovers of killed writers.

What is kept, `pipeline.store.kept` says, and all inputs of that: a live snapshot keeps its rows, a checkpoint keeps its snapshot.
No other process may read or write meanwhile, since a build's newest objects have no ref yet. All objects are marked, in one file,
before the first goes, those that need others first: what a kill leaves is removed by whoever uses the store next.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

from pipeline.core.errors import MissingError, StoreError
from pipeline.formats.snapshot_json import SNAPSHOT_KIND
from pipeline.storage.checked_text import read_value
from pipeline.store.kept import kept_for
from pipeline.store.named_objects import showing
from pipeline.store.objects import Manifest, read_manifest
from pipeline.store.store import Store
from pipeline.store.store_layout import MANIFEST, RUNS, is_name, refuse_no_store, visible

REMOVAL_WAIT_SECONDS = 10.0
"""Time to wait until those who read or write the store have ended."""


@dataclass(frozen=True)
class KeptObject:
    """An object that stays, what it is kept for, and how many objects are kept with it that nothing before it keeps."""

    object_id: str
    kind: str
    kept_for: tuple[str, ...]
    num_objects: int


@dataclass(frozen=True)
class Reclaimed:
    """Objects and archives that were removed, or would be removed without `is_rehearsal`, and what is kept, and for what."""

    num_kept: int
    object_ids: tuple[str, ...]
    blobs: tuple[str, ...]
    num_leftovers: int
    num_bytes: int
    kept: tuple[KeptObject, ...]
    inputs: Mapping[str, str]
    """Every other object that is kept -> the first of `kept` that was made from it."""


def reclaim(
    store: Store,
    holds_withdrawn: Callable[[str], bool],
    with_blobs: bool = False,
    is_rehearsal: bool = False,
    forgotten: str | None = None,
) -> Reclaimed:
    """Remove every object that nothing keeps, and leftovers of killed writers.

    With `with_blobs` also unused archives, names and refused bytes. `holds_withdrawn` says of a snapshot whether one can no
    longer roll back to it. A rehearsal may leave out the refs of a corpus or run, `forgotten`. Raises LockedError while another
    process reads or writes the store, DamagedError for a damaged or missing ref, or proof of a snapshot: what it named would be
    removed.
    """
    refuse_no_store(store.root)
    with store.in_use(alone=True, wait_seconds=REMOVAL_WAIT_SECONDS):
        store.storage.fetch_all("objects")
        folders = {path.parent.name: path.parent for path in sorted(store.root.glob(f"objects/*/*/*/{MANIFEST}"))}
        roots = kept_for(store, holds_withdrawn, forgotten)
        needed = _needed(store, roots)
        gone = _dependents_first({name: path for name, path in folders.items() if name not in needed})
        names, blobs = _without_source(store, needed.values()) if with_blobs else ({}, [])
        store.storage.fetch_all("verdicts")
        judged = {path.stem for path in visible(store.root.glob("verdicts/*.json"))}
        records = store.records_of({*gone, *(judged - folders.keys() - needed.keys())})
        named = [store.root / "names" / name for name in names]
        refused = visible(store.root.glob("rejected/*")) if with_blobs else []
        leftovers = sorted({*_leftovers(store), *records, *named, *refused})
        sizes = [folders[name] for name in gone] + [store.root / "blobs" / name for name in blobs] + leftovers
        num_bytes = sum(_num_bytes(path) for path in sizes)
        if not is_rehearsal:
            for name, sha256 in names.items():
                store.log_blob(sha256, name, is_removed=True)
            _remove(store, gone, blobs, leftovers)
    kept, inputs = _listed(roots, {name: found for name, found in needed.items() if name in folders})
    num_kept = len(folders) - len(gone)
    return Reclaimed(num_kept, tuple(gone), tuple(blobs), len(leftovers), num_bytes, kept, inputs)


def refs_to_forget(store: Store, ref: str) -> dict[str, str]:
    """Return the refs of a corpus, or of a run as `runs/NAME`. Raises MissingError if it has none."""
    refs = store.refs(ref) if is_name(ref.removeprefix(f"{RUNS}/")) else {}
    if not refs:
        raise MissingError(
            f"refs of {ref}",
            "it has none",
            "a corpus, or runs/NAME: all of its refs go",
            f"`{showing(store)}` lists refs.",
        )
    return refs


def forget(store: Store, ref: str, reason: str) -> int:
    """Remove the refs of a corpus, or of a run as `runs/NAME`, and return how many there were.

    Raises LockedError while it is being written, MissingError if it has no refs.
    """
    refs = refs_to_forget(store, ref)
    with store.writer(ref, f"forgetting {ref}"):
        for name in refs:
            store.remove_ref(ref, name, reason)
    return len(refs)


@dataclass(frozen=True)
class _Needed:
    """An object that is kept, or is missing if it has no manifest; and the first of those with a reason that needs it."""

    manifest: Manifest | None
    needed_by: str


def _needed(store: Store, roots: Iterable[str]) -> dict[str, _Needed]:
    """Return every id that is reached: the roots, the inputs of each, and the proofs of snapshots.

    Of what no ref names, what is damaged cannot be used, and stops nothing.
    """
    refs, needed, proofs = store.named_by(), dict[str, _Needed](), store.live_proofs()
    for root in sorted(roots, key=lambda name: (name not in refs, name)):
        try:
            _reach(store, root, needed, proofs)
        except StoreError:
            if root in refs:
                raise
            needed.setdefault(root, _Needed(None, root))
    return needed


def _reach(store: Store, root: str, needed: dict[str, _Needed], proofs: Mapping[str, list[str]]) -> None:
    waiting = [root]
    while waiting:
        name = waiting.pop()
        path = store.locate(name) if name not in needed else None
        if path is None:
            needed.setdefault(name, _Needed(None, root))
            continue
        manifest = read_manifest(path)
        needed[name] = _Needed(manifest, root)
        waiting.extend(manifest.inputs.values())
        if manifest.kind == SNAPSHOT_KIND:
            waiting.extend(filter(None, [store.verified_by(name)]))
            waiting.extend(proof for proof in proofs.get(name, ()) if store.locate(proof) is not None)


def _listed(
    roots: Mapping[str, list[str]], needed: Mapping[str, _Needed]
) -> tuple[tuple[KeptObject, ...], dict[str, str]]:
    """Return the objects that are kept for a reason, and those that are kept as inputs of them."""
    inputs = {name: found.needed_by for name, found in sorted(needed.items()) if name not in roots}
    numbers = Counter(inputs.values())
    kinds = {name: found.manifest.kind for name, found in needed.items() if found.manifest is not None}
    kept = (
        KeptObject(name, kinds[name], tuple(roots[name]), 1 + numbers[name]) for name in sorted(kinds.keys() & roots)
    )
    return tuple(sorted(kept, key=lambda each: (each.kept_for, each.object_id))), inputs


def _dependents_first(gone: Mapping[str, Path]) -> list[str]:
    """Sort objects so that none comes before one that was made from it."""
    inputs: dict[str, list[str]] = {}
    for name, path in sorted(gone.items()):
        try:
            inputs[name] = sorted(each for each in read_manifest(path).inputs.values() if each in gone)
        except StoreError:  # damaged, and it goes
            inputs[name] = []
    return [*TopologicalSorter(inputs).static_order()][::-1]


def _without_source(store: Store, needed: Iterable[_Needed]) -> tuple[dict[str, str], list[str]]:
    """Return the names of blobs that no reachable object uses, each with its blob, and the blobs that none was read from.

    A name ends in what the identity of its users says, such as the commit that a source was read at, and a suffix.
    """
    manifests = (each.manifest for each in needed if each.manifest is not None)
    used = {value for manifest in manifests for value in manifest.identity.values() if isinstance(value, str)}
    store.storage.fetch_all("names")
    paths = sorted(path for path in visible(store.root.glob("names/**/*")) if path.is_file())
    unused, kept = dict[str, str](), set[str]()
    for name in (path.relative_to(store.root / "names").as_posix() for path in paths):
        place = f"names/{name}"
        sha256 = read_value(store.root, place, place, "Remove it: it is fetched again.") or ""
        if name.rpartition("/")[2].partition(".")[0] in used:
            kept.add(sha256)
        else:
            unused[name] = sha256
    return unused, sorted(set(store.storage.names("blobs")) - kept - used)


def _leftovers(store: Store) -> Iterator[Path]:
    """Iterate over temporary files of killed writers, folders without a manifest, and downloads."""
    for folder in ("refs", "keys", "verdicts", "verified", "erased", "names", "blobs", "rejected", "log"):
        yield from (path for path in (store.root / folder).glob("**/.*") if path.is_file())
    yield from (path for path in store.root.glob(".*") if path.is_file())
    yield from (store.root / "tmp").glob("*")
    yield from (path for path in store.root.glob("objects/*/*/*") if not (path / MANIFEST).exists())


def _remove(store: Store, gone: list[str], blobs: list[str], leftovers: list[Path]) -> None:
    store.remove_objects(gone)
    store.storage.remove_leftovers()
    for path in leftovers:
        store.storage.remove(path.relative_to(store.root).as_posix())
    for name in blobs:
        store.log_blob(name, is_removed=True)
        store.storage.remove(f"blobs/{name}")


def _num_bytes(path: Path) -> int:
    """Return the bytes freed with a file or folder. Bytes that other objects share by a hard link are not freed."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return sum(status.st_size for status in (file.lstat() for file in files) if status.st_nlink == 1)
