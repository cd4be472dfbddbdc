"""The asset of the stage verify."""

import dagster as dg

from assets.stage_asset import stage_asset
from pipeline.watcher import Watcher


def verify(watcher: Watcher) -> dg.AssetsDefinition:
    """The candidate snapshot is composed and proved: round trip, rows, splits, canaries, and a step of the trainer."""
    return stage_asset("verify", verify.__doc__ or "", watcher)
