"""Objects of a store: their manifests, reading that verifies every byte, writing, and the keys of work done before."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.core.digests import file_sha256
from pipeline.core.durable import hidden_sibling, make_folder, move_in, remove, sync, write_synced
from pipeline.core.errors import DamagedError, FormatError, MissingError, StoreError
from pipeline.core.params import canonical_json, digest, parse_json
from pipeline.formats.tables import SHARD_LABEL, TABLE_SUFFIXES, count_rows, read_table, repeated_text
from pipeline.storage.checked_text import read_value, refuse_link, write_value
from pipeline.storage.open_storage import storage_of
from pipeline.storage.storage import DAMAGE_REMEDY
from pipeline.store.locks import OBJECTS_LOCK
from pipeline.store.removals import ERASED, Removals
from pipeline.store.store_layout import MANIFEST, is_id, missing_object, subfolders, visible

if TYPE_CHECKING:
    import pyarrow as pa

IDENTITY_VERSION = 2
"""Version of what an id is the hash of: raising it moves every id. `STORE_FORMAT` is the version of the layout on disk."""
_NUM_LEVELS = 5
"""Parts of the path of a manifest below the root of a store: objects, stage, kind, id and name."""
REPORT = "report.json"
PART_LABELS = ("part/", "evidence/")
"""The beginnings of the labels under which a stage names its parts. It is stored after the keys of all of them."""
_KEY_REMEDY = "It is ignored: the next build that needs this work does it again."


@dataclass(frozen=True)
class FileEntry:
    """One file of an object. `num_rows` is None for a file that is not a table."""

    name: str
    sha256: str
    num_bytes: int
    num_rows: int | None = None


@dataclass(frozen=True)
class Manifest:
    """The files of an object and what it was made from.

    `identity` holds everything that its bytes depend on: no clock, host, path or verdict.
    """

    kind: str
    identity: Mapping[str, Any]
    inputs: Mapping[str, str]
    files: tuple[FileEntry, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the manifest as it is hashed and stored."""
        return vars(self) | {"files": [vars(entry) for entry in self.files], "identity_version": IDENTITY_VERSION}

    @property
    def object_id(self) -> str:
        return digest(self.as_json())

    @property
    def key(self) -> str:
        """The key of the work that made the object, if it was made by a part function."""
        return key_of(self.kind, self.identity, self.inputs)


