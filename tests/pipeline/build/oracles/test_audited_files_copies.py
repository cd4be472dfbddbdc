"""A copy has a keeper that is kept, both are called as their documents are, and are as like as the limits say."""

from typing import Any

import pytest

from pipeline.build.oracles.audited_files import misjudged_copies, unlike_copies


@pytest.mark.parametrize(
    ("reason", "keeper", "holds"),
    [
        ("exact_duplicate", "same", True),
        ("exact_duplicate", "other", False),
        ("exact_duplicate", "lost", False),
        ("near_duplicate", "other", True),
        ("near_duplicate", "lost", False),
        ("contained", "other", True),
        ("contained", "lost", False),
        ("container", "other", True),
        ("container", "lost", False),
        ("copyleft_copy", "lost", True),
    ],
)
def test_a_copy_has_a_keeper_that_is_kept(reason: str, keeper: str, holds: bool) -> None:
    row = COPY | {"keeper_id": keeper, "keeper_path": f"{keeper}.c", "cluster_id": keeper, "reason": reason}

    assert list(misjudged_copies([row], DOCUMENTS, {"same", "other"})) == ([] if holds else [("one", "copy.c")])


DOCUMENTS = {
    name: {"source": "one", "path": f"{name}.c", "text_sha256": text, "num_bytes": 9}
    for name, text in (("copy", "1"), ("same", "1"), ("other", "2"), ("lost", "1"))
}
COPY: dict[str, Any] = {
    "source": "one",
    "path": "copy.c",
    "num_bytes": 9,
    "document_id": "copy",
    "keeper_id": "same",
    "keeper_source": "one",
    "keeper_path": "same.c",
    "cluster_id": "same",
    "reason": "near_duplicate",
    "jaccard": 0.8,
    "num_keepers": 1,
}


@pytest.mark.parametrize(
    "change",
    [
        {"path": "other.c"},
        {"source": "two"},
        {"keeper_path": "other.c"},
        {"keeper_source": "two"},
        {"document_id": "none"},
        {"document_id": "same", "path": "same.c"},
        {"jaccard": 0.0},
        {"jaccard": 1.1},
        {"num_keepers": 0},
        {"num_keepers": 0, "reason": "exact_duplicate"},
        {"cluster_id": "other"},
        {"cluster_id": "other", "reason": "copyleft_copy"},
        {"num_bytes": 8},
        {"num_bytes": 8, "reason": "copyleft_copy"},
        {"path": "other.c", "reason": "copyleft_copy"},
        {"keeper_path": "other.c", "reason": "copyleft_copy"},
    ],
    ids=str,
)
def test_a_copy_and_its_keeper_are_called_as_their_documents_are(change: dict[str, Any]) -> None:
    assert list(misjudged_copies([COPY], DOCUMENTS, {"same"})) == []
    assert len(list(misjudged_copies([COPY | change], DOCUMENTS, {"same"}))) == 1


@pytest.mark.parametrize(
    ("changes", "num_unlike"),
    [
        ([{}], 1),
        ([{"jaccard": 0.9}], 0),
        ([{"keeper_source": "two"}], 0),
        ([{"keeper_source": "two", "jaccard": 0.6}], 1),
        ([{"reason": "copyleft_copy"}], 1),
        ([{"reason": "copyleft_copy", "keeper_source": "two"}], 0),
        ([{"reason": "contained"}], 0),
        ([{"reason": "contained", "jaccard": 0.7}], 1),
        ([{"reason": "contained", "jaccard": 0.7}, {"reason": "contained"}], 0),
        ([{"reason": "container", "jaccard": 0.57}, {"reason": "contained"}], 0),
        ([{}, {"document_id": "lost", "keeper_source": "two"}], 0),
        ([{}, {"document_id": "other", "keeper_source": "two"}], 1),
        ([{}, {"document_id": "lost", "keeper_source": "two", "jaccard": 0.7}], 1),
    ],
    ids=str,
)
def test_a_near_copy_is_as_like_as_the_limit_of_its_kind_says(changes: list[dict[str, Any]], num_unlike: int) -> None:
    limits = {"min_jaccard_inside_source": 0.9, "min_jaccard_between_sources": 0.7, "min_containment": 0.8}

    assert len(list(unlike_copies([COPY | each for each in changes], DOCUMENTS, limits))) == num_unlike


def test_siblings_are_of_one_split() -> None:
    limits = {"min_jaccard_inside_source": 0.9, "min_jaccard_between_sources": 0.7, "min_containment": 0.8}
    documents = {"copy": DOCUMENTS["copy"] | {"split": "train"}, "same": DOCUMENTS["same"] | {"split": "held_out"}}

    assert list(unlike_copies([COPY], documents, limits)) == []
    assert len(list(unlike_copies([COPY | {"reason": "copyleft_copy"}], documents, limits))) == 1


def test_copyleft_copies_of_what_is_not_stored_are_not_judged() -> None:
    row = COPY | {"reason": "copyleft_copy", "keeper_id": "none", "cluster_id": "none", "document_id": "none"}

    assert list(misjudged_copies([row], DOCUMENTS, set())) == []
