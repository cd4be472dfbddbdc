"""WithdrawnPart: an object of a collected source with the rows of it that hold what is withdrawn, as it came or in words.

An erasure empties these rows; an import that would bring some is refused. What the others hold of the same bytes stays.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipeline.build.withdrawal import held_files, version_digests
from pipeline.contracts.part import EVIDENCE_LABEL
from pipeline.core.change_text import change_path
from pipeline.core.errors import MissingError
from pipeline.core.schema import TextOrigin, text_columns
from pipeline.core.table_names import DROPPED, EVIDENCE, FILES, HISTORY, TREE, VERSIONS
from pipeline.formats.tables import read_table
from pipeline.pins.selection import Selector, Selectors, gathered
from pipeline.stages.stages import STAGES
from pipeline.store.objects import StoredObject
from pipeline.store.store import Store

if TYPE_CHECKING:
    import pyarrow as pa

_CONTENTS = {EVIDENCE: "content", HISTORY: "subject", TREE: "content"}
"""Columns of what a withdrawal by digest may name in collected tables that have no column of digests."""


class WithdrawnPart(NamedTuple):
    """An object of a collected source: the digests and paths of its withdrawn files, and its files without them, as tables.

    Each digest, and each table, has the selectors that match what goes of it.
    """

    source: StoredObject
    part: StoredObject
    """The source itself or, where it was collected in shards, one of what that stored."""
    digests: Mapping[str, frozenset[Selector]]
    paths: tuple[str, ...]
    tables: Mapping[str, "pa.Table"]
    emptied_by: Mapping[str, frozenset[Selector]]


def parts_with_bytes(store: Store, source: StoredObject) -> list[StoredObject]:
    """Return the objects of which a source is made: itself or, where it was collected in shards, these and its evidence."""
    return [*source.shards, store.read(source.inputs[EVIDENCE_LABEL])] if source.is_joined else [source]


def withdrawn_parts(
    source: StoredObject, parts: Iterable[StoredObject], selectors: Selectors
) -> Iterator[WithdrawnPart]:
    """Iterate over the objects of a collected source, each with what is withdrawn of it, which may be nothing."""
    changes = version_digests(source).items()
    name, objects = source.identity["name"], list(parts)
    by_path = ((path, selectors.matching(name, path, *sha256s)) for path, sha256s in changes)
    paths = {path: set(matching) for path, matching in by_path if matching}
    for file in (file for part in objects if selectors.has_digests for file in _files_of(part, FILES)):
        for row in read_table([file], ["path", "blob_sha256"]).to_pylist():
            if matching := selectors.matching(name, row["path"], row["blob_sha256"]):
                paths.setdefault(row["path"], set()).update(matching)
    for part in objects:  # with the paths of all: one may name a file of which another has the words
        yield _withdrawn_part(source, part, selectors, paths)


def kept_digests(source: StoredObject, selectors: Selectors, digests: Collection[str]) -> frozenset[str]:
    """Return those of the digests of which a collected source has the bytes in rows that are not withdrawn."""
    if not any(row["blob_sha256"] in digests for row in held_files(source)):
        return frozenset()
    name, changes = source.identity["name"], version_digests(source)
    return frozenset(
        row["blob_sha256"]
        for row in held_files(source, "content")
        if row["blob_sha256"] in digests
        and row["content"]  # what was erased before has its digest alone
        and not selectors.matching(name, row["path"], row["blob_sha256"], *changes.get(row["path"], ()))
    )


def paths_left_out(source: StoredObject, selectors: Selectors) -> dict[str, frozenset[Selector]]:
    """Return the withdrawn paths that a source was collected without, each with the selectors that match it.

    Of one that goes by its digest, the bytes are known.
    """
    rows = source.table(DROPPED, ["path", "reason", "detail"]).to_pylist()
    by_detail = {f"by {each.text}": [each] for each in selectors.all}
    found = dict[str, frozenset[Selector]]()
    for path, detail in ((row["path"], row["detail"]) for row in rows if row["reason"] == "withdrawn"):
        matching = [*by_detail.get(detail, ()), *selectors.matching(source.identity["name"], path, None)]
        if matching:
            found[path] = frozenset(matching)
    return found


def _withdrawn_part(
    source: StoredObject, part: StoredObject, selectors: Selectors, paths: Mapping[str, Collection[Selector]]
) -> WithdrawnPart:
    """Return an object with what is withdrawn of it; `paths` are those of what goes by a digest, each with the selectors."""
    tables: dict[str, pa.Table] = {}
    digests, concerned = list[tuple[str, frozenset[Selector]]](), list[str]()
    emptied_by: dict[str, frozenset[Selector]] = {}
    for name, columns in _raw_columns().items():
        for path in _files_of(part, name):
            table = read_table([path])
            rows = _matched(name, source.identity["name"], table, selectors, paths)
            if name in (FILES, VERSIONS):
                digests += _where(table, "blob_sha256", rows)
            emptied = _without_words(table, columns, [*map(bool, rows)])
            is_changed = not emptied.equals(table)
            if is_changed:
                tables[path.name] = emptied
                emptied_by[path.name] = frozenset[Selector]().union(*rows)
            if is_changed or name in (FILES, VERSIONS):
                concerned.extend(place for place, _ in _where(table, "path", rows))
    return WithdrawnPart(source, part, gathered(digests), tuple(concerned), tables, emptied_by)


def _raw_columns() -> dict[str, list[str]]:
    """Return the collected tables, each with the columns of what its source said."""
    found = {table.name: text_columns(table.record) for kind in STAGES["collect"].parts for table in kind.tables}
    as_it_came = (TextOrigin.RAW, TextOrigin.SCRUBBED)  # collect scrubs nothing
    columns = {
        name: [column for column, origin in origins.items() if origin in as_it_came]
        for name, origins in found.items()
        if "path" in origins
    }
    return {name: columns[name] for name in sorted(columns)}


def _files_of(part: StoredObject, table: str) -> list[Path]:
    try:
        return part.paths(table)
    except MissingError:  # only built sources have a tree, only those with a history have its modifications
        return []


def _matched(
    name: str,
    source: str,
    table: "pa.Table",
    selectors: Selectors,
    withdrawn_paths: Mapping[str, Collection[Selector]],
) -> list[frozenset[Selector]]:
    """Return of each row of a collected table the selectors that match the file which it is about."""
    paths = table["path"].to_pylist()
    if name == VERSIONS:  # other versions of a file that goes by its digest have digests of their own
        withdrawn_paths = {}
    changes = map(change_path, table["commit_hash"].to_pylist(), paths) if name == HISTORY else paths
    found = [
        frozenset(
            [
                *withdrawn_paths.get(path, ()),
                *withdrawn_paths.get(change, ()),
                *selectors.matching(source, path, sha256),
            ]
        )
        for path, change, sha256 in zip(paths, changes, _digests(name, table, selectors), strict=True)
    ]
    if name == DROPPED:  # what a withdrawal dropped says by which selector, and nothing of its source
        reasons = table["reason"].to_pylist()
        return [each if reason != "withdrawn" else frozenset() for each, reason in zip(found, reasons, strict=True)]
    return found


def _digests(name: str, table: "pa.Table", selectors: Selectors) -> list[str | None]:
    """Return the digest of what each row of a collected table holds, None where nothing is withdrawn by its digest."""
    if not selectors.has_digests or name not in (FILES, VERSIONS, *_CONTENTS):
        return [None] * table.num_rows
    if name not in _CONTENTS:
        digests: list[str | None] = table["blob_sha256"].to_pylist()
        return digests
    contents = table[_CONTENTS[name]].cast("large_binary").to_pylist()
    return [hashlib.sha256(content).hexdigest() for content in contents]


def _where(
    table: "pa.Table", column: str, rows: Iterable[frozenset[Selector]]
) -> list[tuple[str, frozenset[Selector]]]:
    """Return the values of the rows that selectors match, each with these."""
    return [(value, matching) for value, matching in zip(table[column].to_pylist(), rows, strict=True) if matching]


def _without_words(table: "pa.Table", columns: Iterable[str], rows: list[bool]) -> "pa.Table":
    """Return a table with nothing in these columns of some rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for column in columns:
        place = table.schema.get_field_index(column)
        field = table.schema.field(place)
        empty = pa.scalar(b"" if pa.types.is_large_binary(field.type) else "", field.type)
        is_here = pc.and_(pa.chunked_array([pa.array(rows, pa.bool_())]), pc.is_valid(table[column]))
        table = table.set_column(place, field, pc.if_else(is_here, empty, table[column]))
    return table
