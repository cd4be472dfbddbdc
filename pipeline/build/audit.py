"""Audit of a stage: its stored output compared, row by row, with the stored output of the stage before.

What a stage says of itself is not read: rows in are what the stage before stored, or what the bytes of a source list, and what a
build should do comes from its request. It shares no code with the stages.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Any

from pipeline.build.oracles.audited_files import encoded_path, is_code, line_of_drop
from pipeline.build.oracles.audited_licenses import policy_sha256
from pipeline.build.oracles.audited_parts import (
    Name,
    StoredParts,
    labeled,
    listed_sources,
    source_files,
    source_of_name,
)
from pipeline.build.oracles.audited_redactions import SourceRedactions, add_redactions
from pipeline.build.oracles.audited_rows import flaws_of_rows
from pipeline.build.oracles.snapshots.held_out_documents import held_out_sources, num_in_another_split
from pipeline.build.oracles.snapshots.stored_order import misplaced_rows
from pipeline.build.oracles.withheld_names import names_as_collected
from pipeline.contracts.gates import CONSERVED
from pipeline.contracts.part import Part, PartJob, PartOutput, Tables
from pipeline.contracts.stage import AUDIT, StageTable
from pipeline.contracts.stage_report import StageReport
from pipeline.core.params import Params, canonical_json
from pipeline.core.records import PROVENANCE_CODES, Provenance, Split
from pipeline.core.table_names import DOCUMENTS, ENRICHED, FILES, KEPT, LISTED, PACKED, TOKENS
from pipeline.formats.snapshot_json import SNAPSHOT_FILE
from pipeline.lexing.languages import LANGUAGES, suffixes_commented_like_c, suffixes_not_preprocessed
from pipeline.stages.stages import STAGES, kinds_with, stage_before, stage_of_kind, tables_of

NOT_COLLECTED, OUT_OF_ORDER = "Sources without files", "Rows out of order"
"""Keys of `audit.json` whose names are of no file: sources that were requested and are not stored, and rows of tables."""
ALTERED = "Rows altered, or dropped without cause"
"""Key of the rows of which an audit and the stage say different things, of which either can be wrong."""
AUDIT_VERSION = 18
"""Raised when an audit changes."""
MAX_NAMES = 10
REDACTED = "max_redacted_fraction"
"""Measure of the largest share of a source that placeholders stand for; its limit has the same name."""


@dataclass
class Population:
    """The rows that a stage kept and dropped, by name. The same name twice counts twice."""

    kept: Counter[Name] = field(default_factory=Counter)
    dropped: Counter[Name] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    contents: dict[Name, str] = field(default_factory=dict)
    """The ids of the contents that were kept."""


def request_facts(
    pins: Iterable[Any], params: Any, withdrawn: Iterable[str] = (), decisions: Iterable[Any] = ()
) -> dict[str, Any]:
    """Return the request of a build as JSON: the pins and decisions of its request, the Params of its corpus, withdrawals."""
    # Other commands do not wait for their modules.
    from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS
    from pipeline.stages.normalize.contamination.evaluation_items import digest_of_items

    gone, in_order = set(withdrawn), sorted(pins, key=lambda pin: str(pin.name))
    decided = [each.facts() for each in decisions if each.source not in gone]
    not_preprocessed = suffixes_not_preprocessed()
    return {
        **({"decisions": sorted(decided, key=canonical_json)} if decided else {}),
        **({"changes": True} if params.collect.with_changes else {}),
        **({"not_preprocessed": not_preprocessed} if not_preprocessed else {}),
        "evaluation_sha256": digest_of_items(params.normalize.decontamination.items_folder),
        "pins": {pin.name: pin.identity() for pin in in_order if pin.name not in gone},
        "listed": sorted(kind.name for kind in SOURCE_KINDS if kind.listing is not None),
        "held_out": params.held_out.model_dump(mode="json"),
        "suffixes": sorted({suffix for language in LANGUAGES for suffix in language.suffixes}),
        "commented_like_c": suffixes_commented_like_c(),
        "licenses": {"tagged": params.normalize.licenses.keep_tagged, "policy_sha256": policy_sha256()},
        "limits": {"max_file_bytes": params.collect.max_file_bytes, **params.normalize.filters.model_dump(mode="json")},
        "contamination": params.normalize.decontamination.rules().model_dump(mode="json"),
        "copies": params.normalize.duplicates.model_dump(mode="json"),
        "languages": {
            suffix: sorted(each.one_of or (each.name,)) for each in LANGUAGES for suffix in sorted(each.suffixes)
        },
        "max_error_fraction": params.enrich.syntax.max_error_fraction,
        "weights": {pin.name: pin.weight for pin in in_order if pin.name not in gone},
        "withdrawn": sorted(gone),
    }


def audit_part(stage: str, before: Mapping[str, str], after: Mapping[str, str], request: Mapping[str, Any]) -> Part:
    """Return the audit of a stage: the parts of the stage before, its own parts and evidence, and the request of the build."""
    labels = {f"before/{name}": each for name, each in before.items()} | {
        f"after/{name}": each for name, each in after.items()
    }
    # What only one stage reads is no reason to audit the others again.
    declared = _declared(stage)
    is_read = {"withdrawn": LISTED in declared, "changes": LISTED in declared}
    is_read |= dict.fromkeys(("weights", "licenses"), "snapshot" in after)
    is_read |= dict.fromkeys(("contamination", "copies", "decisions", "evaluation_sha256"), DOCUMENTS in declared)
    is_read["commented_like_c"] = not declared.isdisjoint((DOCUMENTS, ENRICHED))
    is_read |= dict.fromkeys(("max_error_fraction", "languages", "not_preprocessed"), ENRICHED in declared)
    facts = {name: value for name, value in request.items() if is_read.get(name, True)}
    return Part(AUDIT, AUDIT, Params(), labels, {"stage": stage, "audit": AUDIT_VERSION, **facts})


def audit(job: PartJob) -> PartOutput:
    """Audit a stage, as a part: rows lost, doubled, altered or out of order, drops without cause, columns that others rely on."""
    before, after = labeled(job.inputs, "before/"), labeled(job.inputs, "after/")
    stage, request = job.identity["stage"], job.identity
    found = population(after, _content_id(stage), own=stage)
    if STAGES[stage].passes_rows_on:
        expected = population(before, _content_id(stage), own=stage)
    elif LISTED in _declared(stage):
        expected = _match_listed(after, found, request)
    elif "snapshot" in after:
        expected, found = Population(_documents(before, TOKENS)), Population(_first_pieces(after))
    else:
        expected = population(before, _content_id(stage), suffixes=request["suffixes"])
    found.dropped = names_as_collected(found.dropped, expected.kept)
    taken = found.kept + found.dropped
    redacted = redactions(before, after, request)
    flaws = [*flaws_of_rows(job, before, after), *(name for each in redacted for name in each.implausible)]
    names = {
        "Rows lost": list((expected.kept - taken).elements()),
        "Rows unknown": list((taken - expected.kept).elements()),
        OUT_OF_ORDER: list(_misplaced(stage, before, after)),
        ALTERED: [*_altered(expected, found), *flaws],
    }
    measures: dict[str, float] = {CONSERVED: sum(map(len, names.values()))}
    measures |= _checks(job, after)
    if DOCUMENTS in _declared(stage):
        measures[REDACTED] = max((each.share for each in redacted), default=0)
    some = {what: ["/".join(name) for name in sorted(found)[:MAX_NAMES]] for what, found in names.items()}
    some[NOT_COLLECTED] = _not_collected(job, after)
    report = StageReport(
        expected.kept.total(), found.kept.total(), dict(sorted(found.reasons.items())), measures=measures
    )
    return PartOutput({}, report, {"audit.json": canonical_json(some)})


def redactions(before: StoredParts, after: StoredParts, request: Mapping[str, Any]) -> list[SourceRedactions]:
    """Return the redactions of each source that a stage cleaned, those of its shards together."""
    found: defaultdict[str, SourceRedactions] = defaultdict(SourceRedactions)
    for name, stored in sorted(after.items()):
        for files in source_files(before, name) if stored.kind in kinds_with(DOCUMENTS) else ():
            add_redactions(found[source_of_name(name)], stored, files, request["commented_like_c"])
    return list(found.values())


def population(parts: StoredParts, content_id: str, own: str | None = None, suffixes: Iterable[str] = ()) -> Population:
    """Return what parts keep and drop: with the drops of the stage `own`, or without files that are no source files.

    `content_id` is the column that names the content of a row.
    """
    found = Population()
    kept_ids: set[str] = set()
    has_ids = False
    documents: list[dict[str, str]] = []
    for _, stored in sorted(parts.items()):
        for table in tables_of(stored.kind):
            if table.lists_drops and stored.kind.startswith(f"{own}/"):
                rows = stored.table(table.name, ["source", "path", "reason"]).to_pylist()
                found.dropped.update((row["source"], row["path"]) for row in rows)
                found.reasons.update(str(row["reason"]) for row in rows)
            elif table.name == KEPT:
                has_ids = True
                kept_ids.update(stored.table(KEPT, ["document_id"])["document_id"].to_pylist())
    for stored, table in _kept_tables(parts):
        rows = _rows(stored, table, content_id)
        documents.extend(row for row in rows if own or table.name != FILES or is_code(row["path"], suffixes))
    if has_ids:
        documents = [row for row in documents if row["document_id"] in kept_ids]
    found.kept.update((row["source"], row["path"]) for row in documents)
    found.contents.update(((row["source"], row["path"]), row[content_id]) for row in documents if content_id in row)
    return found


def _kept_tables(parts: StoredParts) -> Iterator[tuple[Tables, StageTable]]:
    """Yield the table of what each part keeps, the first of its kind, of the last stage that has any: others were passed on."""
    found: dict[str, list[tuple[Tables, StageTable]]] = {name: [] for name in STAGES.names}
    for _, stored in sorted(parts.items()):
        kept = (table for table in tables_of(stored.kind) if table.lists_kept and table.name != KEPT)
        found.get(stage_of_kind(stored.kind), []).extend((stored, table) for table in islice(kept, 1))
    yield from next(filter(None, reversed(found.values())), [])


def _rows(stored: Tables, table: StageTable, content_id: str) -> Iterator[dict[str, str]]:
    columns = {field.name for field in fields(table.record)} & {"source", "path", "document_id", content_id}
    yield from stored.table(table.name, sorted(columns)).to_pylist()


def _content_id(stage: str) -> str:
    """Return the column by which a stage's rows are compared with those before: what both tables have."""
    if LISTED in _declared(stage):
        return "git_blob_id"
    before = stage_before(stage)
    while before is not None and not _declared(before):
        before = stage_before(before)  # a stage without tables passes on what it was given
    return "blob_sha256" if before is not None and FILES in _declared(before) else "document_id"


