"""Links: stars of rows that share a mark, the same components however many ranges; and the parts of a large corpus."""

from random import Random
from typing import Any

import numpy as np
import pytest

from pipeline.build.replay import _with_inputs
from pipeline.contracts.part import DUPLICATES_PART, LINKS_LABEL, PartJob, PartOutput
from pipeline.contracts.stage_report import StageReport
from pipeline.core.params import Params
from pipeline.core.schema import table_of
from pipeline.stages.normalize import stage
from pipeline.stages.normalize.duplicates.partitions.links import LINKS, components, link_documents
from pipeline.stages.normalize.duplicates.partitions.marks import MARKS, NUM_ROW_BITS, MarkRecord
from pipeline.stages.stages import STAGES
from pipeline.store.store import Store
from tests.pipeline.stages.normalize.conftest import Normalize, Normalized
from tests.pipeline.stages.normalize.duplicates.partitions.made_cleaned import MadeTables
from tests.pipeline.stages.normalize.duplicates.test_duplicates import statements
from tests.pipeline.stages.normalize.duplicates.test_minhash_bands import components as components_of_pairs
from tests.pipeline.stages.normalize.test_clean_source import TAG, code

FIRST = {
    "a": {"x.cpp": code("x"), "near.cpp": statements("n")},
    "b": {"x.cpp": code("x"), "theirs.cpp": f"// {TAG} GPL-2.0-only\n" + code("g")},
}
SECOND = {**FIRST, "c": {"near.cpp": statements("n", changed=20), "relabeled.cpp": code("g"), "own.cpp": code("own")}}


def files_of(made: Normalized) -> dict[str, str]:
    manifest = made.store.read(made.result.parts[DUPLICATES_PART]).manifest
    return {entry.name: entry.sha256 for entry in manifest.files}


def num_objects(store: Store, kind: str) -> int:
    return len(list(store.root.glob(f"objects/normalize/{kind}/*")))


def test_a_large_corpus_is_compared_by_ranges_of_marks_with_the_files_of_one_part(
    normalize: Normalize, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = files_of(normalize(SECOND))
    monkeypatch.setattr(stage, "MAX_NUM_AT_ONCE", 1)
    monkeypatch.setattr(stage, "NUM_IN_RANGE", 2)
    made = normalize(FIRST)
    assert (num_objects(made.store, "marks"), num_objects(made.store, "links")) == (2, 2)

    more = normalize(SECOND)
    assert files_of(more) == wanted
    assert more.outcomes()["c/relabeled.cpp"] == "copyleft_copy"
    assert (num_objects(more.store, "marks"), num_objects(more.store, "links")) == (3, 2 + 4)

    compared = more.store.read(more.result.parts[DUPLICATES_PART])
    parts = _with_inputs(more.store, STAGES["normalize"], [compared])
    assert sum(label.startswith(LINKS_LABEL) for label in compared.inputs) == 4
    assert sorted(each.kind.partition("/")[2] for each in parts.values()) == [
        *["copies"] * 4,
        "duplicates",
        *["links"] * 4,
        *["marks"] * 3,
        *["rules"] * 3,
    ]


def linked(marks: list[list[set[int]]], num_ranges: int) -> list[MadeTables]:
    """The links of the rows of several shards, each with some marks of 40 bits, a part a range."""
    inputs: Any = {}
    for number, rows in enumerate(marks):
        found = sorted(mark << NUM_ROW_BITS | row for row, some in enumerate(rows) for mark in some)
        table = table_of(MarkRecord, {"mark": np.array(found, np.uint64)})
        inputs[f"{number:06d}"] = MadeTables(PartOutput({MARKS: table}, StageReport(len(rows), len(rows))))
    identities = ({"range": number, "num_ranges": num_ranges} for number in range(num_ranges))
    return [MadeTables(link_documents(PartJob("", Params(), inputs, identity, {}))) for identity in identities]


@pytest.mark.parametrize("num_ranges", [1, 2, 16])
def test_links_of_all_ranges_join_what_shares_a_mark(num_ranges: int) -> None:
    random = Random(num_ranges)
    some = [random.getrandbits(40) for _ in range(30)]
    shards = [[set(random.sample(some, random.randrange(4))) for _ in range(random.randrange(20))] for _ in range(4)]
    rows = [marks for shard in shards for marks in shard]
    pairs = [(low, high) for high in range(len(rows)) for low in range(high) if rows[low] & rows[high]]

    names = components(len(rows), linked(shards, num_ranges))  # type: ignore[arg-type]  # what is read of them
    groups = [np.flatnonzero(names == name).tolist() for name in np.unique(names)]
    assert [group for group in groups if len(group) > 1] == components_of_pairs(len(rows), pairs)


def test_copies_are_linked_with_the_first_of_them_alone() -> None:
    (found,) = linked([[{7}] * 100, [{7}] * 50], 1)
    assert found.table(LINKS)["link"].to_pylist() == list(range(1, 150))
