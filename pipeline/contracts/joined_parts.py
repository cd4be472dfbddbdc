"""Joined parts: a source that is made shard by shard, each a part of its own, and one part that lists them in order.

A shard is called as its source, a dot, and digits of the digest of its first path: it keeps its name when files come or go
elsewhere. Whoever reads the joined part finds the rows of all shards in their order, which is that of the paths.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipeline.contracts.part import MadePart, Part, PartJob, PartOutput, StageContext, Tables
from pipeline.contracts.stage_report import StageReport, total
from pipeline.core.errors import SourceError
from pipeline.formats.tables import SHARD_LABEL

JOIN = "join"
"""Name of the part function that joins shards."""
JOIN_SHARDS = "pipeline.contracts.joined_parts:join_shards"
"""Place of it: stages declare both for the parts of sources."""


def source_of(part: str) -> str:
    """Return the name of the source that a part, or a shard of one, is of."""
    return part.partition(".")[0]


def join_shards(job: PartJob) -> PartOutput:
    """Return the sum of the reports of shards, as a part. Their tables are read through it, and not stored again."""
    shards = (stored for label, stored in job.inputs.items() if label.startswith(SHARD_LABEL))
    return PartOutput({}, total(StageReport(**stored.json("report.json")) for stored in shards))


def join_part(
    source: str, shards: Sequence[Part], ids: Mapping[str, str], facts: Mapping[str, Any] | None = None
) -> Part:
    """Return the part that lists shards, by the ids of those that were made.

    What all of them depend on is in its identity, and the facts of the source as a whole.
    """
    first, *others = shards
    same = {
        name: value
        for name, value in first.identity.items()
        if all(each.identity.get(name) == value for each in others)
    }
    inputs = {f"{SHARD_LABEL}{number:05d}": ids[shard.name] for number, shard in enumerate(shards)}
    return Part(source, JOIN, first.params, inputs, same | dict(facts or {}))


def shard_parts(source: str, stored: Tables, part_of: Callable[[str, Tables], Part]) -> list[Part]:
    """Return a part for each shard of what a source was made into before, or one for a source that has none."""
    if not stored.is_joined:
        return [part_of(source, stored)]
    return [part_of(str(shard.identity["name"]), shard) for shard in stored.shards]


def make_joined(
    context: StageContext[Any],
    wanted: Mapping[str, Sequence[Part]],
    facts: Mapping[str, Mapping[str, Any]] | None = None,
) -> tuple[dict[str, MadePart], dict[str, SourceError]]:
    """Make the parts of each source, and join those of a source in shards; return both by source. A source fails with a shard.

    `facts` of a source are in the identity of what lists its shards, and not in theirs.
    """
    made, failed = context.make([part for parts in wanted.values() for part in parts])
    failures = {source_of(name): error for name, error in sorted(failed.items())}
    ids = {name: part.object_id for name, part in made.items()}
    joins = [
        join_part(source, parts, ids, (facts or {}).get(source, {}))
        for source, parts in wanted.items()
        if source not in failures and [part.name for part in parts] != [source]
    ]
    joined, more = context.make(joins) if joins else ({}, {})
    whole = {source: made[source] for source in wanted if source in made}
    return dict(sorted({**whole, **joined}.items())), failures | dict(more)
