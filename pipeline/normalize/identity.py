"""The identities of texts, records and cleaned parts."""

import hashlib
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class RulesIdentity:
    """What a cleaned part depends on beside its input and Params: its split, its pin's word on licenses, the policy,
    the evaluation items."""

    split: str
    declared_license: str
    inherit_license: bool
    license_policy_sha256: str
    evaluation_sha256: str

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def text_sha256(text: str) -> str:
    """SHA-256 of the text's UTF-8, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def document_id(source: str, path: str, content_sha256: str) -> str:
    """SHA-256 over source, path and the digest of the content, each as UTF-8 behind its length in bytes and a colon.

    Length-prefixed, so that no two different triples share a byte string. For a Document the content is its
    normalized text; for a file that left before it had one, the raw bytes.
    """
    parts = [part.encode("utf-8", "surrogateescape") for part in (source, path, content_sha256)]
    return hashlib.sha256(b"".join(b"%d:%s" % (len(part), part) for part in parts)).hexdigest()
