"""Duplicates: thresholds, preference, no chains, and keepers that are kept."""

import hashlib
from collections.abc import Mapping, Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.records import DuplicateRecord
from pipeline.stages.normalize.duplicates.duplicates import ComparedDocument, find_duplicates
from pipeline.stages.normalize.duplicates.shingles import hashes_for_minhash, jaccard, shingle_hashes, signature
from pipeline.stages.normalize.params import VENDORED_ROOTS, DuplicateParams


def statements(name: str, count: int = 200, changed: int = 0) -> str:
    """`count` statements of eight tokens; the first `changed` are others."""
    lines = [f"{name}_{n} += weight_{n} * input_{n} / 2;" for n in range(count)]
    lines[:changed] = [f"other_{name}_{n} -= bias_{n} * output_{n} / 3;" for n in range(changed)]
    return "\n".join(lines)


def entry(
    source: str, path: str, text: str, row: int, split: str = "train", inherited: bool = True
) -> ComparedDocument:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return ComparedDocument(
        f"{source}/{path}", source, path, split, len(text), digest, inherited, len(shingle_hashes("a.cpp", text)), row
    )


def find(
    files: Sequence[tuple[str, str, str, str]],
    params: DuplicateParams | None = None,
    upstreams: Mapping[str, Mapping[str, str]] | None = None,
) -> list[DuplicateRecord]:
    """Duplicates among (source, path, text, split)."""
    entries = [entry(source, path, text, row, split) for row, (source, path, text, split) in enumerate(files)]
    shingles = {
        each.document_id: shingle_hashes("a.cpp", text) for each, (_, _, text, _) in zip(entries, files, strict=True)
    }
    rows = [signature(hashes_for_minhash(shingles[each.document_id]), 1) for each in entries]
    signatures = np.array(rows, np.uint32).reshape(-1, 256)
    return find_duplicates(
        entries,
        signatures,
        shingles.__getitem__,
        params or DuplicateParams(),
        VENDORED_ROOTS,
        upstreams=upstreams or {},
    )


def similarity(first: str, second: str) -> float:
    return jaccard(shingle_hashes("a.cpp", first), shingle_hashes("a.cpp", second))


def test_a_copy_of_0_72_in_another_source_loses_and_one_of_0_68_stays() -> None:
    near, far = statements("x", changed=32), statements("x", changed=38)
    assert 0.71 < similarity(statements("x"), near) < 0.74
    assert 0.66 < similarity(statements("x"), far) < 0.69
    (lost,) = find([("a", "x.cpp", statements("x"), "train"), ("b", "x.cpp", near, "train")])
    assert (lost.source, lost.keeper_source, lost.reason) == ("b", "a", "near_duplicate")
    assert lost.jaccard == similarity(statements("x"), near)
    assert find([("a", "x.cpp", statements("x"), "train"), ("b", "x.cpp", far, "train")]) == []


def test_inside_a_source_a_sibling_of_0_72_stays_and_a_copy_loses() -> None:
    assert find([("a", "1.cpp", statements("x"), "train"), ("a", "2.cpp", statements("x", changed=32), "train")]) == []
    (lost,) = find([("a", "1.cpp", statements("x"), "train"), ("a", "2.cpp", statements("x", changed=6), "train")])
    assert lost.path == "2.cpp"


PREFERRED = {
    "held out over training": [("b", "x.c", "held_out"), ("a", "x.c", "train")],
    "held out in a vendored folder over training": [("b", "vendor/x.c", "held_out"), ("a", "x.c", "train")],
    "own over vendored": [("b", "x.c", "train"), ("a", "third_party/x.c", "train")],
    "the smaller source": [("a", "y.c", "train"), ("b", "x.c", "train")],
    "the smaller path": [("a", "x.c", "train"), ("a", "y.c", "train")],
}


