"""The identities of texts and records. Length-prefixed, so that no two different triples share a byte string."""

import hashlib


def text_sha256(text: str) -> str:
    """SHA-256 of the text's UTF-8, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def document_id(source: str, path: str, content_sha256: str) -> str:
    """SHA-256 over source, path and the digest of the content, each as UTF-8 behind its length in bytes and a colon.

    For a Document the content is its normalised text; for a file that left before it had one, the raw bytes.
    """
    parts = [part.encode("utf-8", "surrogateescape") for part in (source, path, content_sha256)]
    return hashlib.sha256(b"".join(b"%d:%s" % (len(part), part) for part in parts)).hexdigest()