class StoredObject:
    """A reader of one object. Each file is verified against the manifest the first time it is read."""

    def __init__(
        self,
        path: Path,
        manifest: Manifest,
        sha256_of: Callable[[Path], str] | None = None,
        revision: str | None = None,
    ) -> None:
        """Open an object. `sha256_of` reads a file; without it the storage brings the file, and may know it.

        `revision` is that of the source that a shard is read as part of: its own rows have none, so that they are the same in
        the next one.
        """
        self.path = path
        self.manifest = manifest
        self._sha256_of = sha256_of
        self._revision = revision
        self._verified: set[str] = set()

    @property
    def object_id(self) -> str:
        return self.path.name

    @property
    def kind(self) -> str:
        return self.manifest.kind

    @property
    def identity(self) -> Mapping[str, Any]:
        return self.manifest.identity

    @property
    def inputs(self) -> Mapping[str, str]:
        return self.manifest.inputs

    @cached_property
    def shards(self) -> "tuple[StoredObject, ...]":
        """The objects that a joined one lists, in order; of any other itself alone."""
        ids = shard_ids(self.manifest.inputs)
        for object_id in ids:
            storage_of(_root_of(self.path)).fetch_object(object_id)
        paths = [self.path.parent / object_id for object_id in ids]
        revision = self.manifest.identity.get("revision")
        return tuple(StoredObject(path, read_manifest(path), self._sha256_of, revision) for path in paths) or (self,)

    def table(self, name: str, columns: Sequence[str] | None = None) -> "pa.Table":
        """Read the table `name` in stored order. Raises MissingError if it is missing, DamagedError if its bytes changed."""
        table = read_table(self.paths(name), columns)
        return self.with_revision(table)

    def with_revision(self, table: "pa.Table") -> "pa.Table":
        """Return rows of the object with the revision of its source, where rows of shards have none."""
        revision = self.manifest.identity.get("revision") if self.is_joined else self._revision
        at = table.schema.get_field_index("revision")
        if revision is None or at < 0:
            return table
        return table.set_column(
            at, table.schema.field(at), repeated_text(revision, table.num_rows).cast(table.schema.field(at).type)
        )

    def paths(self, name: str) -> list[Path]:
        """Return the verified files of the table `name`, in order; of a joined object those of its shards."""
        files = [(shard, each) for shard in self.shards for each in shard._files_of(name)]
        storage_of(_root_of(self.path)).bring_all(
            {shard._place(entry.name): entry.num_bytes for shard, entry in self.entries(name)}
        )
        return [shard.file(each) for shard, each in files]

    def entries(self, name: str) -> "list[tuple[StoredObject, FileEntry]]":
        """Return the files of the table `name` as manifests name them, in order, each with its object."""
        return [
            (shard, entry) for shard in self.shards for each in shard._files_of(name) for entry in shard._entries(each)
        ]

    def has(self, name: str) -> bool:
        """Return whether the object, or one of the shards that it lists, has a file of that name."""
        return any(shard._entries(name) for shard in self.shards)

    @property
    def is_joined(self) -> bool:
        """True where it lists shards and holds no table of its own."""
        return bool(shard_ids(self.manifest.inputs))

    def file(self, name: str) -> Path:
        """Return the verified path of one file. Raises MissingError, DamagedError."""
        entry = next(iter(self._entries(name)), None)
        if entry is None:
            names = ", ".join(entry.name for entry in self.manifest.files)
            raise MissingError(
                f"object {self.object_id[:12]} ({self.manifest.kind})", f"no file {name}", f"one of {names}"
            )
        if name not in self._verified or not (self.path / name).is_file():
            _verify_file(self.path / name, entry, self._sha256_of)
            self._verified.add(name)
        return self.path / name

    def fetched(self, name: str) -> Path:
        """Return the path of one file, which is here then, and is not verified."""
        storage_of(_root_of(self.path)).bring(self._place(name))
        return self.path / name

    def json(self, name: str) -> Any:
        """Parse a JSON file of the object. Raises DamagedError for another file, whose digest fits."""
        try:
            return parse_json(self.file(name).read_bytes())
        except ValueError as error:
            found = f"its {name} is not JSON ({error})"
            raise DamagedError(f"object {self.object_id[:12]}", found, "JSON", DAMAGE_REMEDY) from error

    def verify(self) -> None:
        """Raise DamagedError unless every file has the bytes that the manifest names."""
        for entry in self.manifest.files:
            self.file(entry.name)

    def refuse_foreign_files(self) -> None:
        """Raise DamagedError for a file in the object's folder that the manifest does not name."""
        named = {MANIFEST, *(entry.name for entry in self.manifest.files)}
        root = _root_of(self.path)
        names = storage_of(root).all_names(self.path.relative_to(root).as_posix())
        foreign = [name for name in names if name not in named]
        if foreign:
            subject, found = f"object {self.object_id[:12]}", f"it has the files {', '.join(foreign)}"
            raise DamagedError(subject, found, "the files that its manifest names", "Remove them.")

    def _entries(self, name: str) -> list[FileEntry]:
        return [entry for entry in self.manifest.files if entry.name == name]

    def _place(self, name: str) -> str:
        return (self.path / name).relative_to(_root_of(self.path)).as_posix()

    def _files_of(self, name: str) -> list[str]:
        stem, _, suffix = name.rpartition(".")
        files = [e.name for e in self.manifest.files if e.name.startswith(f"{stem}-") and e.name.endswith(f".{suffix}")]
        return sorted(each for each in files if each[len(stem) + 1 : -len(suffix) - 1].isdigit()) or [name]


def shard_ids(inputs: Mapping[str, str]) -> list[str]:
    """Return the ids of the shards that a joined object has as its inputs, in order; none of another object."""
    return [object_id for label, object_id in sorted(inputs.items()) if label.startswith(SHARD_LABEL)]


def key_of(kind: str, identity: Mapping[str, Any], inputs: Mapping[str, str]) -> str:
    """Return the key of a piece of work: the digest of all that its output depends on."""
    return digest([kind, dict(identity), dict(inputs)])


_KINDS: dict[str, str] = {}
"""Folders in which objects were found: looking into all of them took a tenth of a build that changes nothing."""
_MAX_NUM_KINDS = 100_000


