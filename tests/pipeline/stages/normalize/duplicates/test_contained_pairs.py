"""Contained pairs: found by samples as by a comparison of all pairs, whatever the shape; boilerplate is no evidence."""

from collections.abc import Mapping
from itertools import permutations
from random import Random

import numpy as np
import pytest

from pipeline.stages.normalize.duplicates.contained_pairs import (
    NUM_PROBES,
    SampleStretch,
    find_contained_pairs,
    sampled_shingles,
    shared_places,
)
from pipeline.stages.normalize.params import DuplicateParams
from tests.support.made.made_amalgamations import INCLUDES, compared, file_of, function

RATIOS = (1, 2, 3, 5, 10, 20, 50)


SHAPES = {
    "as it is": lambda parts, random: "".join(parts),
    "without comments": lambda parts, random: "\n".join(
        line for line in "".join(parts).split("\n") if not line.strip().startswith("//")
    ),
    "in a namespace": lambda parts, random: "namespace inner { namespace detail {\n" + "".join(parts) + "}}\n",
    "in another order": lambda parts, random: "".join(random.sample(parts, len(parts))),
    "a tenth left out": lambda parts, random: "".join(parts[len(parts) // 10 :]),
}


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


def test_of_short_texts_and_of_none_nothing_is_found() -> None:
    entries, samples, shingles = compared({"a/x.h": "int a;", "a/y.h": "int a; int b;"})
    assert find_contained_pairs(entries, samples, shingles.__getitem__, DuplicateParams(), lambda ids: None) == []
    assert sampled_shingles(np.empty(0, np.uint64)).tolist() == []
    none, some = np.empty(0, np.uint64), np.array([3, 5], np.uint64)
    assert [shared_places(*pair).tolist() for pair in [(none, some), (some, none), (some, some)]] == [[], [], [0, 1]]


@pytest.mark.parametrize("at", [1, 50, 64, 150])
def test_a_document_has_as_many_probes_wherever_its_samples_are_cut(at: int) -> None:
    values, owners = np.arange(200, dtype=np.uint32), np.repeat([0, 1], 100)
    probes = {0: SampleStretch(values, owners, 100).probes(np.zeros(2, np.int32)).tolist()}
    num_before = np.zeros(2, np.int32)
    for stretch in (slice(0, at), slice(at, 200)):
        found = SampleStretch(values[stretch], owners[stretch], 100).probes(num_before)
        probes.setdefault(at, []).extend((found + stretch.start).tolist())
        num_before += np.bincount(owners[stretch][found], minlength=2).astype(np.int32)
    assert probes[at] == probes[0] == [*range(NUM_PROBES), *range(100, 100 + NUM_PROBES)]
