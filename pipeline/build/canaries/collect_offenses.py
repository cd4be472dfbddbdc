"""Offenses for the gates of collect."""

from typing import NoReturn

from pipeline.build.canaries.memory_build import Alteration, Changes, MadeOutput
from pipeline.build.canaries.offense import (
    Offense,
    after,
    altered,
    column,
    drop_without_row,
    every,
    first,
    of_part,
    row_from_nowhere,
    row_lost,
)
from pipeline.build.canaries.sound_sources import SOUND, SOUND_HELD_OUT
from pipeline.core.errors import DigestError
from pipeline.core.table_names import FILES


def _fail(made: MadeOutput) -> NoReturn:
    raise DigestError(f"source {made.job.name}", "sha256 00", "the pinned one")


_ONLY_EVIDENCE = column(FILES, "is_evidence", every(True))

COLLECT_OFFENSES = (
    Offense("source_of_other_bytes", ("every_pin_verified",), Changes((Alteration("collect", SOUND, _fail),))),
    of_part(
        "file_without_revision",
        ["every_file_has_a_revision"],
        "collect",
        column(FILES, "revision", first(lambda _: "")),
    ),
    Offense(
        "pin_without_license_metadata",
        ("every_pin_declares_a_license",),
        Changes(pin=lambda pin: pin.model_copy(update={"declared_license": ""})),
    ),
    Offense(
        "corpus_without_code",
        ("sources_hold_code",),
        after(*(altered(("collect", name), _ONLY_EVIDENCE) for name in (SOUND, SOUND_HELD_OUT))),
    ),
    row_lost("collect", FILES),
    row_from_nowhere("collect", FILES),
    drop_without_row("collect"),
)
