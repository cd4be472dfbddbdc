"""Archive of a checkpoint: one uncompressed tar, in which all but its names, sizes and bytes is fixed, so equal for equal content.

Its members are the manifest and the files of one object, as in a bundle (`pipeline.store.bundles`).
"""

from pathlib import Path

from safetensors import SafetensorError, safe_open

from pipeline.core.digests import file_sha256
from pipeline.core.durable import sync
from pipeline.core.errors import TrainingError
from pipeline.store.bundles.archive_members import ArchiveReader, opened_archive, written_archive
from pipeline.store.bundles.stored_members import add_object, read_files, refuse_other_names
from pipeline.store.objects import Manifest, parse_manifest
from pipeline.store.refs import IMPORTED
from pipeline.store.store import Store
from pipeline.store.store_layout import MANIFEST, RUNS
from trainer.checkpoint.stored_state import CHECKPOINT_KIND, open_stored, refuse_withdrawn_weights, training_place

_AGAIN = "Export the checkpoint again, and copy the file whole."


def export_archive(store: Store, checkpoint_id: str, target: Path) -> str:
    """Write a verified checkpoint to `target` and return the tar's SHA-256. A file already there is replaced whole.

    Raises TrainingError for weights that withdrawn data has shaped.
    """
    stored = open_stored(store, checkpoint_id)
    snapshots = training_place(stored).snapshots.values()
    refuse_withdrawn_weights(store, f"checkpoint {checkpoint_id[:12]}", snapshots)
    with written_archive(target) as writer:
        add_object(writer, stored)
    return file_sha256(target)


def import_archive(store: Store, source: Path) -> str:
    """Verify an exported tar whole, then store it, and return the checkpoint's id. Nothing enters the store before.

    Raises TrainingError or DamagedError. The ref `runs/imported/<id>` keeps it from being pruned.
    """
    subject, run, reason = f"archive {source.name}", f"{RUNS}/{IMPORTED}", f"imported from {source.name}"
    with opened_archive(source, subject) as file, store.writer(run, f"import of {source.name}") as scratch:
        reader = ArchiveReader(file, subject, _AGAIN)
        manifest, folder = _manifest(*reader.first(), subject), scratch / "import"
        folder.mkdir()
        read_files(reader, manifest, folder, _AGAIN)
        reader.finish()
        for path in sorted(folder.iterdir()):
            sync(path)
            _require_tensors(path)
        checkpoint_id = store.commit(folder, manifest.kind, manifest.identity, manifest.inputs)
        old = store.ref(run, checkpoint_id[:12])
        store.move_ref(run, checkpoint_id[:12], old, checkpoint_id, reason)
    return checkpoint_id


def _manifest(name: str, content: bytes, subject: str) -> Manifest:
    checkpoint_id, _, file = name.partition("/")
    if file != MANIFEST:
        raise TrainingError(subject, f"it begins with {name[:100]!r}", f"<id>/{MANIFEST}", _AGAIN)
    manifest = parse_manifest(content, checkpoint_id, _AGAIN)
    refuse_other_names(manifest, subject, _AGAIN)
    if manifest.kind != CHECKPOINT_KIND:
        raise TrainingError(subject, f"it holds a {manifest.kind}", "a checkpoint", _AGAIN)
    return manifest


def _require_tensors(path: Path) -> None:
    if path.suffix != ".safetensors":
        return
    try:
        with safe_open(str(path), "numpy"):
            pass
    except SafetensorError as error:
        found = f"it cannot be read as tensors ({error})"
        raise TrainingError(f"file {path.name}", found, "safetensors", _AGAIN) from error
