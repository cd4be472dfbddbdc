"""SHA-256 digests of files and texts, and the ids of documents."""

import hashlib
from pathlib import Path


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file of any size, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_sha256(text: str) -> str:
    """Return the SHA-256 of the text's UTF-8, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def document_id(source: str, path: str, content_sha256: str) -> str:
    """Return the SHA-256 over source, path and the digest of the content, each as UTF-8 after its length in bytes and a colon.

    Length-prefixed, so that no two different triples share a byte string. The content of a Document is its normalized
    text; of a file that was dropped before it had one, the raw bytes.
    """
    parts = [part.encode("utf-8", "surrogateescape") for part in (source, path, content_sha256)]
    return hashlib.sha256(b"".join(b"%d:%s" % (len(part), part) for part in parts)).hexdigest()
