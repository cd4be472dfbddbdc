"""The asset of the stage enrich."""

import dagster as dg

from assets.stage_asset import stage_asset
from pipeline.build.watcher import Watcher


def enrich(watcher: Watcher) -> dg.AssetsDefinition:
    """Documents get their structure: byte-exact chunks of nine kinds, includes, provenance.

    Structure stands beside the text and never changes it. A document that does not parse goes on as `degraded`, and too many of
    them block the build.
    """
    return stage_asset("enrich", enrich.__doc__ or "", watcher)
