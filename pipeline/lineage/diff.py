"""Difference of two snapshots: documents, bytes and tokens, and the rule or version that caused each change.

Read from the stored tables with DuckDB. A document is identified by source and path; the reason why a build dropped it is read
from the tables of that build.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import duckdb

from pipeline.build.promotion import evidence
from pipeline.build.stage_objects import parts_of, stage_of, stage_params
from pipeline.core.params import flat
from pipeline.core.table_names import DOCUMENTS, TOKENS
from pipeline.lineage.queries import QueryRow, connect, create_drops, query, table_files
from pipeline.stages.normalize.decided_files import outcomes_in
from pipeline.stages.stages import listing_stage
from pipeline.store.objects import StoredObject
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store

_DOCUMENTS = """create table {side}_documents as select t.source, t.path, t.split, t.text_sha256, t.num_bytes, d.blob_sha256,
    d.license, len(t.input_ids) as num_tokens, hash(t.input_ids) as tokens
    from read_parquet($tokens) as t join read_parquet($rules) as d using (document_id)"""
_CHANGES = """create table changes as select
    coalesce(a.source, b.source) as source, coalesce(a.path, b.path) as path,
    case when a.path is null then 'added' when b.path is null then 'removed' else 'changed' end as change,
    coalesce(b.num_bytes, 0)::bigint - coalesce(a.num_bytes, 0)::bigint as num_bytes,
    coalesce(b.num_tokens, 0)::bigint - coalesce(a.num_tokens, 0)::bigint as num_tokens,
    case
        when a.path is null then coalesce('no longer ' || was.reason,
            if(b.source in (from a_sources), 'new in its source', 'new source'))
        when b.path is null then coalesce(now.reason, if(a.source in (from b_sources), 'gone from its source', 'source left'))
        when a.blob_sha256 <> b.blob_sha256 then 'file changed'
        when a.text_sha256 <> b.text_sha256 then coalesce(rules.cause, 'text')
        when a.split <> b.split then 'held out'
        when a.tokens <> b.tokens then coalesce(rows.cause, 'tokens')
        else coalesce(rules.cause, 'license') end as cause,
    coalesce(was.detail, now.detail, '') as detail
from a_documents as a full join b_documents as b on a.source = b.source and a.path = b.path
    left join a_drops as was on a.path is null and was.source = b.source and was.path = b.path
    left join b_drops as now on b.path is null and now.source = a.source and now.path = a.path
    left join part_changes as rules on rules.input = 'rules/' || b.source
    left join part_changes as rows on rows.input = 'rows/' || b.source
