"""Copies among changes: which documents of change are dropped in favor of another, or with their file.

Changes are compared with changes alone: those with equal hunks are one, and similar ones are copies where they are of different
sources. A version of a file is like the one before, and like the file: that is no reason to drop it. What is left of a file that is
dropped as a copy of copyleft text, or of what is held out, is not kept as its changes either.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pipeline.core.records import DuplicateRecord, Split
from pipeline.stages.normalize.duplicates.duplicates import ComparedDocument, Reason

CHANGE_SIGNATURES = "change_signatures.parquet"
"""Table of SignatureRecord of the changes of a source: their `text_sha256` is that of their hunks."""


def follow_files(
    changes: Iterable[ComparedDocument], lost_files: Iterable[DuplicateRecord], documents: Iterable[ComparedDocument]
) -> list[DuplicateRecord]:
    """Return the changes that go with their file, for its reason. An equal text of a file is only like a change of it."""
    splits = {document.document_id: document.split for document in documents}
    gone = {(record.source, record.path): record for record in lost_files if _takes_changes(record, splits)}
    found = []
    for change in changes:
        record = gone.get((change.source, change.file_path))
        if record is not None:
            reason = Reason.NEAR_DUPLICATE if record.reason == Reason.EXACT_DUPLICATE else record.reason
            lost = {name: getattr(change, name) for name in ("document_id", "source", "path", "num_bytes")}
            found.append(replace(record, **lost, reason=reason))
    return found


def _takes_changes(record: DuplicateRecord, splits: Mapping[str, str]) -> bool:
    is_held_out = (splits.get(record.document_id), splits.get(record.keeper_id)) == (Split.TRAIN, Split.HELD_OUT)
    return record.reason == Reason.COPYLEFT_COPY or is_held_out
