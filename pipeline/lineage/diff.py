"""What changed between two snapshots: documents, bytes and tokens, and the rule or version that caused it.

Asked of the stored tables with DuckDB. A document is known by source and path; what an old build dropped it for is read from
the old build's tables, what a new one dropped it for from the new one's.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import duckdb

from pipeline.build.promotion import evidence
from pipeline.build.stages import parts_of, stage_params
from pipeline.core.params import flat
from pipeline.store.objects import StoredObject
from pipeline.store.snapshot import Snapshot, open_snapshot
from pipeline.store.store import Store

Row = dict[str, Any]

_DOCUMENTS = """create table {side}_documents as select t.source, t.path, t.split, t.text_sha256, t.num_bytes, d.blob_sha256,
    d.license, len(t.input_ids) as num_tokens, hash(t.input_ids) as tokens
    from read_parquet($tokens) as t join read_parquet($rules) as d using (document_id)"""
_DROPS = """create table {side}_drops as
    select source, path, 'collect' as stage, reason, detail from read_parquet($collected)
    union all select source, path, 'normalize', reason, detail from read_parquet($cleaned)
    union all select source, path, 'duplicates', reason,
        format('keeper {{}}/{{}}, Jaccard {{:.3f}}', keeper_source, keeper_path, jaccard)
        from read_parquet($compared)"""
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
        when a.text_sha256 <> b.text_sha256 then 'normalize'
        when a.split <> b.split then 'held out'
        when a.tokens <> b.tokens then 'tokenize'
        else 'license' end as cause,
    coalesce(was.detail, now.detail, '') as detail
from a_documents as a full join b_documents as b on a.source = b.source and a.path = b.path
    left join a_drops as was on a.path is null and was.source = b.source and was.path = b.path
    left join b_drops as now on b.path is null and now.source = a.source and now.path = a.path
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
    totals: Mapping[str, Row]
    """`a` and `b`: documents, bytes of text, tokens."""
    settings: list[Row]
    """What the two were made with that differs: versions and libraries of stages, parameters, pins, held-out sources."""
    causes: list[Row]
    """By change (added, removed, changed) and cause: documents, bytes, tokens, sources."""
    documents: list[Row]
    """Some or all of the documents that changed, sorted by source and path."""

    def as_json(self) -> Row:
        return asdict(self)


def difference(store: Store, a: str, b: str, num_documents: int = 20) -> Difference:
    """What changed from snapshot `a` to snapshot `b`, with at most `num_documents` documents by name.

    Raises MissingError or SnapshotError for an id that is no snapshot with its stages in the store.
    """
    database = duckdb.connect(":memory:", config={"threads": 1})
    sides = {"a": _Side(store, a), "b": _Side(store, b)}
    for name, side in sides.items():
        side.load(database, name)
    database.execute(_CHANGES)
    return Difference(
        a=a,
        b=b,
        totals={name: _rows(database, _TOTALS.format(side=name))[0] for name in sides},
        settings=list(_settings(sides["a"], sides["b"])),
        causes=_rows(database, _CAUSES),
        documents=_rows(database, _CHANGED, limit=num_documents),
    )


class _Side:
    """One of the two snapshots, with the stages that made it."""

    def __init__(self, store: Store, snapshot_id: str) -> None:
        self.store = store
        self.snapshot: Snapshot = open_snapshot(store, snapshot_id)
        self.stages: dict[str, StoredObject] = {
            stored.manifest.kind.split("/")[0]: stored for stored in evidence(store, snapshot_id)
        }

    def load(self, database: duckdb.DuckDBPyConnection, side: str) -> None:
        """Make the tables `<side>_documents`, `<side>_drops` and `<side>_sources`."""
        rules = dict(parts_of(self.stages["normalize"]))
        duplicates = rules.pop("duplicates")
        collected = parts_of(self.stages["collect"])
        database.execute(
            _DOCUMENTS.format(side=side),
            {
                "tokens": self._files((source.rows for source in self.snapshot.sources), "tokens.parquet"),
                "rules": self._files(rules.values(), "documents.parquet"),
            },
        )
        database.execute(
            _DROPS.format(side=side),
            {
                "collected": self._files(collected.values(), "dropped.parquet"),
                "cleaned": self._files(rules.values(), "dropped.parquet"),
                "compared": self._files([duplicates], "duplicates.parquet"),
            },
        )
        database.execute(f"create table {side}_sources as select unnest($names) as name", {"names": sorted(collected)})

    def _files(self, parts: Iterable[str], table: str) -> list[str]:
        return [str(path) for part in parts for path in self.store.read(part).paths(table)]

    def settings(self) -> Row:
        """Everything that decided the snapshot, by dotted name."""
        found: Row = {}
        for name, stored in self.stages.items():
            identity = stored.manifest.identity
            found[f"{name}.version"] = identity["version"]
            found |= {f"{name}.libraries.{library}": version for library, version in identity["libraries"].items()}
            found |= flat(stage_params(stored).model_dump(mode="json"), name)
        content = self.snapshot.content
        found |= {f"vocabulary.{name}": content["vocabulary"][name] for name in ("name", "sha256")}
        return found | flat({"pins": content["pins"], "held_out": content["held_out"]})


def _settings(a: _Side, b: _Side) -> Iterator[Row]:
    before, after = a.settings(), b.settings()
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield {"name": name, "a": before.get(name), "b": after.get(name)}


def _rows(database: duckdb.DuckDBPyConnection, query: str, **parameters: Any) -> list[Row]:
    cursor = database.execute(query, parameters)
    names = [column[0] for column in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
