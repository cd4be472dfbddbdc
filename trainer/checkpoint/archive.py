"""Archive of a checkpoint: one uncompressed tar with sorted members and fixed times, owners and modes, so equal for equal content.

`import_archive` accepts exactly the bytes that `export_archive` writes: it verifies every member, then writes the same tar again
into a hash and compares. So a link, a path with `..`, a changed mode or one byte more is refused without a rule for each.
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from safetensors import SafetensorError, safe_open

from pipeline.core.digests import file_sha256
from pipeline.core.durable import sync_file
from pipeline.core.errors import DamagedError, TrainingError
from pipeline.store.objects import MANIFEST, FileEntry, Manifest
from pipeline.store.store import Store
from trainer.checkpoint.checkpoint import KIND, open_stored

_MAX_MANIFEST_BYTES = 16 << 20
_BLOCK = 1 << 20


def export_archive(store: Store, checkpoint_id: str, target: Path) -> str:
    """Write a verified checkpoint to `target` and return the tar's SHA-256. A file already there is replaced whole."""
    stored = open_stored(store, checkpoint_id)
    stored.verify()
    temporary = target.with_name(f".{target.name}.part")
    with temporary.open("wb") as file:
        _write(
            file, stored.manifest, (stored.path / MANIFEST).read_bytes(), lambda name: (stored.path / name).open("rb")
        )
    sync_file(temporary)
    temporary.replace(target)
    return file_sha256(target)


def import_archive(store: Store, source: Path) -> str:
    """Verify an exported tar whole, then store it, and return the checkpoint's id. Nothing is written before it is verified.

    Raises TrainingError or DamagedError. The ref `runs/imported/<id>` keeps it from being pruned.
    """
    subject = f"archive {source.name}"
    try:
        with tarfile.open(source, "r:") as tar:
            manifest, content = _verify(tar, subject)
            _compare_bytes(tar, manifest, content, source)
            with store.writer("runs/imported", f"import of {source.name}") as scratch:
                checkpoint_id = _unpack(tar, manifest, store, scratch / "import")
                old = store.ref("runs/imported", checkpoint_id[:12])
                store.move_ref("runs/imported", checkpoint_id[:12], old, checkpoint_id, f"imported from {source.name}")
    except tarfile.TarError as error:
        raise TrainingError(
            subject, f"it cannot be read as a tar ({error})", "an exported checkpoint", _AGAIN
        ) from error
    return checkpoint_id


def _write(target: IO[bytes], manifest: Manifest, content: bytes, opened: Callable[[str], IO[bytes]]) -> None:
    with tarfile.open(fileobj=target, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        folder = manifest.object_id
        tar.addfile(_member(f"{folder}/{MANIFEST}", len(content)), io.BytesIO(content))
        for entry in sorted(manifest.files, key=lambda entry: entry.name):
            with opened(entry.name) as file:
                tar.addfile(_member(f"{folder}/{entry.name}", entry.num_bytes), file)


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, 0o644, 0
    return member


def _verify(tar: tarfile.TarFile, subject: str) -> tuple[Manifest, bytes]:
    members = tar.getmembers()
    odd = next((member for member in members if not member.isreg()), None)
    if odd is not None:
        raise TrainingError(subject, f"{odd.name} is not a regular file", "regular files only", _AGAIN)
    if not members or members[0].size > _MAX_MANIFEST_BYTES:
        raise TrainingError(subject, "it does not begin with a manifest", f"<id>/{MANIFEST}", _AGAIN)
    content = _read(tar, members[0])
    manifest = _manifest(content, subject)
    expected = [f"{manifest.object_id}/{name}" for name in (MANIFEST, *sorted(entry.name for entry in manifest.files))]
    names = [member.name for member in members]
    if names != expected or any("/" in entry.name or entry.name.startswith(".") for entry in manifest.files):
        strange = sorted(set(names) ^ set(expected)) or names
        raise TrainingError(subject, f"its members are not those of its manifest: {strange[:3]}", "", _AGAIN)
    entries = {f"{manifest.object_id}/{entry.name}": entry for entry in manifest.files}
    for member in members[1:]:
        _verify_member(tar, member, entries[member.name])
    return manifest, content


def _manifest(content: bytes, subject: str) -> Manifest:
    try:
        fields = json.loads(content)
        files = tuple(FileEntry(**entry) for entry in fields["files"])
        manifest = Manifest(fields["kind"], fields["identity"], fields["inputs"], files)
    except (ValueError, KeyError, TypeError) as error:
        raise TrainingError(
            subject, f"its manifest cannot be read ({error})", "an exported checkpoint", _AGAIN
        ) from error
    if manifest.kind != KIND:
        raise TrainingError(subject, f"it holds a {manifest.kind}", "a checkpoint", _AGAIN)
    return manifest


def _verify_member(tar: tarfile.TarFile, member: tarfile.TarInfo, entry: FileEntry) -> None:
    file = tar.extractfile(member)
    assert file is not None
    hasher = hashlib.sha256()
    while block := file.read(_BLOCK):
        hasher.update(block)
    if hasher.hexdigest() != entry.sha256 or member.size != entry.num_bytes:
        raise DamagedError(f"file {member.name}", f"sha256 {hasher.hexdigest()[:12]}", entry.sha256[:12], _AGAIN)


class _Hash(io.RawIOBase):
    """A file object that keeps only the hash and the number of the bytes written to it."""

    def __init__(self) -> None:
        self.hasher = hashlib.sha256()
        self.num_bytes = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.num_bytes

    def write(self, block: Any) -> int:
        self.hasher.update(block)
        self.num_bytes += len(block)
        return len(block)


def _compare_bytes(tar: tarfile.TarFile, manifest: Manifest, content: bytes, source: Path) -> None:
    again = _Hash()

    def opened(name: str) -> IO[bytes]:
        file = tar.extractfile(f"{manifest.object_id}/{name}")
        assert file is not None
        return file

    _write(again, manifest, content, opened)  # type: ignore[arg-type]  # tarfile needs write and tell alone
    if again.hasher.hexdigest() != file_sha256(source):
        found = f"it has {source.stat().st_size} bytes with sha256 {file_sha256(source)[:12]}"
        expected = f"{again.num_bytes} with {again.hasher.hexdigest()[:12]}, as an export of its content writes"
        raise TrainingError(f"archive {source.name}", found, expected, _AGAIN)


def _unpack(tar: tarfile.TarFile, manifest: Manifest, store: Store, folder: Path) -> str:
    folder.mkdir(parents=True)
    for entry in manifest.files:
        with (folder / entry.name).open("wb") as file:
            file.write(_read(tar, tar.getmember(f"{manifest.object_id}/{entry.name}")))
        sync_file(folder / entry.name)
        if entry.name.endswith(".safetensors"):
            _require_tensors(folder / entry.name)
    return store.commit(folder, manifest.kind, manifest.identity, manifest.inputs)


def _require_tensors(path: Path) -> None:
    try:
        with safe_open(str(path), "numpy"):
            pass
    except SafetensorError as error:
        raise TrainingError(
            f"file {path.name}", f"it cannot be read as tensors ({error})", "safetensors", _AGAIN
        ) from error


def _read(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    assert file is not None
    return file.read()


_AGAIN = "Export the checkpoint again, and copy the file whole."
