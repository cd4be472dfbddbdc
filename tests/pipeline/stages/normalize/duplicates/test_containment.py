"""Containment: the choice between part and container, keepers that are kept, and any order."""

from collections.abc import Mapping, Sequence
from random import Random

import pytest

from pipeline.core.records import DuplicateRecord
from pipeline.stages.normalize.duplicates.containment import find_contained, follow_keepers
from pipeline.stages.normalize.duplicates.duplicates import Reason, duplicate_record
from pipeline.stages.normalize.params import DuplicateParams
from tests.support.made.made_amalgamations import INCLUDES, compared, file_of, function


def find(files: Mapping[str, str], held_out: Sequence[str] = (), **params: int | float) -> dict[str, DuplicateRecord]:
    """The losses by path. A path begins with the source."""
    entries, samples, shingles = compared(files, held_out)
    found = find_contained(entries, samples, shingles.__getitem__, DuplicateParams(**params))
    assert all(name not in found for each in found.values() for name in each.keeper_ids)
    return {name: each.record for name, each in found.items()}


def amalgamation(random: Random) -> dict[str, str]:
    parts = {f"a/{name}.h": INCLUDES + "".join(file_of(name, random, 4)) for name in ("one", "two", "three")}
    return {**parts, "a/single.h": "namespace all {\n" + "".join(parts.values()) + "}\n"}


def test_an_amalgamation_of_kept_files_is_dropped_with_the_number_of_them() -> None:
    (lost,) = find(amalgamation(Random(1))).values()
    assert (lost.path, lost.reason, lost.num_keepers) == ("single.h", "container", 3)
    assert lost.jaccard > 0.95


def test_a_file_in_a_larger_one_is_dropped() -> None:
    random = Random(2)
    part, rest = (file_of(name, random, number) for name, number in (("part", 2), ("rest", 20)))
    files = {"a/part.h": "".join(part), "b/whole.h": "".join([*rest[:9], *part, *rest[9:]])}
    (lost,) = find(files).values()
    assert (lost.source, lost.reason, lost.keeper_path, lost.num_keepers) == ("a", "contained", "whole.h", 1)
    assert 0.9 < lost.jaccard <= 1


@pytest.mark.parametrize(
    ("held_out", "lost"),
    [
        ("a", {"b/whole.h": ("container", "part.h", 1)}),
        ("b", {"a/part.h": ("contained", "whole.h", 1), "c/rest.h": ("contained", "whole.h", 1)}),
        ("ac", {"b/whole.h": ("container", "rest.h", 2)}),
        ("bc", {"a/part.h": ("contained", "whole.h", 1), "c/rest.h": ("contained", "whole.h", 1)}),
    ],
)
def test_of_what_two_splits_share_the_training_text_goes(
    held_out: str, lost: Mapping[str, tuple[str, str, int]]
) -> None:
    random = Random(3)
    part, rest = (file_of(name, random, number) for name, number in (("part", 3), ("rest", 9)))
    files = {"a/part.h": "".join(part), "c/rest.h": "".join(rest), "b/whole.h": "".join([*part, *rest])}
    found = find(files, list(held_out))
    assert {name: (each.reason, each.keeper_path, each.num_keepers) for name, each in found.items()} == lost
    assert set(find({name: files[name] for name in ("a/part.h", "b/whole.h")}, ["a"])) == {"b/whole.h"}


def test_a_part_that_goes_is_replaced_by_what_contains_it() -> None:
    random = Random(4)
    first, second, more = (file_of(name, random, 4) for name in ("first", "second", "more"))
    files = {
        "a/first.h": "".join(first),
        "a/second.h": "".join(second),
        "a/single.h": "".join(first + second),
        "b/larger.h": "".join(first + more + more[:1]),
    }
    lost = find(files)
    assert {path: record.reason for path, record in lost.items()} == {
        "a/first.h": "contained",
        "a/single.h": "container",
    }
    assert lost["a/single.h"].num_keepers == 2


