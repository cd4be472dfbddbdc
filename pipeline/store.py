"""The store: git for stage outputs. The only module that writes.

    blobs/<sha256>                 archives, as received            rejected/<sha256>   bytes that were not the pinned ones
    objects/<stage>/<what>/<id>/   tables, report.json, and manifest.json written last; a folder without it does not exist
    refs/<corpus>/<name>           the promoted id of a stage, `candidate`, `live`; refs/runs/<run>/latest
    keys/<key>                     what was asked for -> id: how unchanged work is known before it is done
    verdicts/<id>.json             what the gates measured and decided
    log/promotions.jsonl           every move of a ref, append-only
    locks/  tmp/                   one flock a corpus; what its holder is writing

An object's id is the SHA-256 of its manifest, so equal inputs give equal ids on any machine. A write goes to a temporary
sibling, is synced, and is renamed: a process killed anywhere leaves the old state or the new one.
"""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from pipeline.errors import DamagedError, DigestError, LockedError, MissingError, RefMovedError, StoreError
from pipeline.params import canonical_json, digest
from pipeline.tables import TABLE_SUFFIXES, count_rows, read_table

MANIFEST = "manifest.json"
REPORT = "report.json"
_READ_SIZE = 1 << 20
_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class FileEntry:
    """One file of an object. `num_rows` is None for what is no table."""

    name: str
    sha256: str
    num_bytes: int
    num_rows: int | None = None


@dataclass(frozen=True)
class Manifest:
    """What an object is made of and from. `identity` holds everything its bytes depend on; no clock, host, place or verdict."""

    kind: str
    identity: Mapping[str, Any]
    inputs: Mapping[str, str]
    files: tuple[FileEntry, ...]

    def as_json(self) -> dict[str, Any]:
        """The manifest as it is hashed and stored."""
        return asdict(self) | {"files": [asdict(entry) for entry in self.files], "manifest_version": 1}

    @property
    def object_id(self) -> str:
        return digest(self.as_json())


