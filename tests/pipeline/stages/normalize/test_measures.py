"""Measures of the gates: bytes by language, and licenses as they are stored."""

from dataclasses import replace

from pipeline.core.records import Document
from pipeline.stages.normalize.license.policy import parse_policy, policy_bytes
from pipeline.stages.normalize.measures import holds_the_characters, is_licensed
from tests.pipeline.stages.normalize.conftest import Normalize
from tests.pipeline.stages.normalize.test_clean_source import code


def test_bytes_are_counted_by_language(normalize: Normalize) -> None:
    files = {"a.c": code("a"), "b.h": code("b"), "c.cpp": code("c"), "d.C": code("d")}
    measures = normalize({"one": files}).result.report.measures
    assert measures["num_bytes_cleaned_c"] == len(code("a"))
    assert measures["num_bytes_cleaned_c_or_cpp"] == len(code("b"))
    assert measures["num_bytes_cleaned_cpp"] == len(code("c")) + len(code("d"))


def test_a_text_is_that_of_its_file_but_for_what_was_redacted(normalize: Normalize) -> None:
    mail = "me" + "@" + "sluice.dev"
    content = (code("a") + f"// caf\u00e9 {mail}\n").encode("cp1252")
    (row,) = normalize({"one": {"a.cpp": content}}).rows("one", "documents.parquet")
    document = Document(**row)

    assert document.num_redactions == 1
    assert holds_the_characters(document, content)
    assert not holds_the_characters(replace(document, num_redactions=0), content)
    assert not holds_the_characters(document, content.replace(b"int", b"lnt", 1))
    assert not holds_the_characters(replace(document, text=document.text + "\n"), content)
    for encoding in ("utf_8", "no_such_encoding"):
        assert not holds_the_characters(replace(document, encoding=encoding), content)


def test_the_gate_looks_at_the_record_and_not_at_the_rule(normalize: Normalize) -> None:
    (row,) = normalize({"one": {"a.cpp": code("a")}}).rows("one", "documents.parquet")
    document = Document(**{**row, "edits": tuple(row["edits"])})
    policy = parse_policy(policy_bytes())
    assert is_licensed(document, policy)
    for change in (
        {"license": "GPL-2.0-only"},
        {"license": "MIT/X11"},
        {"license_evidence": "none"},
        {"license_detail": ""},
    ):
        assert not is_licensed(replace(document, **change), policy)
