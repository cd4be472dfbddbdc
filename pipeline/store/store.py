"""The store: git for stage outputs. The only module that writes.

    blobs/<sha256>                 archives, as received            rejected/<sha256>   bytes that were not the pinned ones
    names/<what>/<name>            -> a blob, for bytes that are known by another name: the pack of a git commit
    objects/<stage>/<what>/<id>/   tables, report.json, and manifest.json written last; a folder without it does not exist
    refs/<corpus>/<name>           the promoted id of a stage, `candidate`, `live`; refs/runs/<run>/latest
    keys/<key>                     what was asked for -> id: how unchanged work is known before it is done
    verdicts/<id>.json             what the gates measured and decided
    log/promotions.jsonl           every move of a ref, append-only
    log/withdrawals.jsonl          what no corpus of this store may hold any more, append-only
    locks/  tmp/                   one flock a corpus; what its holder is writing, and downloads under tmp/.blobs
    format                         the version of this layout and of its ids: a store of another one is refused

An object's id is the SHA-256 of its manifest, so equal inputs give equal ids on any machine. A write goes to a temporary
sibling, is synced, and is renamed: a process killed anywhere leaves the old state or the new one.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipeline.core.durable import (
    acquire,
    cut_torn_line,
    hidden_sibling,
    make_folder,
    remove,
    replace,
    sync_folder,
    write_synced,
)
from pipeline.core.errors import (
    DamagedError,
    DigestError,
    FormatError,
    MissingError,
    ParamsError,
    RefMovedError,
    StoreError,
)
from pipeline.core.params import canonical_json
from pipeline.store.names import is_name, refuse_bad_corpus
from pipeline.store.objects import MANIFEST, Manifest, StoredObject, describe, read_manifest, sha256_of

_ID = re.compile(r"[0-9a-f]{64}")
HISTORY = Path("log") / "promotions.jsonl"
WITHDRAWALS = Path("log") / "withdrawals.jsonl"
_REFS_LOCK, _OBJECTS_LOCK, _USE_LOCK = ".refs", ".objects", ".use"
_FORMAT = "format"
STORE_FORMAT = 2
"""Version of the store as a whole. Raised when what an earlier version wrote can no longer be read."""
_KEPT = "blobs/, names/ and log/withdrawals.jsonl"
_BLOBS = Path("tmp") / ".blobs"
"""No corpus has a name that begins with a dot, so none of these is ever taken for one."""


class Store:
    """A store under `root`. `clock` gives the time written into verdicts and the log, never into an id."""

    def __init__(self, root: Path, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.root = root
        self.clock = clock
        self._refuse_other_format()

    def _refuse_other_format(self) -> None:
        """Raise FormatError for a store that another version of Sluice wrote. One without objects has no format yet."""
        found = _text_of(self.root / _FORMAT) or ("1" if (self.root / "objects").is_dir() else str(STORE_FORMAT))
        if found != str(STORE_FORMAT):
            raise FormatError(
                f"store {self.root}",
                f"it has format {found[:20]}",
                f"{STORE_FORMAT}: columns and ids are spelled otherwise since",
                f"Move it aside and build again. Its {_KEPT} can be moved into the new store: nothing is fetched twice.",
            )

    def _mark_format(self) -> None:
        if not (self.root / _FORMAT).exists():
            make_folder(self.root)
            replace(self.root / _FORMAT, f"{STORE_FORMAT}\n".encode())

    # --- objects

    def locate(self, object_id: str) -> Path | None:
        """The folder of an object, or None if it is not there."""
        if not _ID.fullmatch(object_id):
            return None
        found = sorted(self.root.glob(f"objects/*/*/{object_id}/{MANIFEST}"))
        return found[0].parent if found else None

    def read(self, object_id: str) -> StoredObject:
        """Open an object. Raises MissingError or, if its manifest is not the one it was named for, DamagedError."""
        path = self.locate(object_id)
        if path is None:
            raise self._missing(object_id)
        return StoredObject(path, read_manifest(path))

    def _missing(self, asked: str) -> MissingError:
        """Messages show the first digits of an id, so those may be all that somebody has."""
        if _ID.fullmatch(asked):
            return MissingError(f"object {asked[:12]}", "it is not in the store", "", "Build again to make it.")
        is_start = re.fullmatch(r"[0-9a-f]{4,63}", asked) is not None
        near = (
            sorted(path.parent.name for path in self.root.glob(f"objects/*/*/{asked}*/{MANIFEST}")) if is_start else []
        )
        remedy = (
            f"Did you mean {' or '.join(near[:3])}?" if near else "`show` lists the refs of a corpus and their ids."
        )
        return MissingError(
            f"object {asked[:80]!r}", "it is no id", "the 64 hex digits of an id, in lower case", remedy
        )

    def commit(self, folder: Path, kind: str, identity: Mapping[str, Any], inputs: Mapping[str, str]) -> str:
        """Turn a folder of finished files into an object and return its id. The folder is gone afterwards.

        An equal object that is already there is verified and kept; a damaged one is replaced.
        """
        self._mark_format()
        entries = tuple(describe(path) for path in sorted(folder.iterdir()))
        manifest = Manifest(kind, identity, dict(sorted(inputs.items())), entries)
        target = self.root / "objects" / kind / manifest.object_id
        write_synced(folder / MANIFEST, canonical_json(manifest.as_json()))
        sync_folder(folder)
        make_folder(target.parent)
        if not self._move_in(folder, target):
            with self._flock(_OBJECTS_LOCK):
                self._replace_damaged(folder, target)
        sync_folder(target.parent)
        return target.name

    def _move_in(self, folder: Path, target: Path) -> bool:
        """Name a finished folder, unless something has that name: an equal object, perhaps of a build beside this one."""
        try:
            folder.rename(target)
        except OSError:
            if not os.path.lexists(target):
                raise
            return False
        return True

    def _replace_damaged(self, folder: Path, target: Path) -> None:
        if not target.is_symlink() and self._is_sound(target):
            shutil.rmtree(folder)
            return
        damaged = folder.with_name(f"damaged-{target.name}")  # beside what is written, so that it is swept with it
        target.rename(damaged)
        folder.rename(target)
        remove(damaged)

    def discard(self, object_id: str) -> None:
        """Remove an object that nothing needs; the caller has made sure. Without its manifest it is gone at once."""
        path = self.locate(object_id)
        if path is not None:
            (path / MANIFEST).unlink()
            shutil.rmtree(path)

    def known(self, key: str) -> str | None:
        """The id that a key stands for, if its object is there and sound; None otherwise."""
        object_id = _text_of(self.root / "keys" / key)
        path = self.locate(object_id) if object_id is not None else None
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
        """Where the blob lies; None if it is not there or its bytes changed, so that it is fetched anew."""
        path = self.root / "blobs" / sha256
        return path if path.is_file() and sha256_of(path) == sha256 else None

    def partial_blob(self, sha256: str) -> Path:
        """Where an interrupted download of the blob is kept. Never read as a blob."""
        path = self.root / _BLOBS / f"{sha256}.part"
        make_folder(path.parent)
        return path

    def put_blob(self, chunks: Iterable[bytes], sha256: str, subject: str) -> Path:
        """Store bytes as blob `sha256`. Raises DigestError for other bytes, which are kept under rejected/ for a look."""
        arriving = hidden_sibling(self.partial_blob(sha256))
        hasher = hashlib.sha256()
        try:
            with arriving.open("wb") as file:
                for chunk in chunks:
                    hasher.update(chunk)
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            found = hasher.hexdigest()
            target = self.root / ("blobs" if found == sha256 else "rejected") / found
            make_folder(target.parent)
            os.replace(arriving, target)
            sync_folder(target.parent)
        except BaseException:
            arriving.unlink(missing_ok=True)
            raise
        if found != sha256:
            raise DigestError(
                subject,
                f"its bytes have sha256 {found}",
                f"{sha256}, as pinned",
                f"The bytes are kept aside in rejected/{found[:12]}... and not used. Check the pin, or the index that served them.",
            )
        return target

    def named_blob(self, name: str) -> Path | None:
        """Where the blob lies that a name such as `git/<commit>` was last given to, or None."""
        try:
            return self.blob((self.root / "names" / name).read_text().strip())
        except FileNotFoundError:
            return None

    def name_blob(self, name: str, sha256: str) -> None:
        """Give a name to a blob: where its digest is not known beforehand, what it holds must be judged by its reader."""
        replace(self.root / "names" / name, f"{sha256}\n".encode())

    # --- refs

    def ref(self, corpus: str, name: str) -> str | None:
        """The id that a ref names, or None. Raises DamagedError for a ref that holds no id."""
        found = self.ref_text(corpus, name)
        if found is not None and not _ID.fullmatch(found):
            raise DamagedError(
                f"ref {corpus}/{name}",
                f"it holds {found[:80]!r}",
                "an id",
                f"The last id is in {HISTORY}; the next move of the ref mends it.",
            )
        return found

    def ref_text(self, corpus: str, name: str) -> str | None:
        """What a ref holds, sound or not: the `old` of whoever is about to move it. None where there is no such ref."""
        refuse_bad_corpus(corpus)
        return _text_of(self.root / "refs" / corpus / name) if is_name(name) else None

    def refs(self, corpus: str) -> dict[str, str]:
        """All refs of a corpus, sorted by name."""
        refuse_bad_corpus(corpus)
        names = (path.name for path in visible((self.root / "refs" / corpus).glob("*")) if path.is_file())
        return {name: self.ref_text(corpus, name) or "" for name in names}

    def corpora(self) -> list[str]:
        """Every corpus that has refs, sorted; trainings as `runs/NAME`."""
        return sorted({place.rpartition("/")[0] for places in self.named_by().values() for place in places})

    def named_by(self) -> dict[str, list[str]]:
        """All refs of the store, the other way round: what a ref holds -> `corpus/name` of those that hold it, sorted."""
        root = self.root / "refs"
        found: dict[str, list[str]] = {}
        for path in (path for path in visible(root.glob("**/*")) if path.is_file()):
            found.setdefault(_text_of(path) or "", []).append(path.relative_to(root).as_posix())
        return found

    def move_ref(self, corpus: str, name: str, old: str | None, new: str, reason: str) -> None:
        """Compare-and-swap a ref. Raises RefMovedError if what it holds is no longer `old`.

        The line of the history is written first: a kill in between leaves a line without its move, never a move without its line.
        """
        if not is_name(name):
            raise ParamsError(f"ref {name[:80]!r}", "it is no name", "letters, digits, dots, underscores and hyphens")
        if self.locate(new) is None:
            raise MissingError(
                f"ref {corpus}/{name}", f"object {new[:12]} is not in the store", "", "Build again to make it."
            )
        with self._flock(_REFS_LOCK):
            found = self.ref_text(corpus, name)
            if found != old:
                raise RefMovedError(
                    f"ref {corpus}/{name}",
                    f"it is at {_short(found)}",
                    f"{_short(old)}, where this writer last saw it",
                    "Another writer moved it. Look at what it names now, then run again.",
                )
            if found != new:
                self._log(HISTORY, {"corpus": corpus, "ref": name, "old": old, "new": new, "reason": reason})
                replace(self.root / "refs" / corpus / name, f"{new}\n".encode())

    def remove_ref(self, corpus: str, name: str, reason: str) -> None:
        """Remove a ref, so that nothing is kept for its sake. The line of the history comes first, as in `move_ref`."""
        with self._flock(_REFS_LOCK):
            old = self.ref_text(corpus, name)
            if old is not None:
                self._log(HISTORY, {"corpus": corpus, "ref": name, "old": old, "new": None, "reason": reason})
                (self.root / "refs" / corpus / name).unlink()

    def history(self, corpus: str) -> list[dict[str, Any]]:
        """Every move of the refs of a corpus, oldest first. A line torn by a power cut is left out. Raises DamagedError."""
        return [entry for entry in self.entries(HISTORY, "corpus") if entry["corpus"] == corpus]

    def withdrawals(self) -> list[dict[str, Any]]:
        """Every withdrawal, and each one taken back (`is_undone`), oldest first. Raises DamagedError."""
        return list(self.entries(WITHDRAWALS, "selector"))

    def log_withdrawal(self, selector: str, reason: str, is_undone: bool = False) -> None:
        """Record that no corpus may hold what `selector` names, or that they may again."""
        with self._flock(_REFS_LOCK):
            self._log(WITHDRAWALS, {"selector": selector, "reason": reason, "is_undone": is_undone})

    def entries(self, log: Path, required: str) -> Iterator[dict[str, Any]]:
        """Iterate over the entries of an append-only log. Raises DamagedError for a line without the field `required`."""
        path = self.root / log
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        for number, line in enumerate(lines, start=1):
            try:
                entry: dict[str, Any] = json.loads(line)
                yield {**entry, required: entry[required]}
            except (ValueError, TypeError, KeyError) as error:
                raise DamagedError(
                    f"line {number} of {log}", "it is no entry", f"JSON with a {required}", "Take the line out by hand."
                ) from error

    def _log(self, log: Path, entry: dict[str, Any]) -> None:
        path = self.root / log
        make_folder(path.parent)
        with path.open("a+b") as file:
            cut_torn_line(file)
            file.write(canonical_json(entry | {"when": self.clock().isoformat()}) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        sync_folder(path.parent)

    # --- verdicts

    def put_verdicts(self, object_id: str, verdicts: Any) -> None:
        """Keep what the gates decided about an object, beside it."""
        content = {"when": self.clock().isoformat(), "verdicts": verdicts}
        replace(self.root / "verdicts" / f"{object_id}.json", json.dumps(content, indent=1, sort_keys=True).encode())

    def verdicts(self, object_id: str) -> Any:
        """What the gates last decided about an object; None if they never did. Raises DamagedError."""
        path = self.root / "verdicts" / f"{object_id}.json"
        if not path.exists():
            return None
        try:
            found = json.loads(path.read_bytes())
            return {**found, "verdicts": found["verdicts"]}
        except (ValueError, TypeError, KeyError) as error:
            raise DamagedError(
                f"verdicts of object {object_id[:12]}", f"they cannot be read ({error})", "", "Build again to judge it."
            ) from error

    # --- writing

    @contextmanager
    def writer(
        self, corpus: str, who: str, wait_seconds: float = 0.0, on_wait: Callable[[str], None] = lambda holder: None
    ) -> Iterator[Path]:
        """Hold a corpus for writing; yields its empty temporary folder. The kernel lets go when the process dies.

        `on_wait` hears once who holds it. Raises LockedError when `wait_seconds` are over.
        """
        refuse_bad_corpus(corpus)
        with self.in_use(), self._flock(corpus, who, wait_seconds, on_wait):
            folder = self.root / "tmp" / corpus
            shutil.rmtree(folder, ignore_errors=True)  # whoever held the corpus before us is dead
            folder.mkdir(parents=True)
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def in_use(self, alone: bool = False) -> Iterator[None]:
        """Hold the store beside other writers, or `alone`: objects that no ref names yet are safe while a writer holds it.

        Raises LockedError where a writer holds it and it is wanted alone, or where it is held alone for a minute.
        """
        path = self.root / "locks" / _USE_LOCK
        make_folder(path.parent)
        with path.open("a+") as file:
            wait_seconds, mode = (0.0, fcntl.LOCK_EX) if alone else (60.0, fcntl.LOCK_SH)
            acquire(file.fileno(), path, f"store {self.root}", wait_seconds, lambda holder: None, mode)
            yield

    @contextmanager
    def _flock(
        self, name: str, who: str = "", wait_seconds: float = 60.0, on_wait: Callable[[str], None] = lambda holder: None
    ) -> Iterator[None]:
        path = self.root / "locks" / name
        make_folder(path.parent)
        subject = (
            f"run {path.name}" if "/" in name else f"the store's {name[1:]}" if name[0] == "." else f"corpus {name}"
        )
        with path.open("a+") as file:
            acquire(file.fileno(), path, subject, wait_seconds, on_wait)
            file.truncate(0)
            file.write(who)
            file.flush()
            yield


def visible(paths: Iterable[Path]) -> list[Path]:
    """Sort paths and leave out hidden ones: a write that was killed leaves a hidden temporary file, which is no ref."""
    return sorted(path for path in paths if not path.name.startswith("."))


def _short(object_id: str | None) -> str:
    return object_id[:12] if object_id else "nothing"


def _text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        return None
