"""Audit of a stage: its stored output compared, name by name, with the stored output of the stage before.

What a stage says of itself is not read: rows in are what the stage before stored, or what the bytes of a source list. It shares no
code with the stages.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import quote_from_bytes

from pipeline.contracts.gates import CONSERVED
from pipeline.contracts.part import LISTING_SUFFIX, Part, PartJob, PartOutput, StageOutput, Tables
from pipeline.contracts.stage_report import StageReport
from pipeline.core.params import Params, canonical_json
from pipeline.core.records import PROVENANCE_CODES, Provenance, Split
from pipeline.core.table_names import ENRICHED, FILES, KEPT, LISTED, PACKED, TOKENS, TRAINING_ROWS
from pipeline.stages.stages import AUDIT, STAGES, StageTable

AUDIT_VERSION = 1
"""Raised when an audit changes."""
_ESCAPE = re.compile(rb"\\(?:\\|x([0-9a-f]{2}))")
_MAX_NAMES = 10

Name = tuple[str, str]
"""Source and path of a file or document."""
StoredParts = Mapping[str, Tables]


@dataclass
class Population:
    """The rows that a stage kept and dropped, by name. The same name twice counts twice."""

    kept: Counter[Name] = field(default_factory=Counter)
    dropped: Counter[Name] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)


def audit_part(stage: str, output: StageOutput, inputs: Mapping[str, str], facts: Mapping[str, Any]) -> Part:
    """Return the audit of a stage's output. `inputs` are the parts of the stage before; `facts` what the build was asked for."""
    after = {**output.parts, **output.evidence}
    labels = {f"before/{name}": object_id for name, object_id in inputs.items()}
    labels |= {f"after/{name}": object_id for name, object_id in after.items()}
    identity = {"stage": stage, "audit": AUDIT_VERSION, **facts}
    return Part(AUDIT, AUDIT, Params(), labels, identity)


def audit(job: PartJob) -> PartOutput:
    """Audit a stage, as a part: rows lost, doubled or of unknown origin, and columns that other stages rely on."""
    before, after = _labeled(job.inputs, "before/"), _labeled(job.inputs, "after/")
    found = population(after, job.identity["stage"])
    listed = {name: stored for name, stored in after.items() if _has_table(stored, LISTED)}
    if LISTED in _declared(job.identity["stage"]):
        expected = _match_listed(listed, found)
    elif "snapshot" in after:
        expected, found = _documents(before, TOKENS), Population(_first_pieces(after))
    else:
        expected = population(before).kept
    lost, unknown = expected - (found.kept + found.dropped), (found.kept + found.dropped) - expected
    measures: dict[str, float] = {CONSERVED: lost.total() + unknown.total()}
    measures |= _checks(job, after)
    report = StageReport(expected.total(), found.kept.total(), dict(sorted(found.reasons.items())), measures=measures)
    names = {"lost": _first(lost), "unknown": _first(unknown)}
    return PartOutput({}, report, {"audit.json": canonical_json(names)})


def population(parts: StoredParts, own: str | None = None) -> Population:
    """Return what parts keep and drop. Drops are those of the stage `own`; without one, files of evidence are left out."""
    found = Population()
    kept_ids: set[str] = set()
    has_ids = False
    documents: list[tuple[Name, str | None]] = []
    for _, stored in sorted(parts.items()):
        for table in _tables_of(stored):
            if table.lists_drops and stored.kind.startswith(f"{own}/"):
                rows = stored.table(table.name, ["source", "path", "reason"]).to_pylist()
                found.dropped.update((row["source"], row["path"]) for row in rows)
                found.reasons.update(str(row["reason"]) for row in rows)
            elif table.name == KEPT:
                has_ids = True
                kept_ids.update(stored.table(KEPT, ["document_id"])["document_id"].to_pylist())
            elif table.lists_kept:
                documents.extend(_rows(stored, table, with_evidence=own is not None))
    if has_ids:
        documents = [(name, document_id) for name, document_id in documents if document_id in kept_ids]
    found.kept.update(name for name, _ in documents)
    return found


def _rows(stored: Tables, table: StageTable, with_evidence: bool) -> Iterator[tuple[Name, str | None]]:
    columns = {field.name for field in fields(table.record)}
    wanted = [name for name in ("source", "path", "document_id", "is_evidence") if name in columns]
    for row in stored.table(table.name, wanted).to_pylist():
        if with_evidence or not row.get("is_evidence"):
            yield (row["source"], row["path"]), row.get("document_id")


