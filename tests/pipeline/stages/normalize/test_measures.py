"""Measures of the gates: bytes by language, and licenses as they are stored."""

import codecs
from dataclasses import replace
from hashlib import sha256, sha512

import pytest

from pipeline.core.records import Document
from pipeline.stages.normalize.contamination.evaluation_items import shipped_items
from pipeline.stages.normalize.license.policy import parse_policy, policy_bytes
from pipeline.stages.normalize.measures import KeptIds, holds_the_characters, is_licensed, texts_inside
from pipeline.stages.normalize.params import DuplicateParams
from tests.pipeline.stages.normalize.conftest import Normalize
from tests.pipeline.stages.normalize.test_clean_source import TAG, code


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
        {"license_class": "tagged"},
        {"license_evidence": "none"},
        {"license_evidence": "hearsay"},
        {"license_detail": ""},
    ):
        assert not is_licensed(replace(document, **change), policy)


def test_random_literals_that_are_left_are_counted_by_reason(normalize: Normalize) -> None:
    table = "".join(f'    "{sha512(bytes([seed])).hexdigest()[:24].upper()}-x{seed}Qz",\n' for seed in range(14))
    digest = f'auto empty = "{sha256(b"").hexdigest()}";\n'
    files = {"a.cpp": code("a") + digest + "const char* table[] = {\n" + table + "};\n"}
    measures = normalize({"one": files}).result.report.measures
    assert measures["num_literals_left_hexadecimal"] == 1
    assert measures["num_literals_left_one_of_many"] == 14


def test_a_report_counts_what_was_dropped_redacted_and_held_out(normalize: Normalize) -> None:
    mail = "me" + "@" + "sluice.dev"
    files = {
        "mail.cpp": code("a") + f"// {mail}\n",
        "kept.cpp": code("b"),
        "exact.cpp": code("b"),
        "long.cpp": code("n") * 3,
        "near.cpp": code("n") * 3 + "int last;\n",
        "solution.cpp": shipped_items()[0].solution + code("s"),
        "marked.cpp": codecs.BOM_UTF8 + b"\xff",
        "gpl.cpp": f"// {TAG} GPL-2.0-only\n" + code("c") * 2,
        "free.cpp": code("c") * 2,
    }
    made = normalize({"one": files, "two": {"held.cpp": code("held")}}, held_out=("two",))
    measures = made.result.report.measures

    kept = [path for path, outcome in made.outcomes().items() if outcome == "kept"]
    assert kept == ["one/exact.cpp", "one/long.cpp", "one/mail.cpp", "two/held.cpp"]
    assert {
        name: measures[name] for name in measures if name.startswith("num_") and measures[name] == 1
    } == dict.fromkeys(
        [
            *("num_contaminated", "num_copyleft_copies", "num_exact_duplicates", "num_held_out_documents"),
            *("num_near_duplicates", "num_redactions", "num_redactions_email", "num_undecodable"),
        ],
        1,
    )
    assert (measures["num_documents"], measures["num_cleaned_documents"]) == (4, 7)
    assert measures["num_bytes_kept"] == made.result.report.num_bytes_out


@pytest.mark.parametrize(("min_containment", "num_found"), [(0.55, 1), (0.9, 0)])
def test_the_search_for_text_inside_another_has_a_limit_halfway_between_that_of_the_rule_and_the_whole(
    normalize: Normalize, min_containment: float, num_found: int
) -> None:
    """Of the smaller one about seven eighths are in the larger."""
    part = [code(f"part{number}") for number in range(8)]
    rest = [code(f"rest{number}") for number in range(16)]
    files = {"part.cpp": "".join(part), "whole.cpp": "".join([*part[:7], *rest])}
    made = normalize({"one": files})
    sources = {"one": made.store.read(made.result.parts["one"])}
    kept = KeptIds(sources["one"].table("documents.parquet", ["document_id"]))

    assert len(texts_inside(sources, kept, DuplicateParams(min_containment=min_containment))) == num_found