where a.path is null or b.path is null or (a.text_sha256, a.split, a.tokens, a.license, a.blob_sha256)
    is distinct from (b.text_sha256, b.split, b.tokens, b.license, b.blob_sha256)"""
_CAUSES = """select change, cause, count(*) as num_documents, sum(num_bytes)::bigint as num_bytes,
    sum(num_tokens)::bigint as num_tokens, list(distinct source order by source) as sources
    from changes group by change, cause order by change, num_documents desc, cause"""
_CHANGED = "select * from changes order by source, path, change limit $limit"
_TOTALS = """select count(*) as num_documents, coalesce(sum(num_bytes), 0)::bigint as num_bytes,
    coalesce(sum(num_tokens), 0)::bigint as num_tokens from {side}_documents"""


@dataclass(frozen=True)
class Difference:
    """From snapshot `a` to snapshot `b`. Sizes of changes are signed: what b has more than a."""

    a: str
    b: str
    totals: Mapping[str, QueryRow]
    """`a` and `b`: documents, bytes of text, tokens."""
    settings: list[QueryRow]
    """Differences in how they were made: versions and libraries of stages, parameters, pins, held-out sources."""
    causes: list[QueryRow]
    """By change (added, removed, changed) and cause: documents, bytes, tokens, sources."""
    documents: list[QueryRow]
    """Some or all of the documents that changed, sorted by source and path."""

    def as_json(self) -> QueryRow:
        return asdict(self)


def difference(store: Store, a: str, b: str, num_documents: int = 20) -> Difference:
    """Compare snapshot `a` with snapshot `b`, listing at most `num_documents` documents.

    Raises MissingError or SnapshotError for an id that is not a snapshot with its stages in the store.
    """
    database = connect()
    sides = {"a": _ComparedSnapshot(store, a), "b": _ComparedSnapshot(store, b)}
    for name, side in sides.items():
        side.load(database, name)
    settings = list(_settings(sides["a"], sides["b"]))
    database.execute("create table part_changes (input varchar, cause varchar)")
    for name, cause in _part_changes(sides["a"].parts, sides["b"].parts, [row["name"] for row in settings]):
        database.execute("insert into part_changes values ($name, $cause)", {"name": name, "cause": cause})
    database.execute(_CHANGES)
    return Difference(
        a=a,
        b=b,
        totals={name: query(database, _TOTALS.format(side=name))[0] for name in sides},
        settings=settings,
        causes=query(database, _CAUSES),
        documents=query(database, _CHANGED, limit=num_documents),
    )


class _ComparedSnapshot:
    """One of the two snapshots, with the stages that made it."""

    def __init__(self, store: Store, snapshot_id: str) -> None:
        self.store = store
        self.snapshot = open_snapshot(store, snapshot_id)
        self.stages = {stage_of(stored): stored for stored in evidence(store, snapshot_id)}
        inputs = sorted(self.snapshot.stored.manifest.inputs.items())
        self.parts = {label: store.read(object_id) for label, object_id in inputs if "/" in label}

    def load(self, database: duckdb.DuckDBPyConnection, side: str) -> None:
        """Make the tables `<side>_documents`, `<side>_drops` and `<side>_sources`."""
        rules, rows = (
            [self.parts[f"{label}/{source.name}"] for source in self.snapshot.sources] for label in ("rules", "rows")
        )
        files = {"tokens": table_files(rows, TOKENS), "rules": table_files(rules, DOCUMENTS)}
        database.execute(_DOCUMENTS.format(side=side), files)
        create_drops(database, self.store, self.stages)
        database.execute(f"alter table drops rename to {side}_drops")
        collected = list(parts_of(self.stages[listing_stage().name]))
        database.execute(f"create table {side}_sources as select unnest($names) as name", {"names": collected})

    def settings(self) -> QueryRow:
        """Return everything that decided the snapshot, by dotted name."""
        found: QueryRow = {}
        for name, stored in self.stages.items():
            identity = stored.manifest.identity
            found[f"{name}.version"] = identity["version"]
            found |= {f"{name}.libraries.{library}": version for library, version in identity["libraries"].items()}
            found |= flat(stage_params(stored).model_dump(mode="json"), name)
        found |= self._decisions()
        content = self.snapshot.content
        found |= {f"vocabulary.{name}": content["vocabulary"][name] for name in ("name", "sha256")}
        return found | flat({"pins": content["pins"], "held_out": content["held_out"]})

    def _decisions(self) -> QueryRow:
        """Return the decisions of people about files of the sources, each with who and why."""
        parts = [part for label, part in self.parts.items() if label.startswith("rules/")]
        decisions = [outcome.decision for part in parts for outcome in outcomes_in(part)]
        return {f"decisions.{each.name}: {each.what}": f"{each.person}: {each.reason}" for each in decisions}


def _settings(a: _ComparedSnapshot, b: _ComparedSnapshot) -> Iterator[QueryRow]:
    before, after = a.settings(), b.settings()
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield {"name": name, "a": before.get(name), "b": after.get(name)}


def _part_changes(
    before: Mapping[str, StoredObject], after: Mapping[str, StoredObject], settings: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield each input of both snapshots whose part was made otherwise, with what differs in its identity, by dotted name.

    The identity holds a digest of the part's Params: if it differs, the settings of the stage that differ are named.
    """
    for label in sorted(before.keys() & after.keys()):
        stage = stage_of(after[label])
        old, new = (flat(parts[label].manifest.identity, stage) for parts in (before, after))
        names = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
        if f"{stage}.params" in names:
            names = names - {f"{stage}.params"} | {name for name in settings if name.startswith(f"{stage}.")}
        if names:
            yield label, ", ".join(sorted(names))
