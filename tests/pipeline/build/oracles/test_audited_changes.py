"""Changes hold what their commits did, in the order of their chains, and are copies of changes that they may be compared with."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from pipeline.build.oracles.audited_changes import (
    OF_HISTORY,
    file_of,
    may_be_no_link,
    mischanged_files,
    miscompared_changes,
    misdated_documents,
)
from pipeline.build.stage_objects import parts_of
from pipeline.core.table_names import DOCUMENTS, HISTORY, PACKED, TOKENS
from pipeline.stages.verify.packed_rows import count_commit_order_violations
from pipeline.store.objects import StoredObject
from pipeline.store.store import Store

Rows = list[dict[str, Any]]
ASKED: dict[str, Any] = {"changes": True, "pins": {"loom": {"history": True}}}
ONE, TWO = "a" * 40, "b" * 40


class Altered:
    """A stored part of which some tables have other rows."""

    def __init__(self, stored: StoredObject, **tables: Callable[[Rows], Rows]) -> None:
        self._stored, self._changes = stored, tables
        self.object_id, self.kind, self.identity = stored.object_id, stored.kind, stored.identity

    def table(self, name: str, columns: Any = None) -> pa.Table:
        table = self._stored.table(name, columns)
        change = self._changes.get(name.partition(".")[0])
        return table if change is None else pa.Table.from_pylist(change(table.to_pylist()), schema=table.schema)

    def has(self, name: str) -> bool:
        return self._stored.has(name)


def part(store: Store, stage: str) -> StoredObject:
    return store.read(parts_of(store.read(store.ref("tiny", stage) or ""))["loom"])


def of_changes(change: Callable[[bytes], bytes]) -> Callable[[Rows], Rows]:
    return lambda rows: [row | {"content": change(row["content"])} if ":" in row["path"] else row for row in rows]


def swapped(rows: Rows) -> Rows:
    """The links of the longest chain in another order, each with the number of its new place."""
    chain = [row for row in rows if row["path"] == "src/n.h"]
    numbers = [row["file_local_commit_index"] for row in chain]
    moved = [row | {"file_local_commit_index": number} for row, number in zip(chain[::-1], numbers, strict=True)]
    return [row for row in rows if row["path"] != "src/n.h"] + moved


def test_the_made_chains_are_sound(tiny_store: Store) -> None:
    collected = part(tiny_store, "collect")
    assert list(mischanged_files("loom", collected, ASKED)) == []
    assert list(mischanged_files("loom", collected, {"pins": ASKED["pins"]})) == [("loom", "its changes")]
    assert list(mischanged_files("loom", collected, {**ASKED, "pins": {}})) == [("loom", "its changes")]


@pytest.mark.parametrize(
    "tables",
    [
        {"history": swapped},
        {"history": lambda rows: [row for row in rows if row["path"] != "src/n.h"]},
        {"history": lambda rows: [row | {"subject": "Other"} for row in rows]},
        {"files": of_changes(lambda content: content.replace(b"int ", b"long "))},
        {"files": of_changes(lambda content: content + b"int one_more;\n")},
        {"files": of_changes(lambda content: content.replace(b"//@@ after\n", b""))},
        {"files": of_changes(lambda content: content.replace(b"// path: ", b"// path: x/"))},
        {"versions": lambda rows: [row | {"content": row["content"] + b"\n"} for row in rows]},
        {"versions": lambda rows: []},
    ],
    ids=[
        "shuffled",
        "lost links",
        "subject",
        "lines",
        "one line more",
        "marks",
        "path",
        "other versions",
        "no versions",
    ],
)
def test_a_change_that_is_not_what_its_commit_did_is_seen(tiny_store: Store, tables: dict[str, Any]) -> None:
    found = list(mischanged_files("loom", Altered(part(tiny_store, "collect"), **tables), ASKED))

    assert any(file_of(path) == "src/n.h" for _, path in found)


def test_a_document_of_another_place_in_its_chain_is_seen(tiny_store: Store) -> None:
    names = ["source", "path", *OF_HISTORY]
    documents = part(tiny_store, "normalize").table(DOCUMENTS, names)
    history = part(tiny_store, "collect").table(HISTORY).to_pylist()
    known = {f"{row['commit_hash']}:{row['path']}": row for row in history}
    later = {path: row | {"file_local_commit_index": row["file_local_commit_index"] + 1} for path, row in known.items()}
    files = {path for path in documents["path"].to_pylist() if ":" not in path}

    assert list(misdated_documents(documents, known)) == []
    assert {path for _, path in misdated_documents(documents, later)} == {
        path for path in documents["path"].to_pylist() if ":" in path
    }
    assert files <= {
        path for _, path in misdated_documents(documents, known | dict.fromkeys(files, later.popitem()[1]))
    }


def test_real_rows_of_commits_are_in_order_and_shuffled_ones_are_counted(tiny_store: Store) -> None:
    tokenized = part(tiny_store, "tokenize")
    tokens, packed = tokenized.table(TOKENS), tokenized.table(PACKED["train"])
    dated = [row for row in packed.to_pylist() if row["filepath_stable_id"] is not None]
    several = [row for row in dated if len(set(row["file_local_commit_indices"])) > 1]
    turned = [
        row | {name: row[name][::-1] for name in ("source_doc_ids", "file_local_commit_indices")} for row in several
    ]
    known = tokens["file_local_commit_index"].to_pylist()
    longest = max(number for number in known if number is not None)
    numbers = pa.array([None if number is None else longest - number for number in known], pa.int32())
    place = tokens.column_names.index("file_local_commit_index")
    renumbered = tokens.set_column(place, tokens.schema.field(place), numbers)

    assert several
    assert count_commit_order_violations(tokens, packed) == 0
    assert count_commit_order_violations(tokens, pa.Table.from_pylist(turned, schema=packed.schema)) == len(several)
    assert count_commit_order_violations(renumbered, packed) > 0


@pytest.mark.parametrize(
    ("reason", "num_bytes", "history", "expected"),
    [
        ("small_change", 49, True, True),
        ("small_change", 50, True, False),
        ("large_change", 50_001, True, True),
        ("large_change", 50_000, True, False),
        ("not_modified", 0, True, True),
        ("not_modified", 0, False, False),
        ("other_language", 0, True, False),
    ],
)
def test_a_change_is_no_link_by_its_size_or_what_its_commit_is(
    reason: str, num_bytes: int, history: bool, expected: bool
) -> None:
    row = {"path": f"{ONE}:a.c", "reason": reason, "num_bytes": num_bytes}

    assert may_be_no_link(row, {"history": history}) is expected
    assert not may_be_no_link(row | {"path": "a.c"}, {"history": history})


def copy(path: str, keeper: str, source: str = "one", keeper_source: str = "two", reason: str = "near_duplicate"):
    return {
        "source": source,
        "path": path,
        "document_id": f"{source}/{path}",
        "reason": reason,
        "keeper_source": keeper_source,
        "keeper_path": keeper,
        "keeper_id": f"{keeper_source}/{keeper}",
    }


class Cleaned:
    """The documents of a source."""

    kind = "normalize/rules"

    def __init__(self, texts: dict[str, str]) -> None:
        self._table = pa.table({"document_id": list(texts), "text": list(texts.values())})

    def table(self, name: str, columns: Any = None) -> pa.Table:
        return self._table.select(columns)


@pytest.mark.parametrize(
    ("rows", "flaws"),
    [
        ([copy(f"{ONE}:a.c", f"{TWO}:a.c")], 0),
        ([copy("a.c", "b.c")], 0),
        ([copy("a.c", f"{TWO}:a.c")], 1),
        ([copy(f"{ONE}:a.c", "a.c")], 1),
        ([copy(f"{ONE}:a.c", f"{TWO}:a.c", keeper_source="one")], 0),
        ([copy(f"{ONE}:a.c", f"{TWO}:b.c", keeper_source="one")], 1),
        ([copy("a.c", "b.c", reason="copyleft_copy"), copy(f"{ONE}:a.c", "b.c", reason="copyleft_copy")], 0),
        ([copy(f"{ONE}:a.c", "b.c", reason="copyleft_copy")], 1),
    ],
    ids=["another", "files", "change", "file", "equal hunks", "versions", "with its file", "alone"],
)
def test_what_may_not_be_compared_is_seen(rows: Rows, flaws: int) -> None:
    texts = {f"one/{ONE}:a.c": "s\np\nequal", f"one/{TWO}:a.c": "t\nq\nequal", f"one/{TWO}:b.c": "s\np\nother"}

    assert len(list(miscompared_changes(rows, [Cleaned(texts)], {}))) == flaws  # type: ignore[list-item]


def test_a_hunk_that_may_lie_in_several_places_is_laid_where_all_of_it_fits() -> None:
    from pipeline.build.oracles.audited_changes import _are_laid

    block = [b"x", b"y", b"z"]
    before = [b"a", b"b", b"c", *block, *block, b"m", b"a", b"b", b"c", *block, b"n"]
    after = [*before[:13], b"new", *before[13:]]
    hunk = ([b"a", b"b", b"c", *block], [b"a", b"b", b"c", b"new", *block])

    assert _are_laid([hunk], before, after)
    assert not _are_laid([hunk], before, [*after, b"more"])
    assert not _are_laid([hunk], before, before)