def _match_listed(listed: Mapping[str, Tables], found: Population) -> Counter[Name]:
    """Return the listed names as collect calls them. A name that it did not take is the other one, if it dropped that.

    An optional name counts where it was taken. Of a source whose kind lists nothing, what was found is taken to be listed.
    """
    taken = found.kept + found.dropped
    raw = Counter({(source, _encoded(path)): number for (source, path), number in taken.items()})
    called = {(source, _encoded(path)): (source, path) for source, path in taken}
    expected = Counter({name: number for name, number in taken.items() if f"{name[0]}{LISTING_SUFFIX}" not in listed})
    for stored in listed.values():
        for row in stored.table(LISTED).to_pylist():
            name = (row["source"], row["path"])
            other = None if row["other_path"] is None else (row["source"], _encoded(row["other_path"]))
            if not raw[name]:
                if row["is_optional"]:
                    continue
                name = other if other is not None and raw[other] else name
            raw[name] -= 1
            expected[called.get(name, name)] += 1
    return expected


def _encoded(path: str) -> str:
    """Return a path as listings write it: percent-encoded bytes, the escapes of a printable path undone."""
    text = path.encode("utf-8", "surrogateescape")
    return quote_from_bytes(_ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()) if match[1] else b"\\", text))


def _documents(parts: StoredParts, table: str) -> Counter[Name]:
    found: Counter[Name] = Counter()
    for stored in parts.values():
        if _has_table(stored, table):
            rows = stored.table(table, ["source", "document_id"])
            found.update(zip(rows["source"].to_pylist(), rows["document_id"].to_pylist(), strict=True))
    return found


def _first_pieces(parts: StoredParts) -> Counter[Name]:
    """Return the documents of packed rows, each as often as its first piece occurs."""
    found: Counter[Name] = Counter()
    for label, stored in parts.items():
        for split in Split if label.startswith("rows/") else ():
            for row in stored.table(PACKED[split], ["source", "source_doc_ids", "piece_indices"]).to_pylist():
                pieces = zip(row["source_doc_ids"], row["piece_indices"], strict=True)
                found.update((row["source"], name) for name, index in pieces if index == 0)
    return found


def _checks(job: PartJob, after: StoredParts) -> dict[str, float]:
    """Return the measures of columns that are checked where a stage stores them: zero where it stored nothing."""
    declared = _declared(job.identity["stage"])
    measures: dict[str, float] = {}
    if FILES in declared:
        revisions = job.identity["revisions"]
        files = [(stored, revisions[name]) for name, stored in after.items() if _has_table(stored, FILES)]
        measures["num_files_without_revision"] = sum(_num_of_other_revision(*pair) for pair in files)
    if ENRICHED in declared:
        documents = [stored for stored in after.values() if _has_table(stored, ENRICHED)]
        measures["num_documents_without_provenance"] = sum(map(_num_without_provenance, documents))
    if "snapshot" in after:
        rows = {name: stored for name, stored in after.items() if name.startswith("rows/")}
        held_out = {f"rows/{name}" for name in job.identity["held_out"]}
        measures["num_documents_in_another_split"] = sum(
            _num_in_another_split(stored, Split.HELD_OUT if name in held_out else Split.TRAIN)
            for name, stored in rows.items()
        )
    return measures


def _num_of_other_revision(stored: Tables, revision: str) -> int:
    return sum(found != revision for found in stored.table(FILES, ["revision"])["revision"].to_pylist())


def _num_in_another_split(stored: Tables, split: Split) -> int:
    """Count documents that are labeled, or rows that are stored, as of another split than that of their source."""
    (other,) = set(Split) - {split}
    labels: list[str] = stored.table(TOKENS, ["split"])["split"].to_pylist()
    rows = stored.table(PACKED[other], ["pack_id"]), stored.table(TRAINING_ROWS[other], ["lengths"])
    return len(labels) - labels.count(split) + sum(int(table.num_rows) for table in rows)


def _num_without_provenance(stored: Tables) -> int:
    known, codes = {str(each) for each in Provenance}, set(PROVENANCE_CODES.values())
    rows = stored.table(ENRICHED, ["provenance", "provenance_codes"]).to_pylist()
    return sum(row["provenance"] not in known or not codes.issuperset(row["provenance_codes"] or ()) for row in rows)


def _labeled(inputs: StoredParts, prefix: str) -> dict[str, Tables]:
    return {label.removeprefix(prefix): stored for label, stored in inputs.items() if label.startswith(prefix)}


def _declared(stage: str) -> set[str]:
    return {table.name for kind in STAGES[stage].parts for table in kind.tables}


def _tables_of(stored: Tables) -> tuple[StageTable, ...]:
    kinds = {kind.kind: kind.tables for stage in STAGES for kind in stage.parts}
    return kinds.get(stored.kind, ())


def _has_table(stored: Tables, name: str) -> bool:
    return name in {table.name for table in _tables_of(stored)}


def _first(names: Counter[Name]) -> list[str]:
    return ["/".join(name) for name in sorted(names.elements())[:_MAX_NAMES]]