class Objects(Removals):
    """Objects under `root`/objects, keys under `root`/keys, and the proofs of snapshots under `root`/verified."""

    root: Path

    def locate(self, object_id: str) -> Path | None:
        """Return the folder of an object, or None if it is missing."""
        if not is_id(object_id):
            return None
        self.storage.fetch_object(object_id)
        name = f"{self.root}/{object_id}"
        kind = _KINDS.get(name)
        if kind is None or not os.path.exists(f"{kind}/{object_id}/{MANIFEST}"):
            folders = (kind for stage in subfolders(f"{self.root}/objects") for kind in subfolders(stage))
            found = sorted(kind for kind in folders if os.path.exists(f"{kind}/{object_id}/{MANIFEST}"))
            if not found:
                return None
            if len(_KINDS) >= _MAX_NUM_KINDS:
                _KINDS.clear()
            kind = _KINDS[name] = found[0]
        return Path(kind, object_id)

    def read(self, object_id: str) -> StoredObject:
        """Open an object. Raises MissingError, or DamagedError if its manifest does not hash to its id."""
        path = self.locate(object_id)
        if path is None:
            raise missing_object(self.root, object_id)
        return StoredObject(path, read_manifest(path))

    def commit(self, folder: Path, kind: str, identity: Mapping[str, Any], inputs: Mapping[str, str]) -> str:
        """Turn a folder of finished files into an object and return its id. The folder is gone then."""
        self.prepare()
        entries = tuple(describe_file(path) for path in sorted(folder.iterdir()))
        manifest = Manifest(kind, identity, dict(sorted(inputs.items())), entries)
        write_synced(folder / MANIFEST, canonical_json(manifest.as_json()))
        self.adopt(folder, manifest)
        return manifest.object_id

    def adopt(self, folder: Path, manifest: Manifest, is_synced: bool = False) -> None:
        """Move the folder of an object, all of whose files are there and synced, to its place in the store.

        An equal object that is already there is verified and kept; a damaged one is replaced. With `is_synced` the caller has
        synced the folder, and syncs that of the kind when it has moved all.
        """
        target = self.root / "objects" / manifest.kind / manifest.object_id
        if not is_synced:
            sync(folder)
        make_folder(target.parent)
        if not move_in(folder, target):
            with self.lock(OBJECTS_LOCK):
                _replace_damaged(folder, target)
        self.storage.put_object(target)
        if not is_synced:
            sync(target.parent)

    def has_sound(self, object_id: str) -> bool:
        """Return whether an object is in the store, every file of it as its manifest names it."""
        path = self.locate(object_id)
        return path is not None and _is_sound(path)

    def discard(self, object_id: str) -> None:
        """Remove an object, at once as a whole. The caller has made sure that nothing needs it."""
        path = self.locate(object_id)
        if path is not None:
            self.storage.remove_object(object_id)
            leaving = hidden_sibling(self.root / "tmp" / object_id)
            make_folder(leaving.parent)
            path.rename(leaving)
            remove(leaving)

    def known(self, key: str) -> str | None:
        """Return the id that a key names if its object is sound and was made by the work that the key is of, otherwise None."""
        try:
            found = self._work(key)
        except StoreError:
            return None
        return found.object_id if found is not None and _is_sound(found.path) else None

    def remember(self, key: str, object_id: str) -> None:
        """Record that the work named by `key` gave this object."""
        write_value(self.root, f"keys/{key}", object_id)

    def mark_verified(self, snapshot_id: str, stage_id: str) -> None:
        """Record the stage that verified a snapshot, the newest if there are several."""
        write_value(self.root, f"verified/{snapshot_id}", stage_id)

    def verified_by(self, snapshot_id: str) -> str | None:
        """Return the id of the stage that verified a snapshot, or None. Raises DamagedError."""
        subject, remedy = f"proof of snapshot {snapshot_id[:12]}", "Build it again."
        return read_value(self.root, f"verified/{snapshot_id}", subject, remedy)

    def record_erased(self, object_id: str, files: Mapping[str, str]) -> None:
        """Record the digests that files of an object have without the bytes that were erased: readers then accept them."""
        write_value(self.root, f"{ERASED}/{object_id}", " ".join(f"{name}={files[name]}" for name in sorted(files)))

    def bad_keys(self) -> Iterator[str]:
        """Iterate over the keys that are not as written, or name another object than the work made, or none."""
        self.storage.fetch_all("keys")
        for path in visible(self.root.glob("keys/*")):
            try:
                self._work(path.name)
            except StoreError as error:
                yield str(error)

    def refuse_bad_key(self, object_id: str) -> None:
        """Raise the error that `fsck` reports for the key of the work that made an object: damaged, of another one, or missing."""
        key = self.read(object_id).manifest.key
        if self._work(key) is None:
            raise missing_key(key, object_id)

    def _work(self, key: str) -> StoredObject | None:
        """Open the object that a key names. Raises DamagedError, MissingError."""
        subject = f"key {key[:12]}"
        found = read_value(self.root, f"keys/{key}", subject, _KEY_REMEDY)
        if found is None:
            return None
        stored = self.read(found)
        if stored.manifest.key != key:
            found = f"it names {found[:12]}, which is of key {stored.manifest.key[:12]}"
            raise DamagedError(subject, found, "the object that its work made", _KEY_REMEDY)
        return stored


