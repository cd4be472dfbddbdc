"""Offenses that builds send: those of OFFENSES, by the stage whose gates they turn red, and those that follow from STAGES."""

from dataclasses import replace

from pipeline.build.canaries.collect_offenses import COLLECT_OFFENSES
from pipeline.build.canaries.conservation_offenses import DETAIL_OFFENSES, conservation_offenses
from pipeline.build.canaries.enrich_offenses import ENRICH_OFFENSES
from pipeline.build.canaries.memory_build import NO_CHANGES
from pipeline.build.canaries.normalize_offenses import NORMALIZE_OFFENSES
from pipeline.build.canaries.offense import SOURCES, Offense
from pipeline.build.canaries.tokenize_offenses import TOKENIZE_OFFENSES
from pipeline.build.canaries.verify_offenses import VERIFY_OFFENSES
from pipeline.core.registry import Registry

OFFENSES: Registry[Offense] = Registry(
    "offense",
    *COLLECT_OFFENSES,
    *NORMALIZE_OFFENSES,
    *DETAIL_OFFENSES,
    *ENRICH_OFFENSES,
    *TOKENIZE_OFFENSES,
    *VERIFY_OFFENSES,
)

CONTROL_OFFENSES = (
    Offense("control_without_a_change", ("every_pin_verified",), NO_CHANGES),
    replace(OFFENSES["source_that_was_not_read"], name="control_of_too_few", least=len(SOURCES) + 1),
)
"""Offenses that must not be caught: none at all, and one of which a gate counts fewer than it says were planted."""


def all_offenses() -> dict[str, Offense]:
    """Return every offense that a build sends, by name."""
    return {offense.name: offense for offense in (*conservation_offenses(), *OFFENSES)}
