"""TokenOrigin: the file of a token of a snapshot, the bytes of it as received, its license, and the rules that it passed."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pipeline.build.stage_objects import stage_params
from pipeline.build.withdrawal import withdrawal_lines
from pipeline.core.errors import SnapshotError
from pipeline.core.records import Split
from pipeline.core.table_names import DOCUMENTS, ENRICHED
from pipeline.lineage.origins.received_document import ReceivedDocument, only_row, received_document
from pipeline.lineage.origins.token_places import RowName, RowsOfSource
from pipeline.lineage.stored_build import StoredBuild
from pipeline.pins.decisions import DECISIONS
from pipeline.stages.normalize.filters.filters import FILTERS
from pipeline.stages.stages import STAGES, stage_with

_OF_DOCUMENT = ("document_id", "source", "revision", "path", "split", "num_bytes", "blob_sha256")
_OF_EDITS = ("encoding", "edits", "num_redactions")
_OF_LICENSE = ("class", "branch", "evidence", "detail")


@dataclass(frozen=True)
class TokenOrigin:
    """The evidence of one token. `text` is what it reads as; `text_start` and `text_end` are its bytes in the normalized text.

    `start` and `end` are its bytes in the file as it was received, `changed` what normalizing changed in them. They are None where
    they cannot be known, and `missing` says why.
    """

    row: str
    slot: int
    token_id: int
    text: str
    text_start: int
    text_end: int
    piece: int
    start: int | None
    end: int | None
    changed: tuple[str, ...]
    missing: str
    document: Mapping[str, Any]
    archive: Mapping[str, Any]
    """Identity of what was collected: its `kind`, `origin` and `revision`, and the `member` that holds the file."""
    edits: Mapping[str, Any]
    """Edits of normalizing to the file as a whole."""
    license: Mapping[str, Any]
    lane: Mapping[str, str]
    rules: tuple[Mapping[str, Any], ...]
    withdrawn: tuple[str, ...]
    build: Mapping[str, Any]


class TokenOrigins:
    """The origins of the tokens of a build. What one token has read is kept for the next."""

    def __init__(self, build: StoredBuild) -> None:
        self._build = build
        self._rows = cache(lambda source, split: RowsOfSource(build, source, split))
        self._document = cache(lambda source, document_id: received_document(build, source, document_id))
        self._evidence = cache(self._evidence_of)

    def of(self, row: RowName, slot: int) -> TokenOrigin:
        """Find what a token comes from. Raises MissingError for a row, a slot or a token that has no bytes of a file."""
        rows: RowsOfSource = self._rows(row.source, Split(row.split))
        token = rows.token(row, slot)
        received: ReceivedDocument = self._document(row.source, token.piece.document_id)
        document = received.document
        if document["text"].encode()[token.start : token.end] != token.token_bytes:
            found = f"slot {slot} of row {row} is not the text of its document"
            subject, remedy = f"snapshot {self._build.snapshot_id}", "Run `python -m pipeline fsck`."
            raise SnapshotError(subject, found, "the same bytes", remedy)
        stretch = None if received.bytes_map is None else received.bytes_map.stretch(token.start, token.end)
        return TokenOrigin(
            row=str(row),
            slot=slot,
            token_id=token.token_id,
            text=token.token_bytes.decode("utf-8", "backslashreplace"),
            text_start=token.start,
            text_end=token.end,
            piece=token.piece.index,
            start=None if stretch is None else stretch.start,
            end=None if stretch is None else stretch.end,
            changed=() if stretch is None else tuple(change.name.lower() for change in stretch.changes),
            missing=received.missing,
            **self._evidence(row.source, token.piece.document_id),
        )

    def _evidence_of(self, source: str, document_id: str) -> dict[str, Any]:
        """Return the fields of an origin that all tokens of a document share."""
        build, received = self._build, self._document(source, document_id)
        document = received.document
        part = build.part(stage_with(ENRICHED).name, source)
        lane = only_row(part, ENRICHED, "path", document["path"], ("provenance", "provenance_detail"))
        return {
            "document": {name: document[name] for name in _OF_DOCUMENT},
            "archive": {**received.archive, "member": received.member, "num_bytes": received.num_bytes},
            "edits": {name: document[name] for name in _OF_EDITS},
            "license": {"expression": document["license"]}
            | {name: document[f"license_{name}"] for name in _OF_LICENSE},
            "lane": {"provenance": lane["provenance"], "detail": lane["provenance_detail"]},
            "rules": tuple(_rules(build, document)),
            "withdrawn": withdrawal_lines(build.store, source, document["path"], document["blob_sha256"]),
            "build": build.facts(),
        }


def _rules(build: StoredBuild, document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the steps that kept a document, as its row shows, the filters with measure and limit, and decisions about it."""
    for step, kind in ((step, kind) for stage in STAGES for step, kind in stage.steps.items()):
        yield {"step": step, "rule": kind.reason_kept or "kept"}
    stage = stage_with(DOCUMENTS).name
    params = stage_params(build.stage(stage))
    scores = json.loads(document["scores"])
    for each in (each for each in FILTERS if each.score in scores):
        limit = each.limit_of(params.filters)  # type: ignore[attr-defined]  # NormalizeParams
        yield {"step": stage, "rule": each.name, "measured": scores[each.score], each.limit: limit}
    part = build.part(stage, document["source"])
    if part.has(DECISIONS):
        from pipeline.stages.normalize.decided_files import decisions_about  # other files do not wait for it

        yield from ({"step": stage, "rule": text} for text in decisions_about(part, document["path"]))
