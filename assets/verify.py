"""The asset of the stage verify."""

import dagster as dg

from assets.stage_asset import stage_asset
from pipeline.build.watcher import Watcher


def verify(watcher: Watcher) -> dg.AssetsDefinition:
    """The candidate snapshot is composed and proved: round trip, rows, splits, canaries, and a step of the trainer.

    Proofs read what was stored, as a stranger would. Canaries are planted offenses that every build must catch. The snapshot
    becomes `candidate`; the job `promote` makes it `live`.
    """
    return stage_asset("verify", verify.__doc__ or "", watcher)
