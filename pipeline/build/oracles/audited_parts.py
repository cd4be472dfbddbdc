"""Parts as an audit reads them: by their labels, shard by shard, and the source that each is of."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.build.oracles.audited_files import encoded_path
from pipeline.contracts.joined_parts import source_of
from pipeline.contracts.part import EVIDENCE_LABEL, Tables
from pipeline.core.table_names import EVIDENCE, FILES, LISTED
from pipeline.formats.snapshot_json import SNAPSHOT_ROWS
from pipeline.stages.stages import kinds_with

Name = tuple[str, str]
"""Source and path of a file or document."""
StoredParts = Mapping[str, Tables]


@dataclass
class Listing:
    """Facts of all listings: how often each name is no regular file, and the largest content and the contents under each name."""

    irregular: Counter[Name] = field(default_factory=Counter)
    sizes: dict[Name, int] = field(default_factory=dict)
    contents: dict[Name, set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, parts: Mapping[str, Tables]) -> "Listing":
        """Read the listings among parts, once."""
        found = cls()
        for stored in parts.values():
            for row in stored.table(LISTED).to_pylist() if stored.kind in kinds_with(LISTED) else ():
                paths = {row["path"], row["other_path"] and encoded_path(row["other_path"])} - {None}
                names = [(row["source"], path) for path in paths]
                if row["git_blob_id"] is None:
                    found.irregular.update(names)
                if row["num_bytes"] is not None:
                    found.sizes.update((name, max(found.sizes.get(name, 0), row["num_bytes"])) for name in names)
                for name in names if row["git_blob_id"] is not None else ():
                    found.contents.setdefault(name, set()).add(row["git_blob_id"])
        return found


def labeled(inputs: Mapping[str, Tables], prefix: str) -> dict[str, Tables]:
    """Return the parts under labels of a prefix, by name; in place of a joined one its shards, each under the name of the whole, a
    dot, and its own digits: one is in memory at a time.
    """
    found: dict[str, Tables] = {}
    for label, stored in inputs.items():
        name = label.removeprefix(prefix)
        if label.startswith(prefix):
            found |= {_of_shard(name, each): each for each in stored.shards} if stored.is_joined else {name: stored}
    return found


def _of_shard(name: str, shard: Tables) -> str:
    return f"{name}.{str(shard.identity['name']).rpartition('.')[2]}"


def source_of_name(name: str) -> str:
    """Return the source that a part, a shard or the rows of one are of."""
    return source_of(name.removeprefix(SNAPSHOT_ROWS))


def evidence_beside(before: Mapping[str, Tables], name: str) -> dict[str, bytes]:
    """Return the evidence of a source that stands beside its shards, by path; none for one in one part."""
    stored = before.get(f"{source_of_name(name)}.{EVIDENCE_LABEL}")
    table = None if stored is None else stored.table(EVIDENCE, ["path", "content"])
    return {} if table is None else dict(zip(table["path"].to_pylist(), table["content"].to_pylist(), strict=True))


def listed_sources(request: Mapping[str, Any]) -> set[str]:
    """Return the sources that can be listed."""
    return {name for name, pin in request["pins"].items() if pin["kind"] in request["listed"]}


def source_files(parts: StoredParts, name: str) -> list[Tables]:
    """Return the part of a source, if it holds files: in a list of one."""
    return [parts[name]] if name in parts and parts[name].kind in kinds_with(FILES) else []
