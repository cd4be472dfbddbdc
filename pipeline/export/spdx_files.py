"""Files of a bill of materials: each document of a snapshot, with the digests of its file as received and its license.

The digests are of the bytes that were collected; SPDX asks for the SHA-1 of a file, which no other table has.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

from pipeline.core.table_names import DOCUMENTS, FILES, TOKENS
from pipeline.store.objects import StoredObject
from pipeline.store.snapshot import Snapshot, SnapshotSource

_SHOWN = ("document_id", "path", "blob_sha256", "license", "license_evidence", "license_detail", "commit_hash")


def spdx_files(snapshot: Snapshot, source: SnapshotSource) -> Iterator[dict[str, Any]]:
    """Iterate over the files of a source that have documents in a snapshot, in the order of its rows, each as SPDX has it."""
    store = snapshot.store
    rules = store.read(snapshot.stored.manifest.inputs[f"rules/{source.name}"])
    collected = (store.read(shard.manifest.inputs["files"]) for shard in rules.shards)
    sha1s = {sha256: sha1 for files in collected for sha256, sha1 in _sha1s(files).items()}
    documents = {row["document_id"]: row for row in rules.table(DOCUMENTS, _SHOWN).to_pylist()}
    for name in store.read(source.rows).table(TOKENS, ["document_id"])["document_id"].to_pylist():
        yield _file(source.name, documents[name], sha1s.get(documents[name]["blob_sha256"]))


def _file(source: str, row: dict[str, Any], sha1: str | None) -> dict[str, Any]:
    at = f" of commit {row['commit_hash']}" if row["commit_hash"] else ""
    digests = [("SHA1", sha1), ("SHA256", row["blob_sha256"])]
    return {
        "SPDXID": f"SPDXRef-File-{row['document_id']}",
        "fileName": f"./{source}/{row['path']}",
        "fileTypes": ["SOURCE"],
        "checksums": [{"algorithm": name, "checksumValue": value} for name, value in digests if value],
        "licenseConcluded": row["license"],
        "licenseComments": f"By {row['license_evidence']}{at}: {row['license_detail']}",
        "copyrightText": "NOASSERTION",
    }


def _sha1s(collected: StoredObject) -> dict[str, str]:
    """Return the SHA-1 of each collected file by its SHA-256."""
    table = collected.table(FILES, ["blob_sha256", "content"])
    contents = zip(table["blob_sha256"].to_pylist(), table["content"], strict=True)
    return {name: hashlib.sha1(content.as_py(), usedforsecurity=False).hexdigest() for name, content in contents}
