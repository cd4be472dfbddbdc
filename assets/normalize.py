"""The asset of the stage normalize."""

import dagster as dg

from assets.stage_asset import stage_asset
from pipeline.build.watcher import Watcher


def normalize(watcher: Watcher) -> dg.AssetsDefinition:
    """Source files become clean documents: decoded, filtered, licensed file by file, scrubbed, without duplicates.

    Every file goes on or is dropped with a reason and its evidence: `python -m pipeline why SOURCE PATH` tells which. Secrets,
    addresses and home folders become placeholders. Held-out sources are split off before duplicates are looked for.
    """
    return stage_asset("normalize", normalize.__doc__ or "", watcher)