class StoredObject:
    """Read access to one object. Each file is verified against the manifest the first time it is read."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self._verified: set[str] = set()

    @property
    def object_id(self) -> str:
        return self.path.name

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """The table `name` in stored order. Raises MissingError if the object has none, DamagedError if its bytes changed."""
        return read_table(self.paths(name), columns)

    def paths(self, name: str) -> list[Path]:
        """The verified files of the table `name`, in order."""
        return [self.file(shard) for shard in self._shards(name)]

    def file(self, name: str) -> Path:
        """The verified path of one file."""
        entry = next((entry for entry in self.manifest.files if entry.name == name), None)
        if entry is None:
            names = ", ".join(entry.name for entry in self.manifest.files)
            raise MissingError(
                f"object {self.object_id[:12]} ({self.manifest.kind})", f"no file {name}", f"one of {names}"
            )
        if name not in self._verified:
            _verify_file(self.path / name, entry)
            self._verified.add(name)
        return self.path / name

    def json(self, name: str) -> Any:
        """The parsed content of a JSON file of the object."""
        return json.loads(self.file(name).read_bytes())

    def verify(self) -> None:
        """Raise DamagedError unless every file has the bytes that the manifest names."""
        for entry in self.manifest.files:
            self.file(entry.name)

    def _shards(self, name: str) -> list[str]:
        stem, _, suffix = name.rpartition(".")
        shards = [
            e.name for e in self.manifest.files if e.name.startswith(f"{stem}-") and e.name.endswith(f".{suffix}")
        ]
        return sorted(shard for shard in shards if shard[len(stem) + 1 : -len(suffix) - 1].isdigit()) or [name]


class Store:
    """A store under `root`. `clock` gives the time written into verdicts and the log, never into an id."""

    def __init__(self, root: Path, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.root = root
        self.clock = clock

    # --- objects

    def locate(self, object_id: str) -> Path | None:
        """The folder of an object, or None if it is not there."""
        if len(object_id) != 64 or not object_id.isalnum():
            return None
        found = sorted(self.root.glob(f"objects/*/*/{object_id}/{MANIFEST}"))
        return found[0].parent if found else None

    def read(self, object_id: str) -> StoredObject:
        """Open an object. Raises MissingError or, if its manifest is not the one it was named for, DamagedError."""
        path = self.locate(object_id)
        if path is None:
            raise MissingError(f"object {object_id[:12]}", "it is not in the store", "", "Build again to make it.")
        return StoredObject(path, _read_manifest(path))

    def commit(self, folder: Path, kind: str, identity: Mapping[str, Any], inputs: Mapping[str, str]) -> str:
        """Turn a folder of finished files into an object and return its id. The folder is gone afterwards.

        An equal object that is already there is verified and kept; a damaged one is replaced.
        """
        entries = tuple(_describe(path) for path in sorted(folder.iterdir()))
        manifest = Manifest(kind, identity, dict(sorted(inputs.items())), entries)
        target = self.root / "objects" / kind / manifest.object_id
        _write_synced(folder / MANIFEST, canonical_json(manifest.as_json()))
        _sync_folder(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            if self._is_sound(target):
                shutil.rmtree(folder)
                return target.name
            shutil.rmtree(target)
        folder.rename(target)
        _sync_folder(target.parent)
        return target.name

    def known(self, key: str) -> str | None:
        """The id that a key stands for, if its object is there and sound; None otherwise."""
        try:
            object_id = (self.root / "keys" / key).read_text().strip()
        except FileNotFoundError:
            return None
        path = self.locate(object_id)
        return object_id if path is not None and self._is_sound(path) else None

    def remember(self, key: str, object_id: str) -> None:
        """Record that the work named by `key` gave this object."""
        _replace(self.root / "keys" / key, f"{object_id}\n".encode())

    def _is_sound(self, path: Path) -> bool:
        try:
            StoredObject(path, _read_manifest(path)).verify()
        except StoreError:
            return False
        return True

    # --- blobs

    def blob(self, sha256: str) -> Path | None:
        """Where the blob lies, or None."""
        path = self.root / "blobs" / sha256
        return path if path.exists() else None

    def partial_blob(self, sha256: str) -> Path:
        """Where an interrupted download of the blob is kept. Never read as a blob."""
        path = self.root / "tmp" / "blobs" / f"{sha256}.part"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def put_blob(self, chunks: Iterable[bytes], sha256: str, subject: str) -> Path:
        """Store bytes as blob `sha256`. Raises DigestError for other bytes, which are kept under rejected/ for a look."""
        folder = self.root / "tmp" / "blobs"
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder)
        hasher = hashlib.sha256()
        try:
            with os.fdopen(handle, "wb") as file:
                for chunk in chunks:
                    hasher.update(chunk)
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            found = hasher.hexdigest()
            target = self.root / ("blobs" if found == sha256 else "rejected") / found
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(name, target)
            _sync_folder(target.parent)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        if found != sha256:
            raise DigestError(
                subject,
                f"its bytes have sha256 {found}",
                f"{sha256}, as pinned",
                f"The bytes are kept aside in rejected/{found[:12]}... and not used. Check the pin, or the index that served them.",
            )
        return target

    # --- refs

    def ref(self, corpus: str, name: str) -> str | None:
        """The id that a ref names, or None."""
        try:
            return (self.root / "refs" / corpus / name).read_text().strip()
        except FileNotFoundError:
            return None

    def refs(self, corpus: str) -> dict[str, str]:
        """All refs of a corpus, sorted by name."""
        folder = self.root / "refs" / corpus
        return {path.name: path.read_text().strip() for path in _visible(folder.glob("*"))}

    def move_ref(self, corpus: str, name: str, old: str | None, new: str, reason: str) -> None:
        """Compare-and-swap a ref and log the move. Raises RefMovedError if the ref is no longer at `old`."""
        if self.locate(new) is None:
            raise MissingError(
                f"ref {corpus}/{name}", f"object {new[:12]} is not in the store", "", "Build again to make it."
            )
        with self._flock("refs"):
            found = self.ref(corpus, name)
            if found != old:
                raise RefMovedError(
                    f"ref {corpus}/{name}",
                    f"it is at {_short(found)}",
                    f"{_short(old)}, where this writer last saw it",
                    "Another writer moved it. Look at what it names now, then run again.",
                )
            if found != new:
                _replace(self.root / "refs" / corpus / name, f"{new}\n".encode())
                self._log({"corpus": corpus, "ref": name, "old": old, "new": new, "reason": reason})

    def history(self, corpus: str) -> list[dict[str, Any]]:
        """Every move of the refs of a corpus, oldest first. A line torn by a power cut is left out."""
        path = self.root / "log" / "promotions.jsonl"
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        return [entry for entry in map(json.loads, lines) if entry["corpus"] == corpus]

    def _log(self, entry: dict[str, Any]) -> None:
        path = self.root / "log" / "promotions.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            _cut_torn_line(file)
            file.write(canonical_json(entry | {"when": self.clock().isoformat()}) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    # --- verdicts

    def put_verdicts(self, object_id: str, verdicts: Any) -> None:
        """Keep what the gates decided about an object, beside it."""
        content = {"when": self.clock().isoformat(), "verdicts": verdicts}
        _replace(self.root / "verdicts" / f"{object_id}.json", json.dumps(content, indent=1, sort_keys=True).encode())

    def verdicts(self, object_id: str) -> Any:
        """What the gates last decided about an object; None if they never did."""
        path = self.root / "verdicts" / f"{object_id}.json"
        return json.loads(path.read_bytes()) if path.exists() else None

    # --- writing

    @contextmanager
    def writer(
        self, corpus: str, who: str, wait_seconds: float = 0.0, on_wait: Callable[[str], None] = lambda holder: None
    ) -> Iterator[Path]:
        """Hold a corpus for writing; yields its empty temporary folder. The kernel lets go when the process dies.

        `on_wait` hears once who holds it. Raises LockedError when `wait_seconds` are over.
        """
        with self._flock(corpus, who, wait_seconds, on_wait):
            folder = self.root / "tmp" / corpus
            shutil.rmtree(folder, ignore_errors=True)  # whoever held the corpus before us is dead
            folder.mkdir(parents=True)
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def _flock(
        self, name: str, who: str = "", wait_seconds: float = 60.0, on_wait: Callable[[str], None] = lambda holder: None
    ) -> Iterator[None]:
        path = self.root / "locks" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+") as file:
            _acquire(file.fileno(), path, wait_seconds, on_wait)
            file.truncate(0)
            file.write(who)
            file.flush()
            yield

    # --- checking

    def fsck(self) -> list[str]:
        """Every damage in the store, one line each: damaged or incomplete objects with who needs them, refs and keys to nothing."""
        problems: list[str] = []
        needed_by: dict[str, list[str]] = {}
        for path in sorted(self.root.glob("objects/*/*/*")):
            name = f"{path.parent.relative_to(self.root / 'objects')}/{path.name[:12]}"
            try:
                stored = StoredObject(path, _read_manifest(path))
                stored.verify()
            except StoreError as error:
                problems.append(f"{name}: {error}")
                continue
            for input_id in stored.manifest.inputs.values():
                needed_by.setdefault(input_id, []).append(name)
        for path in _visible(self.root.glob("refs/**/*")):
            if path.is_file():
                needed_by.setdefault(path.read_text().strip(), []).append(f"ref {path.relative_to(self.root / 'refs')}")
        for path in sorted(self.root.glob("blobs/*")):
            if _sha256(path) != path.name:
                problems.append(
                    f"blob {path.name[:12]}: its bytes changed. Remove it: the next build fetches it again."
                )
        missing = sorted(object_id for object_id in needed_by if self.locate(object_id) is None)
        return problems + [f"object {i[:12]}: missing, needed by {', '.join(sorted(needed_by[i]))}" for i in missing]


def write_file(path: Path, content: bytes) -> None:
    """Write a file of an object that is being made, and sync it."""
    _write_synced(path, content)


def sync_file(path: Path) -> None:
    """Sync a file that a library wrote."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _acquire(handle: int, path: Path, wait_seconds: float, on_wait: Callable[[str], None]) -> None:
    deadline = time.monotonic() + wait_seconds
    told = False
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            holder = path.read_text().strip() or "another writer"
            if time.monotonic() >= deadline:
                raise LockedError(
                    f"corpus {path.name}",
                    f"it is being written by {holder}",
                    "",
                    "Wait until that has ended, then run again.",
                ) from None
        if not told:
            on_wait(holder)
            told = True
        time.sleep(_POLL_SECONDS)


