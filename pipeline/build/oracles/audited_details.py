"""Oracle of what documents say about themselves: where their license is stated, and their scores.

Only shapes, closed sets and what is measured again at once are judged. What a license text says, the license rule knows.
"""

import json
from collections.abc import Mapping
from typing import Any

from pipeline.contracts.part import Tables
from pipeline.core.records import LicenseEvidence
from pipeline.core.table_names import DOCUMENTS

OF_DETAILS = ("source", "path", "text", "num_redactions", "license_evidence", "license_detail", "scores")
_STATED_IN = {
    LicenseEvidence.FILE: "{path}:",
    LicenseEvidence.HEADER: "{path}:",
    LicenseEvidence.SIDECAR: "{path}.license:",
}
"""Evidence -> how one line of the detail begins. Others name a file of the source, or its pin, before a colon."""
_NOT_SHOWN = ("<redacted-", "not shown")
"""Marks of a detail of which something was not shown."""


def misdetailed_documents(documents: Any, limits: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return source and path of the documents whose detail names no place of their evidence, or whose scores are not of their text.

    `limits` are those of the filters: each score has the name of one, without `min_` or `max_`.
    """
    names = {name.partition("_")[2] for name in limits} - {"file_bytes"}
    return [
        (row["source"], row["path"])
        for row in documents.to_pylist()
        if not (_is_stated(row) and _are_scores(row, names))
    ]


def of_details(stored: Tables) -> Any:
    """Return the columns that are judged, of one part."""
    return stored.table(DOCUMENTS, OF_DETAILS)


def _is_stated(row: Mapping[str, Any]) -> bool:
    evidence, detail, path = row["license_evidence"], row["license_detail"], row["path"]
    if evidence == LicenseEvidence.DECISION or any(mark in detail for mark in _NOT_SHOWN) or not path.isprintable():
        return True
    begins = _STATED_IN.get(evidence, "").replace("{path}", path)
    return any(line.startswith(begins) and line.find(": ") > 0 for line in detail.split("\n"))


def _are_scores(row: Mapping[str, Any], names: set[str]) -> bool:
    """Return whether all scores are there, as numbers, and those of sizes are right where nothing was replaced."""
    try:
        scores = json.loads(row["scores"])
    except ValueError:
        return False
    if not isinstance(scores, dict) or not names <= scores.keys():
        return False
    if not all(type(value) in (int, float) and 0 <= value < float("inf") for value in scores.values()):
        return False
    content = row["text"].encode()
    sizes = {"num_bytes": len(content), "longest_line": max(map(len, content.split(b"\n")))}
    return bool(row["num_redactions"]) or all(scores[name] == size for name, size in sizes.items())
