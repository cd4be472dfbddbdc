"""Difference of two builds: documents, bytes and tokens, and the rule or version that caused each change.

Read from the stored tables with DuckDB. A document is identified by source and path; the reason why a build dropped it is read
from the tables of that build. Where a gate has blocked one of them before it had tokens, no tokens are compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import duckdb

from pipeline.build.stage_objects import evidence_of, parts_of, stage_of, stage_params
from pipeline.contracts.stage import AUDIT
from pipeline.core.params import flat
from pipeline.core.table_names import DOCUMENTS, TOKENS
from pipeline.lineage.queries import QueryRow, connect, create_drops, query, table_files
from pipeline.lineage.stored_build import StoredBuild
from pipeline.stages.normalize.decided_files import outcomes_in
from pipeline.stages.stages import STAGES, listing_stage, stage_with
from pipeline.store.objects import StoredObject
from pipeline.store.snapshot import open_snapshot

_DOCUMENTS = """create table {side}_documents as select t.source, t.path, t.split, t.text_sha256, t.num_bytes, d.blob_sha256,
    d.license, len(t.input_ids)::bigint as num_tokens, if({compared}, hash(t.input_ids), 0) as tokens
    from read_parquet($tokens) as t join read_parquet($rules) as d using (document_id)"""
_UNTOKENIZED = """create table {side}_documents as select source, path, split, text_sha256, num_bytes, blob_sha256, license,
    null::bigint as num_tokens, 0 as tokens
    from read_parquet($rules) as d anti join {side}_drops as lost on d.document_id = lost.record_id"""
_CHANGES = """create table changes as select
    coalesce(a.source, b.source) as source, coalesce(a.path, b.path) as path,
    case when a.path is null then 'added' when b.path is null then 'removed' else 'changed' end as change,
    coalesce(b.num_bytes, 0)::bigint - coalesce(a.num_bytes, 0)::bigint as num_bytes,
    case when a.path is null then b.num_tokens when b.path is null then -a.num_tokens else b.num_tokens - a.num_tokens end
        as num_tokens,
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
_DROPS = """with a as (select reason, count(*) as number from a_drops where stage in (select unnest($steps)) group by reason),
    b as (select reason, count(*) as number from b_drops where stage in (select unnest($steps)) group by reason)
    select reason, coalesce(a.number, 0)::bigint as a, coalesce(b.number, 0)::bigint as b
    from a full join b using (reason) where a.number is distinct from b.number order by reason"""
_CHANGED = "select * from changes order by source, path, change limit $limit"
_TOTALS = """select count(*) as num_documents, coalesce(sum(num_bytes), 0)::bigint as num_bytes,
    coalesce(sum(num_tokens), 0)::bigint as num_tokens from {side}_documents"""


@dataclass(frozen=True)
class Difference:
    """From build `a` to build `b`, each named by its snapshot, or by the last output of one without. Sizes are what b has more."""

    a: str
    b: str
    totals: Mapping[str, QueryRow]
    """`a` and `b`: documents, bytes of text, tokens; None for those of a build that was blocked before it had them."""
    settings: list[QueryRow]
    """Differences in how they were made: versions and libraries of stages, parameters, pins, held-out sources."""
    causes: list[QueryRow]
    """By change (added, removed, changed) and cause: documents, bytes, tokens, sources."""
    drops: list[QueryRow]
    """By reason: how many files and documents the stages dropped that both have reached, where the numbers differ."""
    documents: list[QueryRow]
    """Some or all of the documents that changed, sorted by source and path."""

    def as_json(self) -> QueryRow:
        return asdict(self)


def difference(a: StoredBuild, b: StoredBuild, num_documents: int = 20) -> Difference:
    """Compare build `a` with build `b`, listing at most `num_documents` documents.

    Raises MissingError for a build that has not reached normalize.
    """
    database = connect()
    sides = {"a": _ComparedBuild(a), "b": _ComparedBuild(b)}
    has_tokens = all(side.tokens for side in sides.values())
    for name, side in sides.items():
        side.load(database, name, has_tokens)
    settings = list(_settings(sides["a"], sides["b"]))
    database.execute("create table part_changes (input varchar, cause varchar)")
    for name, cause in _part_changes(sides["a"].parts, sides["b"].parts, [row["name"] for row in settings]):
        database.execute("insert into part_changes values ($name, $cause)", {"name": name, "cause": cause})
    database.execute(_CHANGES)
    return Difference(
        a=sides["a"].name,
        b=sides["b"].name,
        totals={name: side.totals(database, name) for name, side in sides.items()},
        settings=settings,
        causes=query(database, _CAUSES),
        drops=query(database, _DROPS, steps=_shared_steps(a, b)),
        documents=query(database, _CHANGED, limit=num_documents),
    )