@pytest.mark.parametrize("changed", [0, 5], ids=["equal", "similar"])
@pytest.mark.parametrize(("keeper", "loser"), PREFERRED.values(), ids=PREFERRED)
def test_the_preferred_copy_keeps_its_place(
    keeper: tuple[str, str, str], loser: tuple[str, str, str], changed: int
) -> None:
    files = [(*loser[:2], statements("x", changed=changed), loser[2]), (*keeper[:2], statements("x"), keeper[2])]
    (lost,) = find(files)
    assert (lost.keeper_source, lost.keeper_path) == keeper[:2]
    assert lost.reason == ("near_duplicate" if changed else "exact_duplicate")
    assert (lost.jaccard == 1.0) == (not changed)
    assert lost.cluster_id == lost.keeper_id


def test_clusters_do_not_chain() -> None:
    steps = [statements("x", changed=changed) for changed in (0, 20, 40)]
    assert similarity(steps[0], steps[1]) > 0.7
    assert similarity(steps[1], steps[2]) > 0.7
    assert similarity(steps[0], steps[2]) < 0.7
    lost = find([(source, "x.c", text, "train") for source, text in zip("abc", steps, strict=True)])
    assert [record.source for record in lost] == ["b"]


def test_a_copy_of_a_loser_loses_to_the_same_keeper() -> None:
    near = statements("x", changed=10)
    files = [("a", "x.c", statements("x"), "train"), ("b", "x.c", near, "train"), ("c", "x.c", near, "train")]
    lost = find(files)
    assert {(record.source, record.keeper_source, record.reason) for record in lost} == {
        ("b", "a", "near_duplicate"),
        ("c", "a", "near_duplicate"),
    }


def test_texts_below_the_floor_are_only_compared_for_equality() -> None:
    entries = [ComparedDocument(name, name, "x.c", "train", 9, name[1], True, 0, None) for name in ("a1", "b1", "c2")]
    lost = find_duplicates(
        entries, np.empty((0, 256), np.uint32), lambda _: pytest.fail("compared"), DuplicateParams(), ()
    )
    assert [(record.document_id, record.keeper_id, record.reason) for record in lost] == [
        ("b1", "a1", "exact_duplicate")
    ]


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 45)), unique=True, max_size=8), st.randoms())
def test_the_answer_does_not_depend_on_the_order_and_every_keeper_is_kept(
    files: list[tuple[str, int]], random: Random
) -> None:
    documents = [(source, f"{changed}.c", statements("x", changed=changed), "train") for source, changed in files]
    lost = find(documents)
    random.shuffle(documents)
    assert find(documents) == lost
    assert not {record.keeper_id for record in lost} & {record.document_id for record in lost}


UPSTREAM = {"a": {"zlib/**": "z"}}


@pytest.mark.parametrize(
    ("files", "upstreams", "keeper"),
    [
        ([("a", "zlib/inflate.c"), ("z", "inflate.c")], {}, "a"),
        ([("a", "zlib/inflate.c"), ("z", "inflate.c")], UPSTREAM, "z"),
        ([("a", "other/inflate.c"), ("z", "inflate.c")], UPSTREAM, "a"),
        ([("a", "zlib/inflate.c"), ("z", "contrib/external/inflate.c")], UPSTREAM, "z"),
        ([("a", "zlib/inflate.c"), ("b", "inflate.c"), ("z", "third_party/inflate.c")], UPSTREAM, "z"),
        ([("a", "zlib/inflate.c"), ("b", "inflate.c")], UPSTREAM, "b"),
    ],
)
@pytest.mark.parametrize("changed", [0, 6], ids=["equal", "near"])
def test_the_pin_named_upstream_for_a_file_keeps_it(
    files: list[tuple[str, str]], upstreams: dict[str, dict[str, str]], keeper: str, changed: int
) -> None:
    texts = [statements("x"), *[statements("x", changed=changed)] * (len(files) - 1)]
    lost = find([(*file, text, "train") for file, text in zip(files, texts, strict=True)], upstreams=upstreams)
    assert {record.keeper_source for record in lost} == {keeper}
    assert len(lost) == len(files) - 1