def test_of_nested_amalgamations_the_files_stay() -> None:
    random = Random(5)
    parts = {f"a/{name}.h": "".join(file_of(name, random, 4)) for name in ("one", "two", "three", "four")}
    texts = list(parts.values())
    files = {**parts, "a/inner.h": "".join(texts[:2]), "a/outer.h": "".join(texts)}
    assert set(find(files)) == {"a/inner.h", "a/outer.h"}


def test_the_answer_does_not_depend_on_the_order() -> None:
    random = Random(6)
    files = {**amalgamation(random)}
    part, rest = (file_of(name, random, number) for name, number in (("part", 2), ("rest", 9)))
    files |= {
        "b/part.h": "".join(part),
        "c/whole.h": "".join(part + rest),
        "d/larger.h": "".join(part + rest + rest[:1]),
    }
    wanted = find(files)
    assert {"a/single.h", "b/part.h"} <= set(wanted)
    for _ in range(3):
        entries, samples, shingles = compared(files)
        names = random.sample(list(files), len(files))
        shuffled = compared({name: files[name] for name in names})
        again = find_contained(entries, samples, shingles.__getitem__, DuplicateParams())
        moved = sorted(shuffled[0], key=lambda entry: [each.document_id for each in entries].index(entry.document_id))
        other = find_contained(moved, shuffled[1], shuffled[2].__getitem__, DuplicateParams())
        assert {name: each.record for name, each in other.items()} == wanted
        assert {name: each.record for name, each in again.items()} == wanted


def test_siblings_of_like_sizes_stay() -> None:
    random = Random(7)
    common = file_of("common", random, 20)
    files = {f"a/{name}.h": "".join([*common, *file_of(name, random, 3)]) for name in ("u16", "u32")}
    assert find(files) == {}


def test_siblings_stay_also_where_one_holds_the_parts_of_the_other() -> None:
    random = Random(10)
    first, second, own, other = (file_of(name, random, 8) for name in ("first", "second", "own", "other"))
    files = {
        "a/first.h": "".join(first),
        "a/second.h": "".join(second),
        "a/sibling.h": "".join(first + second + own[:2]),
        "a/larger.h": "".join(first + second + other[:6]),
    }
    assert set(find(files)) == {"a/first.h", "a/second.h"}


def test_boilerplate_of_many_files_is_no_evidence() -> None:
    """Small files of which 85 % is a table of macros that forty files have: none is dropped, though each is in a larger one."""
    random = Random(8)
    table = "".join(f"#define FLAG_{number} (1 << {number})\n" for number in range(60))
    files = {f"a/{number}.h": table + function(f"own{number}", random, 4) for number in range(40)}
    files["a/large.h"] = table + "".join(file_of("large", random, 12))
    assert len(find(files)) > 30
    assert find(files, max_num_sharing=30) == {}


def test_a_near_copy_of_a_contained_document_is_contained_where_that_is() -> None:
    random = Random(9)
    part, rest = (file_of(name, random, number) for name, number in (("part", 4), ("rest", 20)))
    files = {
        "a/part.h": "".join(part),
        "b/copy.h": "".join(part[:3]) + function("own", random),
        "c/whole.h": "".join(part + rest),
    }
    entries, samples, shingles = compared(files)
    kept = [entry for entry in entries if entry.source != "b"]
    found = find_contained(kept, samples, shingles.__getitem__, DuplicateParams())
    copy = duplicate_record(entries[1], ("a/part.h", "a", "part.h"), 0.75, Reason.NEAR_DUPLICATE)
    (moved,) = follow_keepers([copy], found, shingles.__getitem__)
    assert (moved.path, moved.keeper_id, moved.cluster_id, moved.reason) == (
        "copy.h",
        "c/whole.h",
        "c/whole.h",
        "contained",
    )
    assert 0.6 < moved.jaccard < 0.8
    assert follow_keepers([copy], {}, shingles.__getitem__) == [copy]
