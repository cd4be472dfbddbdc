"""Copies that resemble nothing, and copies of copyleft that were kept, are seen; what is as similar as was measured is not."""

import hashlib
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pipeline.build.canaries.sound_sources import sound_code
from pipeline.build.oracles.copies.similar_copies import dissimilar_copies, kept_copies_of_copyleft
from pipeline.core.table_names import DOCUMENTS, FILES
from pipeline.stages.stages import kinds_with

FIRST, OTHER = sound_code("first", 2_000), sound_code("other", 2_000)
PART = FIRST[: len(FIRST) // 2]
ROW = {"document_id": "a.c", "source": "one", "path": "a.c", "num_bytes": 1, "num_keepers": 1}
ROW |= {"keeper_id": "b.c", "keeper_source": "one", "keeper_path": "b.c", "reason": "near_duplicate", "jaccard": 1.0}
OF_COPYLEFT = {"keeper_path": "gpl.c", "keeper_id": "0", "reason": "copyleft_copy"}
NOTICE = "GPL-2.0-only is refused\ngpl.c: the header contains the notice of GPL-2.0-only"
GPL = {"source": "one", "path": "gpl.c", "reason": "license_refused", "license": "GPL-2.0-only", "detail": NOTICE}


def part(kind: str, **tables: list[dict[str, Any]]) -> Any:
    found = {f"{name}.parquet": pa.Table.from_pylist(rows) for name, rows in tables.items()}
    return SimpleNamespace(kind=kinds_with(kind)[0], table=lambda name, columns: found[name].select(columns))


def cleaned(texts: dict[str, str], **drop: Any) -> Any:
    rows = [
        {"source": "one", "path": path, "document_id": path, "text": text}
        | {"text_sha256": hashlib.sha256(text.encode()).hexdigest(), "commit_hash": None}
        for path, text in texts.items()
    ]
    return part(DOCUMENTS, documents=rows, dropped=[GPL | {"text_sha256": "0"} | drop])


def collected(**contents: str) -> Any:
    rows = [
        {"source": "one", "path": f"{name}.c", "content": text.encode(), "num_bytes": len(text)}
        for name, text in contents.items()
    ]
    return part(FILES, files=rows)


@pytest.mark.parametrize(
    ("copy", "keeper", "change", "is_sound"),
    [
        (FIRST, FIRST, {}, True),
        (FIRST, FIRST, {"jaccard": 0.7}, True),
        (FIRST, OTHER, {}, False),
        (FIRST, OTHER, {"path": "a.py"}, True),
        (PART, FIRST, {"jaccard": 0.5}, True),
        (PART, FIRST, {"jaccard": 0.95}, False),
        (PART, FIRST, {"reason": "contained", "jaccard": 0.95}, True),
        (OTHER, FIRST, {"reason": "contained", "jaccard": 0.95}, False),
        (FIRST, PART, {"reason": "container", "jaccard": 0.9, "num_keepers": 2}, True),
        (FIRST, PART, {"reason": "container", "jaccard": 0.9}, False),
        (FIRST, OTHER, OF_COPYLEFT, True),
        (OTHER, OTHER, OF_COPYLEFT, False),
        (FIRST, OTHER, {**OF_COPYLEFT, "keeper_path": "b.c"}, False),
    ],
)
def test_a_copy_is_as_similar_as_it_says(copy: str, keeper: str, change: dict[str, Any], is_sound: bool) -> None:
    row = ROW | change
    stored = cleaned({row["path"]: copy, "b.c": keeper})
    found = list(dissimilar_copies([row], [collected(gpl=FIRST)], [stored], [".c"]))

    assert found == ([] if is_sound else [("one", row["path"])])


@pytest.mark.parametrize(("jaccard", "is_sound"), [(1.0, True), (0.8, False)])
def test_a_change_that_goes_with_its_file_has_what_that_was_measured_at(jaccard: float, is_sound: bool) -> None:
    file = ROW | {"jaccard": 1.0}
    change = file | {"path": f"{'0' * 40}:{ROW['path']}", "document_id": "of a change", "jaccard": jaccard}
    stored = cleaned({file["path"]: FIRST, change["path"]: OTHER, "b.c": FIRST})
    found = list(dissimilar_copies([file, change], [collected(gpl=FIRST)], [stored], [".c"]))

    assert found == ([] if is_sound else [("one", change["path"])])


def test_a_change_that_is_a_copy_of_another_is_compared_with_it() -> None:
    one, other = (f"{sign * 40}:a.c" for sign in "01")
    row = ROW | {"path": one, "document_id": one, "keeper_path": other, "keeper_id": other}

    for text, is_sound in ((FIRST, True), (OTHER, False)):
        found = list(dissimilar_copies([row], [collected(gpl=FIRST)], [cleaned({one: text, other: FIRST})], [".c"]))
        assert found == ([] if is_sound else [("one", one)])


@pytest.mark.parametrize("name", ["a.c", "b.c"])
def test_a_copy_of_which_one_text_is_not_stored_is_not_judged(name: str) -> None:
    assert list(dissimilar_copies([ROW], [collected(gpl=FIRST)], [cleaned({name: OTHER})], [".c"])) == []


OF_A_CHANGE = f"{'0' * 40}:gpl.c"


@pytest.mark.parametrize(
    ("text", "drop", "is_sound"),
    [
        (OTHER, {}, True),
        (FIRST, {}, False),
        (FIRST.replace("Return", "Compute"), {}, False),
        (FIRST, {"reason": "too_small"}, True),
        (FIRST, {"reason": "license_quarantined"}, True),
        (FIRST, {"license": None}, True),
        (FIRST, {"license": "Info-ZIP"}, True),
        (FIRST.replace("return", "other", 4), {}, True),
        (FIRST.replace(";\n", "; //\n"), {}, True),
        (FIRST, {"detail": "GPL-2.0-only is refused\nCOPYING: the text of GPL-2.0-only"}, True),
        (FIRST, {"detail": "GPL-2.0-only is refused\ngpl.c.license:1: GPL-2.0-only"}, False),
        (FIRST, {"detail": "GPL-2.0-only is refused\n.reuse/dep5: stanza 1: GPL-2.0-only"}, False),
        (FIRST, {"path": f"{'0' * 40}:gpl.c"}, True),
        (PART, {}, True),
        ("int a;\n", {}, True),
        ("int a;\n", {"text_sha256": hashlib.sha256(b"int a;\n").hexdigest()}, False),
        (
            "int a;\n",
            {
                "text_sha256": hashlib.sha256(b"int a;\n").hexdigest(),
                "path": OF_A_CHANGE,
                "detail": f"GPL-2.0-only is refused\n{OF_A_CHANGE}: the header contains the notice of GPL-2.0-only",
            },
            True,
        ),
    ],
)
def test_a_kept_copy_of_what_states_copyleft_is_seen(text: str, drop: dict[str, Any], is_sound: bool) -> None:
    stored, files = cleaned({"a.c": text}, **drop), collected(gpl=FIRST)

    assert list(kept_copies_of_copyleft({"a.c"}, [stored], [files], 0.9)) == ([] if is_sound else [("one", "a.c")])
    assert list(kept_copies_of_copyleft(set(), [stored], [files], 0.9)) == []


@pytest.mark.parametrize(
    ("texts", "is_sound"),
    [
        ({"a": "".join(FIRST.splitlines(keepends=True)[:4]), "b": FIRST}, False),
        ({chr(ord("a") + number): FIRST for number in range(9)}, False),
        ({chr(ord("a") + number): FIRST for number in range(10)}, True),
    ],
    ids=["the one of most lines", "lines of some", "lines of many"],
)
def test_a_text_is_compared_with_the_one_that_has_most_of_its_rare_lines(texts: dict[str, str], is_sound: bool) -> None:
    detail = "GPL-2.0-only is refused\n.reuse/dep5: stanza 1: GPL-2.0-only"
    drops = [cleaned({f"{name}.h": OTHER}, path=f"{name}.c", detail=detail) for name in texts]
    stored = cleaned({"a.c": FIRST}, reason="too_small")

    found = list(kept_copies_of_copyleft({"a.c"}, [stored, *drops], [collected(**texts)], 0.9))
    assert found == ([] if is_sound else [("one", "a.c")])
