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

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipeline.durable import acquire, cut_torn_line, replace, sync_folder, write_synced
from pipeline.errors import DigestError, MissingError, RefMovedError, StoreError
from pipeline.objects import MANIFEST, Manifest, StoredObject, describe, read_manifest, sha256_of
from pipeline.params import canonical_json


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
        return StoredObject(path, read_manifest(path))

    def commit(self, folder: Path, kind: str, identity: Mapping[str, Any], inputs: Mapping[str, str]) -> str:
        """Turn a folder of finished files into an object and return its id. The folder is gone afterwards.

        An equal object that is already there is verified and kept; a damaged one is replaced.
        """
        entries = tuple(describe(path) for path in sorted(folder.iterdir()))
        manifest = Manifest(kind, identity, dict(sorted(inputs.items())), entries)
        target = self.root / "objects" / kind / manifest.object_id
        write_synced(folder / MANIFEST, canonical_json(manifest.as_json()))
        sync_folder(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            if self._is_sound(target):
                shutil.rmtree(folder)
                return target.name
            shutil.rmtree(target)
        folder.rename(target)
        sync_folder(target.parent)
        return target.name

    def discard(self, object_id: str) -> None:
        """Remove an object that nothing needs; the caller has made sure. Without its manifest it is gone at once."""
        path = self.locate(object_id)
        if path is not None:
            (path / MANIFEST).unlink()
            shutil.rmtree(path)

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
        replace(self.root / "keys" / key, f"{object_id}\n".encode())

    def _is_sound(self, path: Path) -> bool:
        try:
            StoredObject(path, read_manifest(path)).verify()
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
            sync_folder(target.parent)
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
                replace(self.root / "refs" / corpus / name, f"{new}\n".encode())
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
            cut_torn_line(file)
            file.write(canonical_json(entry | {"when": self.clock().isoformat()}) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    # --- verdicts

    def put_verdicts(self, object_id: str, verdicts: Any) -> None:
        """Keep what the gates decided about an object, beside it."""
        content = {"when": self.clock().isoformat(), "verdicts": verdicts}
        replace(self.root / "verdicts" / f"{object_id}.json", json.dumps(content, indent=1, sort_keys=True).encode())

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
            acquire(file.fileno(), path, wait_seconds, on_wait)
            file.truncate(0)
            file.write(who)
            file.flush()
            yield

    # --- checking

    def fsck(self) -> list[str]:
        """Every damage in the store, one line each: what is damaged or missing, and who needs it."""
        damaged: dict[str, str] = {}
        needed_by: dict[str, list[str]] = {}
        for path in sorted(path.parent for path in self.root.glob(f"objects/*/*/*/{MANIFEST}")):
            try:
                manifest = read_manifest(path)
                for input_id in set(manifest.inputs.values()):
                    needed_by.setdefault(input_id, []).append(f"{manifest.kind} {path.name[:12]}")
                StoredObject(path, manifest).verify()
            except StoreError as error:
                damaged[path.name] = str(error)
        for path in _visible(self.root.glob("refs/**/*")):
            if path.is_file():
                needed_by.setdefault(path.read_text().strip(), []).append(f"ref {path.relative_to(self.root / 'refs')}")
        damaged |= {name: f"object {name[:12]}: it is missing." for name in needed_by if self.locate(name) is None}
        problems = [
            f"{text} Needed by {', '.join(needed_by.get(name, ['nothing']))}." for name, text in sorted(damaged.items())
        ]
        return problems + [
            f"blob {path.name[:12]}: its bytes changed. Remove it: the next build fetches it again."
            for path in _visible(self.root.glob("blobs/*"))
            if sha256_of(path) != path.name
        ]


def _visible(paths: Iterable[Path]) -> list[Path]:
    # A write that was killed leaves a hidden temporary file, which is no ref.
    return sorted(path for path in paths if not path.name.startswith("."))


def _short(object_id: str | None) -> str:
    return object_id[:12] if object_id else "nothing"
