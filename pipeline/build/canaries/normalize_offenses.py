"""Offenses for the gates of normalize."""

from typing import Any

from pipeline.build.canaries.memory_build import Changes
from pipeline.build.canaries.offense import (
    Offense,
    after,
    altered,
    column,
    drop_without_row,
    first,
    of_part,
    row_from_nowhere,
    row_lost,
    rows_added,
    table_changed,
)
from pipeline.contracts.part import DUPLICATES_PART, PartOutput
from pipeline.core.table_names import DOCUMENTS, DROPPED, DUPLICATES, KEPT
from pipeline.stages.normalize.contamination.evaluation_items import shipped_items

_COMPARED = ("normalize", DUPLICATES_PART)
_NUM_DROPPED = 1_000


def _many_dropped(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    dropped = {
        "source": "canary-sound",
        "num_bytes": 1,
        "reason": "of_no_band",
        "detail": "",
        "license": None,
        "text_sha256": None,
    }
    return [{**dropped, "path": f"{n}.cpp", "record_id": f"{n}"} for n in range(_NUM_DROPPED)]


def _copy_kept(output: PartOutput) -> PartOutput:
    """Keep what was dropped as a copy."""
    lost = output.tables[DUPLICATES].to_pylist()
    kept = rows_added(KEPT, lambda rows: [{"document_id": row["document_id"], "source": row["source"]} for row in lost])
    return table_changed(DUPLICATES, lambda table: table.slice(0, 0))(kept(output))


def _as_header(path: str) -> str:
    return path.replace(".cpp", ".c")


_BAND = Changes(pin=lambda pin: pin.model_copy(update={"languages": {"cpp": (0.5, 1.0)}}))
# Assembled here, so that no whole secret is in this repository.
_SECRET = "AKIA" + "QWERTYUIOPASDFGH"

NORMALIZE_OFFENSES = (
    of_part(
        "invented_character",
        ["decoding_loses_nothing"],
        "normalize",
        column(DOCUMENTS, "text", first(lambda text: text.replace("e", "\ufffd", 1))),
    ),
    of_part(
        "copyleft_document",
        ["every_document_is_licensed"],
        "normalize",
        column(DOCUMENTS, "license", first(lambda _: "GPL-2.0-only")),
    ),
    of_part(
        "document_without_evidence_of_its_license",
        ["every_document_is_licensed"],
        "normalize",
        column(DOCUMENTS, "license_evidence", first(lambda _: "none")),
    ),
    of_part(
        "secret_in_a_text",
        ["no_secret_is_left", "no_known_secret_is_left"],
        "normalize",
        column(DOCUMENTS, "text", first(lambda text: f"{text}// {_SECRET}\n")),
    ),
    of_part(
        "secret_in_the_evidence_of_a_license",
        ["no_known_secret_is_left"],
        "normalize",
        column(DOCUMENTS, "license_detail", first(lambda detail: f"{detail} AND {_SECRET}")),
    ),
    of_part(
        "secret_in_the_detail_of_a_drop",
        ["no_known_secret_is_left"],
        "normalize",
        rows_added(DROPPED, lambda rows: [{**row, "detail": _SECRET} for row in _many_dropped(rows)[:1]]),
    ),
    of_part(
        "solution_in_a_text",
        ["no_evaluation_item_is_left"],
        "normalize",
        column(DOCUMENTS, "text", first(lambda text: text + shipped_items()[0].solution)),
    ),
    of_part("copy_that_was_kept", ["no_exact_duplicate_is_left"], _COMPARED, _copy_kept),
    of_part(
        "many_files_dropped_by_one_rule",
        ["drops_are_in_their_bands"],
        "normalize",
        rows_added(DROPPED, _many_dropped),
        control=altered(_COMPARED, _copy_kept),
    ),
    Offense(
        "source_in_another_language",
        ("languages_are_in_their_bands",),
        after(_BAND, altered("normalize", column(DOCUMENTS, "path", lambda paths: map(_as_header, paths)))),
        control=_BAND,
    ),
    of_part(
        "every_document_dropped",
        ["documents_are_kept"],
        _COMPARED,
        table_changed(KEPT, lambda table: table.slice(0, 0)),
    ),
    row_lost("normalize", DOCUMENTS),
    row_from_nowhere("normalize", DOCUMENTS),
    drop_without_row("normalize"),
)
