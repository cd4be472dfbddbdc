"""Offenses of what documents of normalize say about themselves."""

from pipeline.build.canaries.offense import SOURCES, fields, one_each
from pipeline.core.records import LicenseEvidence
from pipeline.core.table_names import DOCUMENTS

DETAIL_OFFENSES = (
    one_each(
        "details_of_nothing",
        ["no_row_lost_in_normalize"],
        "normalize",
        dict.fromkeys(SOURCES, DOCUMENTS),
        [
            fields(license_detail="x"),
            fields(license_evidence=LicenseEvidence.SIDECAR),
            fields(scores="{}"),
            fields(scores="x"),
            fields(scores=lambda scores: scores.replace('"num_bytes":', '"num_bytes":-')),
            fields(scores=lambda scores: scores.replace('"longest_line":', '"longest_line":1')),
        ],
    ),
)
