"""Composition of the candidate snapshot from the rows, licenses and vocabulary of a build."""

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.contracts.part import DUPLICATES_PART, VOCABULARY_PART, PartJob, PartOutput, Tables
from pipeline.contracts.stage_report import StageReport
from pipeline.core.params import canonical_json
from pipeline.core.table_names import DOCUMENTS, KEPT
from pipeline.formats.snapshot_json import SNAPSHOT_FILE, SNAPSHOT_FORMAT


def compose(job: PartJob) -> PartOutput:
    """Write the snapshot, as a part, of the rows that `job.inputs` names.

    Inputs: `rows/<source>` and `rules/<source>` for each source, `duplicates`, and `vocabulary`.
    Identity: `weights` by source, `vocabulary`, `row_length`, `pins`, `held_out`; copied into snapshot.json.
    """
    kept = set(job.inputs[DUPLICATES_PART].table(KEPT, ["document_id"])["document_id"].to_pylist())
    names = sorted(label.removeprefix("rows/") for label in job.inputs if label.startswith("rows/"))
    sources = [_describe_source(job, name, kept) for name in names]
    content = {
        "format_version": SNAPSHOT_FORMAT,
        "sources": sources,
        "vocabulary": job.identity["vocabulary"],
        "row_length": job.identity["row_length"],
        "pins": job.identity["pins"],
        "held_out": job.identity["held_out"],
    }
    files = {
        name: job.inputs[VOCABULARY_PART].file(name).read_bytes() for name in ("tokenizer.json", "vocabulary.toml")
    }
    num_documents = sum(source["num_documents"] for source in sources)
    report = StageReport(num_documents, num_documents, measures={"num_sources": len(sources)})
    return PartOutput({}, report, files | {SNAPSHOT_FILE: canonical_json(content)})


def _describe_source(job: PartJob, name: str, kept: set[str]) -> dict[str, Any]:
    measures = job.inputs[f"rows/{name}"].json("report.json")["measures"]
    return {
        "name": name,
        "rows": job.inputs[f"rows/{name}"].object_id,
        "weight": job.identity["weights"][name],
        "num_documents": measures["num_documents"],
        "num_tokens": measures["num_tokens"],
        "num_text_bytes": measures["num_text_bytes"],
        "num_rows_train": measures["num_rows_train"],
        "num_rows_held_out": measures["num_rows_held_out"],
        "licenses": _count_licenses(job.inputs[f"rules/{name}"], kept),
    }


def _count_licenses(rules: Tables, kept: set[str]) -> dict[str, int]:
    table = rules.table(DOCUMENTS, ["document_id", "license"])
    mask = pc.is_in(table["document_id"], value_set=pa.array(sorted(kept), pa.large_string()))
    return dict(sorted(Counter(table.filter(mask)["license"].to_pylist()).items()))
