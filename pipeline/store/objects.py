"""An object on disk: its manifest, and reading that verifies every byte against it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.core.errors import DamagedError, FormatError, MissingError
from pipeline.core.params import digest
from pipeline.formats.tables import TABLE_SUFFIXES, count_rows, read_table

if TYPE_CHECKING:
    import pyarrow as pa

MANIFEST = "manifest.json"
IDENTITY_VERSION = 2
"""Version of what an id is the hash of: raising it moves every id. The layout on disk has its own, `STORE_FORMAT`."""
REPORT = "report.json"
_MEND = "Build again: damaged objects are made anew. `fsck` lists all damage."


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
        """Return the manifest as it is hashed and stored."""
        entries = [asdict(entry) for entry in self.files]
        return asdict(self) | {"files": entries, "identity_version": IDENTITY_VERSION}

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

    def table(self, name: str, columns: Sequence[str] | None = None) -> "pa.Table":
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


def read_manifest(path: Path) -> Manifest:
    """The manifest of the object in a folder. Raises DamagedError unless it hashes to the folder's name."""
    try:
        content = json.loads((path / MANIFEST).read_bytes())
        _refuse_other_version(path, content.get("identity_version", 1))
        entries = tuple(FileEntry(**entry) for entry in content["files"])
        manifest = Manifest(content["kind"], content["identity"], content["inputs"], entries)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"object {path.name[:12]}", f"its manifest cannot be read ({error})", "", _MEND) from error
    if manifest.object_id != path.name:
        raise DamagedError(
            f"object {path.name[:12]}", f"its manifest hashes to {manifest.object_id[:12]}", "its own name", _MEND
        )
    return manifest


def _refuse_other_version(path: Path, found: Any) -> None:
    if found != IDENTITY_VERSION:
        raise FormatError(
            f"object {path.name[:12]}",
            f"its identity has version {str(found)[:20]}",
            f"{IDENTITY_VERSION}",
            "Another version of Sluice wrote it. Make it again with this one.",
        )


def describe(path: Path) -> FileEntry:
    """The entry of a finished file."""
    num_rows = count_rows(path) if path.suffix in TABLE_SUFFIXES else None
    return FileEntry(path.name, sha256_of(path), path.stat().st_size, num_rows)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _verify_file(path: Path, entry: FileEntry) -> None:
    try:
        found = sha256_of(path)
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
