"""The asset of the stage collect."""

import dagster as dg

from assets.stage_asset import stage_asset
from pipeline.build.watcher import Watcher


def collect(watcher: Watcher) -> dg.AssetsDefinition:
    """Pinned archives, commits, lines and folders become source files: every byte verified, nothing executed or extracted.

    Reads the pins file; writes one table of files a source. Limits on size, depth and compression keep hostile archives out. A
    source that cannot be had, or whose bytes are not the pinned ones, stops the build here; the others are kept for the next one.
    """
    return stage_asset("collect", collect.__doc__ or "", watcher)