def _altered(expected: Population, found: Population) -> Iterator[Name]:
    """Yield the names under which another content is kept than before."""
    both = (name for name in found.contents if name in expected.contents)
    yield from (name for name in both if found.contents[name] != expected.contents[name])


def _misplaced(stage: str, before: StoredParts, after: StoredParts) -> Iterator[Name]:
    """Yield the names of rows that a stage has stored after others that they should precede."""
    for name, stored in sorted(after.items()):
        documents = before.get(name)
        if documents is not None and documents.kind not in kinds_with(ENRICHED):
            documents = None
        for table in tables_of(stored.kind) if stored.kind.startswith(f"{stage}/") else ():
            if table.order:
                yield from misplaced_rows(source_of_name(name), table.name, table.order, stored, documents)


def _match_listed(after: StoredParts, found: Population, request: Mapping[str, Any]) -> Population:
    """Return the listed names as collect calls them: by the other name if it dropped that; and the contents of regular files.

    An optional name counts where it was taken. Of a source whose kind lists nothing, what was found is taken to be listed.
    """
    taken = found.kept + found.dropped
    raw = Counter({(source, encoded_path(path)): number for (source, path), number in taken.items()})
    called = {(source, encoded_path(path)): (source, path) for source, path in taken}
    unlisted = request["pins"].keys() - listed_sources(request)
    expected = Population(Counter({name: number for name, number in taken.items() if name[0] in unlisted}))
    listings = [stored for stored in after.values() if stored.kind in kinds_with(LISTED)]
    rows = [row for stored in listings for row in stored.table(LISTED).to_pylist()]
    names = {(row["source"], row["path"]) for row in rows}
    dropped = _dropped_lines(after)
    for row in sorted(rows, key=lambda row: row["is_optional"]):  # what must be collected has what was taken
        name = (row["source"], row["path"])
        other = None if row["other_path"] is None else (row["source"], encoded_path(row["other_path"]))
        drop = None if other is None else dropped.get(other)
        if drop is not None:
            name = drop
        elif other is not None and raw[other] and other not in names:
            name = other
        if raw[name] or not row["is_optional"]:
            raw[name] -= 1
            expected.kept[called.get(name, name)] += 1
            if row["git_blob_id"] is not None and drop is None:
                expected.contents[called.get(name, name)] = row["git_blob_id"]
    return expected


