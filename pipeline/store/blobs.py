"""Blobs of a store: archives as received, by SHA-256, and by the names of bytes whose digest is not known beforehand."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from pipeline.core.digests import file_sha256
from pipeline.core.durable import hidden_sibling, make_folder, replace, sync
from pipeline.core.errors import DigestError
from pipeline.store.store_layout import text_of


class Blobs:
    """Blobs under `root`/blobs, downloads under `root`/tmp/.blobs, refused bytes under `root`/rejected."""

    root: Path

    def blob(self, sha256: str) -> Path | None:
        """Return the path of a blob, or None if it is missing or its bytes changed, so that it is downloaded again."""
        path = self.root / "blobs" / sha256
        return path if path.is_file() and file_sha256(path) == sha256 else None

    def partial_blob(self, sha256: str) -> Path:
        """Return the path at which an interrupted download of the blob is kept. Never read as a blob."""
        path = self.root / "tmp" / ".blobs" / f"{sha256}.part"
        make_folder(path.parent)
        return path

    def put_blob(self, chunks: Iterable[bytes], sha256: str, subject: str) -> Path:
        """Store bytes as blob `sha256`. Raises DigestError for other bytes, which are kept under rejected/."""
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
            sync(target.parent)
        except BaseException:
            arriving.unlink(missing_ok=True)
            raise
        if found != sha256:
            raise DigestError(
                subject,
                f"its bytes have sha256 {found}",
                f"{sha256}, as pinned",
                f"The bytes are kept in rejected/{found[:12]}... and not used. Check the pin, or the index that served them.",
            )
        return target

    def named_blob(self, name: str) -> Path | None:
        """Return the blob that a name such as `git/<commit>` was last given to, or None."""
        sha256 = text_of(self.root / "names" / name)
        return self.blob(sha256) if sha256 is not None else None

    def name_blob(self, name: str, sha256: str) -> None:
        """Give a blob a name. Its reader must check the content: the name does not prove it."""
        replace(self.root / "names" / name, f"{sha256}\n".encode())
