"""A stage that drops long documents, to be registered before `enrich`, and a gate of it: everything that a new stage declares."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from pipeline.contracts.drop_reasons import DropReason
from pipeline.contracts.gates import CONSERVED, NONE, Gate, Limit, LimitComparison
from pipeline.contracts.part import Part, PartJob, PartOutput, StageContext, StageOutput
from pipeline.contracts.stage import PartKind, Stage, StageTable
from pipeline.contracts.stage_report import StageReport, total
from pipeline.core.params import Params
from pipeline.core.records import Document, DroppedRecord
from pipeline.core.schema import OwnText, PathText, stored, table_of_records
from pipeline.core.table_names import DOCUMENTS, DROPPED, KEPT

NOTES = "notes.parquet"
REASON = "too_large"
"""The name of a reason that another stage has too."""


@stored("ShortNote")
@dataclass(frozen=True)
class ShortNote:
    """A note about a document that is kept."""

    source: OwnText
    path: PathText
    note: OwnText


class ShortenParams(Params):
    """Limits of the stage and of its gate."""

    max_num_bytes: int = Field(default=2_000, ge=1)
    """Bytes of the largest document that is kept."""
    max_num_long: int = Field(default=1_000, ge=0)
    """The most documents that may be dropped."""


SHORTEN = Stage(
    name="shorten",
    version=1,
    description="Drop documents that are long.",
    params=f"{__name__}:ShortenParams",
    run=f"{__name__}:run",
    parts=(
        PartKind(
            "shorten/part",
            {"drop_long": f"{__name__}:drop_long"},
            (
                StageTable(DOCUMENTS, Document, "num_bytes"),
                StageTable(NOTES, ShortNote, "note"),
                StageTable(DROPPED, DroppedRecord),
            ),
        ),
    ),
    drops=(DropReason(REASON, ("max_num_bytes",), measured=("num_bytes",)),),
    libraries=("pyarrow",),
    asset_kinds=frozenset({"csv"}),
)
NO_ROW_LOST = Gate("no_row_lost_in_shorten", "shorten", CONSERVED, NONE, "Every row is kept or dropped with a reason.")
FEW_ARE_LONG = Gate(
    "few_documents_are_long",
    "shorten",
    f"dropped_{REASON}",
    Limit(LimitComparison.AT_MOST, "max_num_long", passing=0, failing=1_001),
    "Most documents are short.",
)


def run(context: StageContext[ShortenParams]) -> StageOutput:
    """Make one part for each source, and pass on the part of duplicates."""
    passed_on = {"duplicates": context.inputs["duplicates"]}
    sources = {name: part for name, part in context.inputs.items() if name not in passed_on}
    made, failures = context.make(
        [Part(name, "drop_long", context.params, {"rules": part, **passed_on}) for name, part in sources.items()]
    )
    parts = {name: part.object_id for name, part in made.items()} | passed_on
    return StageOutput(parts, total(part.report for part in made.values()), failures)


def drop_long(job: PartJob) -> PartOutput:
    """Part function: the unique documents of one source that are not longer than the limit."""
    assert isinstance(job.params, ShortenParams)
    documents = job.inputs["rules"].table(DOCUMENTS)
    unique = job.inputs["duplicates"].table(KEPT)["document_id"]
    documents = documents.filter(pc.is_in(documents["document_id"], value_set=unique))
    is_long = pc.greater(documents["num_bytes"], job.params.max_num_bytes)
    is_short = pc.invert(is_long)
    dropped = [_dropped(row) for row in documents.filter(pc.invert(is_short)).to_pylist()]
    kept: pa.Table = documents.filter(is_short)
    report = StageReport(documents.num_rows, kept.num_rows, {REASON: len(dropped)})
    notes = [ShortNote(row["source"], row["path"], f"short: {row['num_bytes']}") for row in kept.to_pylist()]
    tables = {NOTES: table_of_records(ShortNote, notes), DROPPED: table_of_records(DroppedRecord, dropped)}
    return PartOutput({DOCUMENTS: kept, **tables}, report)


def _dropped(row: dict) -> DroppedRecord:
    detail = f"{row['num_bytes']} bytes"
    return DroppedRecord(
        row["source"],
        row["path"],
        row["document_id"],
        row["num_bytes"],
        REASON,
        detail,
        row["license"],
        row["text_sha256"],
    )