def _dropped_lines(parts: StoredParts) -> dict[Name, Name]:
    """Return what each line of JSON was dropped as, by its number: its details begin with that, and a file may have such a name."""
    found: dict[Name, Name] = {}
    for stored in parts.values():
        for table in tables_of(stored.kind):
            rows = stored.table(table.name, ["source", "path", "detail"]).to_pylist() if table.lists_drops else ()
            for row in rows:
                if line := line_of_drop(row["detail"]):
                    found[row["source"], encoded_path(line)] = (row["source"], encoded_path(row["path"]))
    return found


def _documents(parts: StoredParts, table: str) -> Counter[Name]:
    found: Counter[Name] = Counter()
    for stored in parts.values():
        if stored.kind in kinds_with(table):
            rows = stored.table(table, ["source", "document_id"])
            found.update(zip(rows["source"].to_pylist(), rows["document_id"].to_pylist(), strict=True))
    return found


def _first_pieces(parts: StoredParts) -> Counter[Name]:
    """Return the documents of packed rows, each as often as its first piece occurs, or a row is called as of another source."""
    found: Counter[Name] = Counter()
    for label, stored in parts.items():
        for split in Split if label.startswith("rows/") else ():
            for row in stored.table(PACKED[split], ["source", "source_doc_ids", "piece_indices"]).to_pylist():
                pieces = zip(row["source_doc_ids"], row["piece_indices"], strict=True)
                is_other = row["source"] != source_of_name(label)
                found.update((row["source"], name) for name, index in pieces if index == 0 or is_other)
    return found