class _ComparedBuild:
    """One of the two builds."""

    def __init__(self, build: StoredBuild) -> None:
        self.store, self.stages = build.store, build.stages
        build.stage(stage_with(DOCUMENTS).name)  # raises if it was not reached
        assert build.reached is not None
        self.snapshot = None if build.snapshot_id is None else open_snapshot(build.store, build.snapshot_id)
        self.name = build.snapshot_id or build.reached.object_id
        self.rules, self.tokens = build.parts_with(DOCUMENTS), build.parts_with(TOKENS)
        named = {"rules": self.rules, "rows": self.tokens}
        self.parts = {f"{label}/{name}": part for label, parts in named.items() for name, part in parts.items()}

    def load(self, database: duckdb.DuckDBPyConnection, side: str, has_tokens: bool) -> None:
        """Make the tables `<side>_documents`, `<side>_drops` and `<side>_sources`."""
        create_drops(database, self.store, self.stages)
        database.execute(f"alter table drops rename to {side}_drops")
        files = {"rules": table_files(self.rules.values(), DOCUMENTS)}
        if self.tokens:
            files["tokens"] = table_files(self.tokens.values(), TOKENS)
        documents = _DOCUMENTS if self.tokens else _UNTOKENIZED
        database.execute(documents.format(side=side, compared=has_tokens), files)
        collected = list(parts_of(self.stages[listing_stage().name]))
        database.execute(f"create table {side}_sources as select unnest($names) as name", {"names": collected})

    def totals(self, database: duckdb.DuckDBPyConnection, side: str) -> QueryRow:
        """Count the documents of a side that was loaded; no tokens where it has not reached them."""
        return query(database, _TOTALS.format(side=side))[0] | ({} if self.tokens else {"num_tokens": None})

    def settings(self, has_snapshots: bool) -> QueryRow:
        """Return everything that decided what was built, by dotted name."""
        found: QueryRow = {}
        for name, stored in self.stages.items():
            identity = stored.manifest.identity
            found[f"{name}.version"] = identity["version"]
            found |= {f"{name}.libraries.{library}": version for library, version in identity["libraries"].items()}
            found |= flat(stage_params(stored).model_dump(mode="json"), name)
        found |= self._decisions()
        if not has_snapshots or self.snapshot is None:
            request = self.store.read(evidence_of(self.stages[listing_stage().name])[AUDIT]).manifest.identity
            return found | flat({"pins": request["pins"], "held_out": request["held_out"]})
        content = self.snapshot.content
        found |= {f"vocabulary.{name}": content["vocabulary"][name] for name in ("name", "sha256")}
        return found | flat({"pins": content["pins"], "held_out": content["held_out"]})

    def _decisions(self) -> QueryRow:
        """Return the decisions of people about files of the sources, each with who and why."""
        decisions = [outcome.decision for part in self.rules.values() for outcome in outcomes_in(part)]
        return {f"decisions.{each.name}: {each.what}": f"{each.person}: {each.reason}" for each in decisions}


def _shared_steps(a: StoredBuild, b: StoredBuild) -> list[str]:
    return [step for stage in STAGES if stage.name in a.stages and stage.name in b.stages for step in stage.steps]


def _settings(a: _ComparedBuild, b: _ComparedBuild) -> Iterator[QueryRow]:
    """Yield what differs. Settings of stages that only one of them has reached are no difference."""
    has_snapshots = a.snapshot is not None and b.snapshot is not None
    before, after = a.settings(has_snapshots), b.settings(has_snapshots)
    alone = a.stages.keys() ^ b.stages.keys()
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name) and name.partition(".")[0] not in alone:
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
