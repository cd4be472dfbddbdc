"""One source by the rules: every file comes out once, as a Document or as a DroppedRecord."""

import hashlib
import json

import pytest

from pipeline.core.digests import document_id
from tests.pipeline.stages.normalize.conftest import Normalize

AT = "@"
TAG = "SPDX-License-" + "Identifier:"


def code(name: str, num_functions: int = 12) -> str:
    """Ordinary code, unlike that of any other name."""
    return "".join(f"int {name}_{n}(int {name}_x{n}) {{ return {name}_x{n} * {n}; }}\n" for n in range(num_functions))


def test_a_document_says_what_was_done_to_it(normalize: Normalize) -> None:
    content = f"// mail ada{AT}host.org\r\n{code('a')}"
    (row,) = normalize({"one": {"src/a.cpp": content}}).rows("one", "documents.parquet")
    text = content.replace("\r\n", "\n").replace(f"ada{AT}host.org", "<redacted-email-1>")
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert row["text"] == text
    assert (row["text_sha256"], row["document_id"]) == (digest, document_id("one", "src/a.cpp", digest))
    assert row["blob_sha256"] == hashlib.sha256(content.encode()).hexdigest()
    assert (row["encoding"], row["edits"], row["num_redactions"]) == ("ascii", ["crlf_to_lf"], 1)
    assert (row["license"], row["license_class"], row["license_evidence"]) == ("MIT", "allowed", "package")
    assert row["license_detail"] == "pin: declared_license = MIT"
    assert row["num_bytes"] == len(text.encode())
    assert json.loads(row["scores"])["num_bytes"] == len(text.encode()) + len(f"ada{AT}host.org") - len(
        "<redacted-email-1>"
    )


DROPPED = {
    "binary": (b"int a;\0" * 30, None, None),
    "too_small": ("int a;\n", None, None),
    "license_refused": (f"// {TAG} GPL-3.0-only\n" + code("g"), "GPL-3.0-only", True),
    "license_unknown": (f"// {TAG} BSD\n" + code("u"), "BSD", True),
    "license_quarantined": ("// GNU General Public License\n" + code("q"), "MIT", True),
}


@pytest.mark.parametrize("reason", DROPPED)
def test_a_dropped_file_keeps_its_license_and_digest_where_they_are_known(reason: str, normalize: Normalize) -> None:
    content, license, has_digest = DROPPED[reason]
    (row,) = normalize({"one": {"a.cpp": content}}).rows("one", "dropped.parquet")
    assert (row["reason"], row["license"], row["text_sha256"] is not None) == (reason, license, bool(has_digest))
    assert row["record_id"] == document_id(
        "one",
        "a.cpp",
        row["text_sha256"] or hashlib.sha256(content if isinstance(content, bytes) else content.encode()).hexdigest(),
    )
    assert row["detail"]


def test_the_digest_of_a_refused_text_is_that_of_the_scrubbed_one(normalize: Normalize) -> None:
    text = f"// {TAG} GPL-3.0-only\n{code('g')}// bob{AT}host.org\n"
    (row,) = normalize({"one": {"a.cpp": text}}).rows("one", "dropped.parquet")
    scrubbed = text.replace(f"bob{AT}host.org", "<redacted-email-1>")
    assert row["text_sha256"] == hashlib.sha256(scrubbed.encode()).hexdigest()


def test_evidence_does_not_become_a_document(normalize: Normalize) -> None:
    made = normalize({"one": {"a.cpp": code("a"), "LICENSE": "MIT License\n", "a.cpp.license": f"{TAG} ISC\n"}})
    (row,) = made.rows("one", "documents.parquet")
    assert (row["path"], row["license"], row["license_evidence"]) == ("a.cpp", "ISC", "sidecar")
    assert made.result.report.rows_in == 1