def _read_manifest(path: Path) -> Manifest:
    try:
        content = json.loads((path / MANIFEST).read_bytes())
        entries = tuple(FileEntry(**entry) for entry in content["files"])
        manifest = Manifest(content["kind"], content["identity"], content["inputs"], entries)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"object {path.name[:12]}", f"its manifest cannot be read ({error})", "", _MEND) from error
    if manifest.object_id != path.name:
        raise DamagedError(
            f"object {path.name[:12]}", f"its manifest hashes to {manifest.object_id[:12]}", "its own name", _MEND
        )
    return manifest


def _describe(path: Path) -> FileEntry:
    num_rows = count_rows(path) if path.suffix in TABLE_SUFFIXES else None
    return FileEntry(path.name, _sha256(path), path.stat().st_size, num_rows)


def _verify_file(path: Path, entry: FileEntry) -> None:
    try:
        found = _sha256(path)
    except OSError as error:
        raise DamagedError(
            f"file {path.name} of object {path.parent.name[:12]}", error.strerror or str(error), "", _MEND
        ) from error
    if found != entry.sha256:
        raise DamagedError(
            f"file {path.name} of object {path.parent.name[:12]}",
            f"sha256 {found[:12]}",
            f"{entry.sha256[:12]}, as written",
            _MEND,
        )


_MEND = "Build again: damaged objects are made anew. `fsck` lists all damage."


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".")
    os.close(handle)
    try:
        _write_synced(Path(name), content)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _cut_torn_line(file: BinaryIO) -> None:
    """Cut what a power cut left of a line: everything behind the last line end."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _READ_SIZE))
    tail = file.read()
    file.truncate(size - len(tail) + tail.rfind(b"\n") + 1)


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _visible(paths: Iterable[Path]) -> list[Path]:
    # A write that was killed leaves a hidden temporary file, which is no ref.
    return sorted(path for path in paths if not path.name.startswith("."))


def _short(object_id: str | None) -> str:
    return object_id[:12] if object_id else "nothing"
