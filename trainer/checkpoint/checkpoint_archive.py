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
from types import SimpleNamespace
from typing import IO, Any

from safetensors import SafetensorError, safe_open

from pipeline.core.digests import file_sha256
from pipeline.core.durable import sync, write_synced
from pipeline.core.errors import DamagedError, TrainingError
from pipeline.store.objects import MANIFEST, FileEntry, Manifest, refuse_other_version
from pipeline.store.store import Store
from trainer.checkpoint.stored_state import CHECKPOINT_KIND, open_stored

_MAX_MANIFEST_BYTES = 16 << 20


def export_archive(store: Store, checkpoint_id: str, target: Path) -> str:
    """Write a verified checkpoint to `target` and return the tar's SHA-256. A file already there is replaced whole."""
    stored = open_stored(store, checkpoint_id)
    stored.verify()
    temporary = target.with_name(f".{target.name}.part")
    with temporary.open("wb") as file:
        _write(file, stored.manifest, (stored.path / MANIFEST).read_bytes(), lambda name: stored.file(name).open("rb"))
    sync(temporary)
    temporary.replace(target)
    return file_sha256(target)


def import_archive(store: Store, source: Path) -> str:
    """Verify an exported tar whole, then store it, and return the checkpoint's id. Nothing is written before it is verified.

    Raises TrainingError or DamagedError. The ref `runs/imported/<id>` keeps it from being pruned.
    """
    subject = f"archive {source.name}"
    try:
        with tarfile.open(source, "r:") as tar:
            manifest = _verify(tar, source, subject)
            with store.writer("runs/imported", f"import of {source.name}") as scratch:
                checkpoint_id = _unpack(tar, manifest, store, scratch / "import")
                old = store.ref("runs/imported", checkpoint_id[:12])
                store.move_ref("runs/imported", checkpoint_id[:12], old, checkpoint_id, f"imported from {source.name}")
    except tarfile.TarError as error:
        found = f"it cannot be read as a tar ({error})"
        raise TrainingError(subject, found, "an exported checkpoint", _AGAIN) from error
    return checkpoint_id


def _write(target: Any, manifest: Manifest, content: bytes, opened: Callable[[str], IO[bytes]]) -> None:
    """Write the archive of a checkpoint, whose manifest is stored as `content`, to anything with a method `write`."""
    with tarfile.open(fileobj=target, mode="w|", format=tarfile.USTAR_FORMAT) as tar:
        folder = manifest.object_id
        tar.addfile(_member(f"{folder}/{MANIFEST}", len(content)), io.BytesIO(content))
        for entry in sorted(manifest.files, key=lambda entry: entry.name):
            with opened(entry.name) as file:
                tar.addfile(_member(f"{folder}/{entry.name}", entry.num_bytes), file)


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, 0o644, 0
    return member


def _verify(tar: tarfile.TarFile, source: Path, subject: str) -> Manifest:
    members = tar.getmembers()
    odd = next((member for member in members if not member.isreg()), None)
    if odd is not None:
        raise TrainingError(subject, f"{odd.name} is not a regular file", "regular files only", _AGAIN)
    if not members or members[0].size > _MAX_MANIFEST_BYTES:
        raise TrainingError(subject, "it does not begin with a manifest", f"<id>/{MANIFEST}", _AGAIN)
    content = _opened(tar, members[0].name).read()
    manifest = _manifest(content, subject)
    entries = {f"{manifest.object_id}/{entry.name}": entry for entry in manifest.files}
    expected = [f"{manifest.object_id}/{MANIFEST}", *sorted(entries)]
    names = [member.name for member in members]
    if names != expected or any("/" in entry.name or entry.name.startswith(".") for entry in manifest.files):
        strange = sorted(set(names) ^ set(expected)) or names
        raise TrainingError(subject, f"its members are not those of its manifest: {strange[:3]}", "", _AGAIN)
    for name, entry in entries.items():
        found = hashlib.file_digest(_opened(tar, name), "sha256").hexdigest()  # type: ignore[arg-type]  # has readinto
        if found != entry.sha256 or tar.getmember(name).size != entry.num_bytes:
            raise DamagedError(f"file {name}", f"sha256 {found[:12]}", entry.sha256[:12], _AGAIN)
    again, folder = hashlib.sha256(), manifest.object_id
    _write(SimpleNamespace(write=again.update), manifest, content, lambda name: _opened(tar, f"{folder}/{name}"))
    if again.hexdigest() != file_sha256(source):
        expected_sha256 = f"{again.hexdigest()[:12]}, as an export of its content writes"
        raise TrainingError(subject, f"it has sha256 {file_sha256(source)[:12]}", expected_sha256, _AGAIN)
    return manifest


def _manifest(content: bytes, subject: str) -> Manifest:
    try:
        fields = json.loads(content)
        refuse_other_version(subject, fields.get("identity_version", 1))
        files = tuple(FileEntry(**entry) for entry in fields["files"])
        manifest = Manifest(fields["kind"], fields["identity"], fields["inputs"], files)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        found = f"its manifest cannot be read ({error})"
        raise TrainingError(subject, found, "an exported checkpoint", _AGAIN) from error
    if manifest.kind != CHECKPOINT_KIND:
        raise TrainingError(subject, f"it holds a {manifest.kind}", "a checkpoint", _AGAIN)
    return manifest


def _opened(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    file = tar.extractfile(name)
    assert file is not None
    return file


def _unpack(tar: tarfile.TarFile, manifest: Manifest, store: Store, folder: Path) -> str:
    folder.mkdir(parents=True)
    for entry in manifest.files:
        write_synced(folder / entry.name, _opened(tar, f"{manifest.object_id}/{entry.name}").read())
        if entry.name.endswith(".safetensors"):
            _require_tensors(folder / entry.name)
    return store.commit(folder, manifest.kind, manifest.identity, manifest.inputs)


def _require_tensors(path: Path) -> None:
    try:
        with safe_open(str(path), "numpy"):
            pass
    except SafetensorError as error:
        found = f"it cannot be read as tensors ({error})"
        raise TrainingError(f"file {path.name}", found, "safetensors", _AGAIN) from error


_AGAIN = "Export the checkpoint again, and copy the file whole."
