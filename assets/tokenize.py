"""The asset of the stage tokenize."""

import dagster as dg

from assets.stage_asset import stage_asset
from pipeline.build.watcher import Watcher


def tokenize(watcher: Watcher) -> dg.AssetsDefinition:
    """Documents become token ids and packed rows, cold in Parquet and memory-mapped for training.

    The vocabulary is pinned by its digest and lossless. A row holds pieces of documents of one source and one split, and no
    token is cropped, lost or repeated.
    """
    return stage_asset("tokenize", tokenize.__doc__ or "", watcher)