def _checks(job: PartJob, after: StoredParts) -> dict[str, float]:
    """Return the measures of columns that are checked where a stage stores them: zero where it stored nothing."""
    declared = _declared(job.identity["stage"])
    measures: dict[str, float] = {}
    if FILES in declared:
        pins = job.identity["pins"]
        files = _with_files(after)
        measures["num_failed_sources"] = len(_not_collected(job, after))
        measures["num_files_without_revision"] = sum(
            _num_of_other_revision(stored, pins.get(source_of_name(name), {}).get("revision"))
            for name, stored in files.items()
        )
    if ENRICHED in declared:
        documents = [stored for stored in after.values() if stored.kind in kinds_with(ENRICHED)]
        measures["num_documents_without_provenance"] = sum(map(_num_without_provenance, documents))
    if "snapshot" in after:
        rows = {name: stored for name, stored in after.items() if name.startswith("rows/")}
        sources, rule = set(map(source_of_name, rows)), job.identity["held_out"]
        named = set(after["snapshot"].json(SNAPSHOT_FILE)["held_out"])
        measures["num_documents_in_another_split"] = len(named ^ held_out_sources(rule, sources)) + sum(
            num_in_another_split(source_of_name(label), stored, rule) for label, stored in rows.items()
        )
    return measures


def _not_collected(job: PartJob, after: StoredParts) -> list[str]:
    """Return the sources that were requested and are not stored, or the other way round."""
    return (
        sorted(job.identity["pins"].keys() ^ set(map(source_of_name, _with_files(after))))
        if FILES in _declared(job.identity["stage"])
        else []
    )


def _with_files(parts: StoredParts) -> dict[str, Tables]:
    return {name: stored for name, stored in parts.items() if stored.kind in kinds_with(FILES)}


def _num_of_other_revision(stored: Tables, revision: str | None) -> int:
    return sum(found != revision for found in stored.table(FILES, ["revision"])["revision"].to_pylist())


def _num_without_provenance(stored: Tables) -> int:
    known, codes = {str(each) for each in Provenance}, set(PROVENANCE_CODES.values())
    rows = stored.table(ENRICHED, ["provenance", "provenance_codes"]).to_pylist()
    return sum(row["provenance"] not in known or not codes.issuperset(row["provenance_codes"] or ()) for row in rows)


def _declared(stage: str) -> set[str]:
    return {table.name for kind in STAGES[stage].parts for table in kind.tables}
