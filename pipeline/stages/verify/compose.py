"""Composition of the candidate snapshot from the rows, licenses and vocabulary of a build."""

from collections import Counter
from typing import Any

import pyarrow.compute as pc

from pipeline.contracts.part import VOCABULARY_PART, PartJob, PartOutput, Tables
from pipeline.contracts.stage_report import StageReport
from pipeline.core.params import canonical_json
from pipeline.core.table_names import DOCUMENTS, TOKENS
from pipeline.formats.snapshot_json import SNAPSHOT_FILE, SNAPSHOT_FORMAT


def compose(job: PartJob) -> PartOutput:
    """Write the snapshot, as a part, of the rows that `job.inputs` names.

    Inputs: `rows/<source>` and `rules/<source>` for each source, `duplicates`, and `vocabulary`.
    Identity: `weights` by source, `vocabulary`, `row_length`, `pins`, `held_out`, and `held_out_rule` if any; copied into
    snapshot.json.
    """
    names = sorted(label.removeprefix("rows/") for label in job.inputs if label.startswith("rows/"))
    sources = [_describe_source(job, name) for name in names]
    content = {
        "format_version": SNAPSHOT_FORMAT,
        "sources": sources,
        "vocabulary": job.identity["vocabulary"],
        "row_length": job.identity["row_length"],
        "pins": job.identity["pins"],
        "held_out": job.identity["held_out"],
        **({"held_out_rule": rule} if (rule := job.identity.get("held_out_rule")) else {}),
    }
    files = {
        name: job.inputs[VOCABULARY_PART].file(name).read_bytes() for name in ("tokenizer.json", "vocabulary.toml")
    }
    num_documents = sum(source["num_documents"] for source in sources)
    report = StageReport(num_documents, num_documents, measures={"num_sources": len(sources)})
    return PartOutput({}, report, files | {SNAPSHOT_FILE: canonical_json(content)})


def _describe_source(job: PartJob, name: str) -> dict[str, Any]:
    rows = job.inputs[f"rows/{name}"]
    measures = rows.json("report.json")["measures"]
    return {
        "name": name,
        "rows": rows.object_id,
        "weight": job.identity["weights"][name],
        "num_documents": measures["num_documents"],
        "num_tokens": measures["num_tokens"],
        "num_text_bytes": measures["num_text_bytes"],
        "num_rows_train": measures["num_rows_train"],
        "num_rows_held_out": measures["num_rows_held_out"],
        "licenses": _count_licenses(job.inputs[f"rules/{name}"], rows),
    }


def _count_licenses(rules: Tables, rows: Tables) -> dict[str, int]:
    """Count the documents of each license among those that have rows: a stage that a program registers may drop some."""
    table = rules.table(DOCUMENTS, ["document_id", "license"])
    ids = rows.table(TOKENS, ["document_id"])["document_id"].combine_chunks()
    return dict(
        sorted(Counter(table.filter(pc.is_in(table["document_id"], value_set=ids))["license"].to_pylist()).items())
    )
