"""Containment: made amalgamations against a comparison of all pairs, the choice between part and container, and boilerplate."""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import permutations
from random import Random

import numpy as np
import pytest

from pipeline.core.records import DuplicateRecord
from pipeline.stages.normalize.duplicates.contained_pairs import (
    Samples,
    find_contained_pairs,
    sampled_shingles,
    shared_places,
)
from pipeline.stages.normalize.duplicates.containment import find_contained
from pipeline.stages.normalize.duplicates.duplicates import ComparedDocument
from pipeline.stages.normalize.duplicates.shingles import shingle_hashes
from pipeline.stages.normalize.params import DuplicateParams

RATIOS = (1, 2, 3, 5, 10, 20, 50)


def function(name: str, random: Random, num_lines: int = 6) -> str:
    """A function of lines that no other has."""
    words = [f"{name}_{random.randrange(10**6)}" for _ in range(num_lines)]
    body = "".join(f"  // step {word}\n  total_{word} += {word}[{random.randrange(99)}] * scale;\n" for word in words)
    return f"int {name}(const int* input) {{\n{body}  return total_{words[0]};\n}}\n"


def file_of(name: str, random: Random, num_functions: int) -> list[str]:
    return [function(f"{name}_{number}", random) for number in range(num_functions)]


INCLUDES = "#include <algorithm>\n#include <memory>\n#include <vector>\n#include <string>\n"
SHAPES = {
    "as it is": lambda parts, random: "".join(parts),
    "without comments": lambda parts, random: "\n".join(
        line for line in "".join(parts).split("\n") if not line.strip().startswith("//")
    ),
    "in a namespace": lambda parts, random: "namespace inner { namespace detail {\n" + "".join(parts) + "}}\n",
    "in another order": lambda parts, random: "".join(random.sample(parts, len(parts))),
    "a tenth left out": lambda parts, random: "".join(parts[len(parts) // 10 :]),
}


def find(files: Mapping[str, str], held_out: Sequence[str] = (), **params: int | float) -> dict[str, DuplicateRecord]:
    """The losses by path. A path begins with the source."""
    entries, samples, shingles = compared(files, held_out)
    found = find_contained(entries, samples, shingles.__getitem__, DuplicateParams(**params))
    assert all(name not in found for each in found.values() for name in each.keeper_ids)
    return {name: each.record for name, each in found.items()}


def compared(
    files: Mapping[str, str], held_out: Sequence[str] = ()
) -> tuple[list[ComparedDocument], Samples, dict[str, np.ndarray[tuple[int], np.dtype[np.uint64]]]]:
    shingles = {path: shingle_hashes("a.cpp", text) for path, text in files.items()}
    entries = []
    for row, (path, text) in enumerate(files.items()):
        source, _, name = path.partition("/")
        split = "held_out" if source in held_out else "train"
        digest = hashlib.sha256(text.encode()).hexdigest()
        entries.append(ComparedDocument(path, source, name, split, len(text), digest, True, len(shingles[path]), row))
    sampled = [sampled_shingles(each) for each in shingles.values()]
    starts = np.cumsum([0, *map(len, sampled)]).astype(np.int64)
    return entries, Samples(np.concatenate(sampled), starts), shingles


def contained_by_all_pairs(files: Mapping[str, str], limit: float) -> set[frozenset[str]]:
    """Compare all pairs of texts by sets of runs of tokens, without hashes and samples."""
    runs = {path: set(runs_of_words(text)) for path, text in files.items()}
    return {
        frozenset((part, whole))
        for part, whole in permutations(files, 2)
        if len(runs[part]) <= len(runs[whole]) and len(runs[part] & runs[whole]) >= limit * len(runs[part])
    }


def runs_of_words(text: str) -> list[tuple[str, ...]]:
    code = "\n".join(line.split("//")[0] for line in text.split("\n"))
    for sign in "{}()[];*,<>#":
        code = code.replace(sign, f" {sign} ")
    words = code.split()
    return [tuple(words[start : start + 5]) for start in range(len(words) - 4)]


@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_comparison_of_all_pairs_finds_is_found_by_samples(shape: str) -> None:
    random = Random(shape)
    files: dict[str, str] = {}
    for number, ratio in enumerate(RATIOS * 2):
        part = file_of(f"part{number}", random, 2 if number % 2 else 8)
        others = file_of(f"other{number}", random, int(len(part) * (ratio - 1)))
        own = function(f"own{number}", random, len(part) // 2) if number % 3 else ""
        files[f"a/{number}.h"] = INCLUDES * (len(part) // 8) + "".join(part) + own
        files[f"b/{number}.h"] = SHAPES[shape]([*others[::2], *part, *others[1::2]], random)
    entries, samples, shingles = compared(files)
    params = DuplicateParams(min_jaccard_between_sources=0.6)
    pairs = find_contained_pairs(entries, samples, shingles.__getitem__, params, lambda ids: None)
    found = {frozenset((entries[pair.part].document_id, entries[pair.container].document_id)) for pair in pairs}
    # The two counts of tokens differ in a few per mille.
    certain, possible = (contained_by_all_pairs(files, limit) for limit in (0.82, 0.78))
    assert len(certain) >= 10
    assert len(found & certain) >= 0.95 * len(certain)
    assert found <= possible


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


@pytest.mark.parametrize("held_out", ["a", "b"])
def test_what_two_splits_share_is_left_in_one(held_out: str) -> None:
    random = Random(3)
    part, rest = (file_of(name, random, number) for name, number in (("part", 3), ("rest", 9)))
    files = {"a/part.h": "".join(part), "b/whole.h": "".join([*part, *rest])}
    assert set(find(files, [held_out])) == {"a/part.h"}
    parts = {"a/part.h": "".join(part), "c/rest.h": "".join(rest), "b/whole.h": "".join([*part, *rest])}
    assert set(find(parts, [held_out])) == {"b/whole.h"}


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


def test_boilerplate_of_many_files_is_no_evidence() -> None:
    """Small files of which 85 % is a table of macros that forty files have: none is dropped, though each is in a larger one."""
    random = Random(8)
    table = "".join(f"#define FLAG_{number} (1 << {number})\n" for number in range(60))
    files = {f"a/{number}.h": table + function(f"own{number}", random, 4) for number in range(40)}
    files["a/large.h"] = table + "".join(file_of("large", random, 12))
    assert len(find(files)) > 30
    assert find(files, max_num_sharing=30) == {}


def test_of_short_texts_and_of_none_nothing_is_found() -> None:
    assert find({"a/x.h": "int a;", "a/y.h": "int a; int b;"}) == {}
    assert sampled_shingles(np.empty(0, np.uint64)).tolist() == []
    none, some = np.empty(0, np.uint64), np.array([3, 5], np.uint64)
    assert [shared_places(*pair).tolist() for pair in [(none, some), (some, none), (some, some)]] == [[], [], [0, 1]]
