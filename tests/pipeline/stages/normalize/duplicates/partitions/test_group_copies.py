"""Copies of a group: copyleft first, then copies, without what is left out; and what contains what."""

from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa

from pipeline.stages.normalize.duplicates.partitions.corpus_rows import CorpusRows, spill_copyleft, spill_documents
from pipeline.stages.normalize.duplicates.partitions.group_copies import (
    Group,
    Rule,
    find_group_contained,
    find_group_copies,
)
from pipeline.stages.normalize.params import DuplicateParams
from tests.pipeline.stages.normalize.duplicates.partitions.made_cleaned import MadeFile, cleaned
from tests.pipeline.stages.normalize.duplicates.test_duplicates import statements
from tests.support.made.made_amalgamations import file_of


def one_group(files: dict[str, list[MadeFile]], folder: Path) -> tuple[Group, pa.Table | None, Rule]:
    """All documents of some sources as one group."""
    sources = {name: cleaned(name, some) for name, some in files.items()}
    rows = CorpusRows(sources, (), {})  # type: ignore[arg-type]  # what is read of them
    groups = np.zeros(rows.num_rows, np.int32)
    table = spill_documents(rows, groups, folder / "documents").read(0)
    assert table is not None
    return Group(table), spill_copyleft(rows, groups, folder / "copyleft").read(0), Rule(DuplicateParams(), rows)


def test_copyleft_copies_go_first_and_what_is_left_out_is_no_keeper(tmp_path: Path) -> None:
    files = {
        "a": [MadeFile("x.cpp", statements("x")), MadeFile("g.cpp", statements("g", changed=10))],
        "b": [MadeFile("x.cpp", statements("x", changed=10)), MadeFile("g.cpp", statements("g"), is_copyleft=True)],
        "c": [MadeFile("x.cpp", statements("x", changed=12))],
    }
    group, copyleft, rule = one_group(files, tmp_path)
    ids = {f"{entry.source}/{entry.path}": entry.document_id for entry in group.entries}

    def lost(*left_out: str) -> dict[str, tuple[str, str]]:
        found = find_group_copies(group, copyleft, rule, {ids[name] for name in left_out})
        return {f"{each.source}/{each.path}": (each.keeper_source, each.reason) for each in found}

    held = {"a/g.cpp": ("b", "copyleft_copy")}
    assert lost() == held | {"b/x.cpp": ("a", "near_duplicate"), "c/x.cpp": ("a", "near_duplicate")}
    assert lost("a/x.cpp") == held | {"c/x.cpp": ("b", "near_duplicate")}


def test_a_part_goes_for_what_contains_it_and_keeps_its_number(tmp_path: Path) -> None:
    random = Random(1)
    part, rest = file_of("part", random, 6), file_of("rest", random, 12)
    files = {"a": [MadeFile("part.h", "".join(part))], "b": [MadeFile("whole.h", "".join([*rest, *part]))]}
    group, _, rule = one_group(files, tmp_path)
    found, entries = find_group_contained(group, [(0, 1)], rule)
    ((name, lost),) = found.items()
    assert (lost.record.reason, lost.record.path, lost.record.keeper_path) == ("contained", "part.h", "whole.h")
    assert [entries[each].path for each in lost.keeper_ids] == ["whole.h"]
    assert group.numbers[name] == 0
    assert find_group_contained(group, [], rule)[0] == {}
