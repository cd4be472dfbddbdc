"""OFFENSES: every offense that builds send, by the stage whose gates it turns red."""

from pipeline.build.canaries.collect_offenses import COLLECT_OFFENSES
from pipeline.build.canaries.enrich_offenses import ENRICH_OFFENSES
from pipeline.build.canaries.normalize_offenses import NORMALIZE_OFFENSES
from pipeline.build.canaries.offense import Offense
from pipeline.build.canaries.tokenize_offenses import TOKENIZE_OFFENSES
from pipeline.build.canaries.verify_offenses import VERIFY_OFFENSES
from pipeline.core.registry import Registry

OFFENSES: Registry[Offense] = Registry(
    "offense", *COLLECT_OFFENSES, *NORMALIZE_OFFENSES, *ENRICH_OFFENSES, *TOKENIZE_OFFENSES, *VERIFY_OFFENSES
)
