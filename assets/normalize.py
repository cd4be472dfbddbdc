"""The asset of the stage normalize."""

import dagster as dg

from assets.stage_asset import stage_asset
from pipeline.watcher import Watcher


def normalize(watcher: Watcher) -> dg.AssetsDefinition:
    """Source files become clean documents: decoded, filtered, licensed file by file, scrubbed, without duplicates."""
    return stage_asset("normalize", normalize.__doc__ or "", watcher)
