"""Offenses for the gates of collect."""

from typing import NoReturn

from pipeline.build.canaries.memory_build import Alteration, Changes, MadeOutput
from pipeline.build.canaries.offense import (
    SOURCES,
    Offense,
    at_places,
    column,
    drop_without_row,
    every,
    in_both,
    row_from_nowhere,
    row_lost,
)
from pipeline.build.canaries.sound_sources import NUM_SOUND_FILES
from pipeline.core.errors import DigestError
from pipeline.core.table_names import FILES


def _fail(made: MadeOutput) -> NoReturn:
    raise DigestError(f"source {made.job.name}", "sha256 00", "the pinned one")


COLLECT_OFFENSES = (
    Offense(
        "source_of_other_bytes",
        ("every_pin_verified",),
        Changes(tuple(Alteration("collect", source, _fail) for source in SOURCES)),
        least=len(SOURCES),
    ),
    in_both(
        "file_without_revision",
        ["every_file_has_a_revision"],
        "collect",
        column(FILES, "revision", at_places(lambda _: "")),
    ),
    Offense(
        "pin_without_license_metadata",
        ("every_pin_declares_a_license",),
        Changes(pin=lambda pin: pin.model_copy(update={"declared_license": ""})),
        least=len(SOURCES),
    ),
    in_both(
        "corpus_without_code",
        ["sources_hold_code"],
        "collect",
        column(FILES, "is_evidence", every(True)),
        least=NUM_SOUND_FILES,
    ),
    row_lost("collect", FILES),
    row_from_nowhere("collect", FILES),
    drop_without_row("collect"),
)