def missing_key(key: str, object_id: str) -> MissingError:
    """Return the error of a key that is not there, though a stage has the part that its work made."""
    return MissingError(
        f"key {key[:12]}", "it is missing", "", f"The next build that needs {object_id[:12]} makes it again."
    )


def read_manifest(path: Path) -> Manifest:
    """Read the manifest of the object in a folder. Raises DamagedError unless its bytes hash to the folder's name."""
    refuse_link(path / MANIFEST, _NUM_LEVELS, f"object {path.name[:12]}", DAMAGE_REMEDY)
    try:
        written = (path / MANIFEST).read_bytes()
    except OSError as error:
        raise DamagedError(
            f"object {path.name[:12]}", f"its manifest cannot be read ({error})", "", DAMAGE_REMEDY
        ) from error
    manifest = parse_manifest(written, path.name, DAMAGE_REMEDY)
    if path.parts[-3:-1] != Path(manifest.kind).parts:
        raise DamagedError(
            f"object {path.name[:12]}", f"it is in {path.parent}", f"objects/{manifest.kind}", DAMAGE_REMEDY
        )
    return manifest


def parse_manifest(written: bytes, object_id: str, remedy: str) -> Manifest:
    """Parse the manifest of an object. Raises DamagedError unless its bytes hash to the id of the object."""
    subject = f"object {object_id[:12]}"
    try:
        content = parse_json(written)
        refuse_other_version(subject, content.get("identity_version", 1))
        entries = tuple(FileEntry(**entry) for entry in content["files"])
        manifest = Manifest(content["kind"], content["identity"], content["inputs"], entries)
        found = {hashlib.sha256(written).hexdigest(), manifest.object_id} - {object_id}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedError(subject, f"its manifest cannot be read ({error})", "", remedy) from error
    if found:
        raise DamagedError(subject, f"its manifest hashes to {min(found)[:12]}", "its own name", remedy)
    return manifest


def refuse_other_version(subject: str, found: Any) -> None:
    """Raise FormatError unless an identity is of the version that this code hashes."""
    if found != IDENTITY_VERSION:
        remedy = "Another version of Sluice wrote it. Make it again with this one."
        raise FormatError(subject, f"its identity has version {str(found)[:20]}", f"{IDENTITY_VERSION}", remedy)


def describe_file(path: Path) -> FileEntry:
    """Return the entry of a file in the manifest of its object."""
    num_rows = count_rows(path) if path.suffix in TABLE_SUFFIXES else None
    return FileEntry(path.name, file_sha256(path), path.stat().st_size, num_rows)


def erased_files(root: Path, object_id: str) -> dict[str, str]:
    """Read what was erased from an object: the files that were rewritten, with their digests since. Raises DamagedError."""
    subject, place = f"record of what was erased from object {object_id[:12]}", f"{ERASED}/{object_id}"
    found = read_value(root, place, subject, "Erase it again: `python -m pipeline withdraw --erase`.")
    return dict(entry.split("=", 1) for entry in (found or "").split())


def _replace_damaged(folder: Path, target: Path) -> None:
    if _is_sound(target):
        shutil.rmtree(folder)
        return
    remove(_root_of(target) / ERASED / target.name)
    damaged = folder.with_name(f"damaged-{target.name}")  # in the writer's folder, so that it is removed with it
    target.rename(damaged)
    folder.rename(target)
    remove(damaged)


def _is_sound(path: Path) -> bool:
    """Return whether an object is as it was made: without what was erased from it, it is made again."""
    try:
        stored = StoredObject(path, read_manifest(path))
        sizes = {entry.name: entry.num_bytes for entry in stored.manifest.files}
        for name in storage_of(_root_of(path)).to_verify(path.name, sizes):
            stored.file(name)
        return not erased_files(_root_of(path), path.name)
    except StoreError:
        return False


def _root_of(path: Path) -> Path:
    """Return the root of the store that the folder of an object is in."""
    return path.parents[_NUM_LEVELS - 2]


def _verify_file(path: Path, entry: FileEntry, sha256_of: Callable[[Path], str] | None) -> None:
    subject = f"file {path.name} of object {path.parent.name[:12]}"
    refuse_link(path, 1, subject, DAMAGE_REMEDY)
    try:
        found = sha256_of(path) if sha256_of else storage_of(_root_of(path.parent)).sha256(path, entry.sha256)
    except OSError as error:
        raise DamagedError(subject, error.strerror or str(error), "", DAMAGE_REMEDY) from error
    if found != entry.sha256 and found != erased_files(_root_of(path.parent), path.parent.name).get(path.name):
        raise DamagedError(subject, f"sha256 {found[:12]}", f"{entry.sha256[:12]}, as written", DAMAGE_REMEDY)
