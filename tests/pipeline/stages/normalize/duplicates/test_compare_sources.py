"""All sources side by side, from stored parts."""

import pyarrow as pa
import pytest

from pipeline.stages.normalize.duplicates.compare_sources import DocumentTexts
from tests.pipeline.stages.normalize.conftest import Normalize
from tests.pipeline.stages.normalize.test_clean_source import TAG, code


def test_a_copy_in_another_source_loses_and_the_rest_is_kept(normalize: Normalize) -> None:
    made = normalize({"a": {"x.cpp": code("x"), "y.cpp": code("y")}, "b": {"x.cpp": code("x"), "z.cpp": code("z")}})
    assert made.outcomes() == {"a/x.cpp": "kept", "a/y.cpp": "kept", "b/x.cpp": "exact_duplicate", "b/z.cpp": "kept"}
    kept = made.rows("duplicates", "kept.parquet")
    documents = {row["document_id"]: row["source"] for name in "ab" for row in made.rows(name, "documents.parquet")}
    (lost,) = made.rows("duplicates", "duplicates.parquet")
    assert kept == [
        {"document_id": key, "source": documents[key]} for key in sorted(documents) if key != lost["document_id"]
    ]
    assert made.result.report.measures["num_exact_duplicates_left"] == 0


def test_of_copies_in_both_splits_the_training_one_goes(normalize: Normalize) -> None:
    made = normalize({"b": {"x.cpp": code("x")}, "a": {"x.cpp": code("x"), "y.cpp": code("y")}}, held_out=("b",))
    assert made.outcomes() == {"a/x.cpp": "exact_duplicate", "b/x.cpp": "kept", "a/y.cpp": "kept"}


def test_a_text_that_left_as_copyleft_is_held_elsewhere_and_keeps_no_copy_out(normalize: Normalize) -> None:
    sources = {"gpl": {"x.cpp": code("x")}, "mit": {"y.cpp": code("x")}, "own": {"z.cpp": code("z")}}
    made = normalize(sources, licenses={"gpl": "GPL-2.0-or-later"})
    assert made.outcomes() == {"gpl/x.cpp": "license_refused", "mit/y.cpp": "copyleft_copy", "own/z.cpp": "kept"}
    (held,) = made.rows("duplicates", "duplicates.parquet")
    (refused,) = made.rows("gpl", "dropped.parquet")
    assert held["keeper_id"] == refused["record_id"]


def test_a_text_with_a_tag_of_its_own_is_not_held(normalize: Normalize) -> None:
    text = f"// {TAG} MIT\n{code('x')}"
    made = normalize(
        {"a": {"x.cpp": text}, "gpl": {"x.cpp": text, "y.cpp": code("y")}}, licenses={"gpl": "GPL-2.0-only"}
    )
    assert made.outcomes() == {"a/x.cpp": "kept", "gpl/x.cpp": "exact_duplicate", "gpl/y.cpp": "license_refused"}


def test_short_texts_and_sources_without_documents_are_accepted(normalize: Normalize) -> None:
    short = "int a_rather_long_name_for_a_number;\n\n// What it is for, at such a length that it is not too small.\nint b;\n"
    made = normalize({"a": {"x.cpp": short}, "b": {"x.cpp": "int a;\n"}, "c": {"y.cpp": short}})
    assert made.outcomes() == {"a/x.cpp": "kept", "b/x.cpp": "too_small", "c/y.cpp": "exact_duplicate"}


def test_of_a_source_only_the_texts_that_are_compared_are_in_memory(
    normalize: Normalize, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, numbers = DocumentTexts._read, []

    def counted(texts: DocumentTexts, source: str) -> dict[str, pa.Scalar]:
        found = read(texts, source)
        numbers.append((source, len(found)))
        return found

    monkeypatch.setattr(DocumentTexts, "_read", counted)
    others = {f"{name}.cpp": code(name) for name in ("y", "z")}
    copyleft = f"// {TAG} GPL-2.0-only\n{code('x')}"
    made = normalize({"gpl": {"x.cpp": copyleft}, "mit": {"x.cpp": f"{code('x')}int one_more;\n", **others}})

    assert made.outcomes()["mit/x.cpp"] == "copyleft_copy"
    assert set(numbers) == {("mit", 1)}
