"""Keys: the names by which Dagster knows what belongs to a corpus: its assets, ops, jobs and resources."""

from collections.abc import Sequence

import dagster as dg

from pipeline.pins.corpora import Corpus

BUILD_POOL = "build"
"""The pool of the stages. Pools bound what a team runs at once; that one corpus is written once is the lock of the store."""
TRAIN_POOL = "train"
"""The pool of trainings."""


def stage_key(corpus: str, stage: str) -> dg.AssetKey:
    """Return the key of the asset of a stage of a corpus."""
    return dg.AssetKey([corpus, stage])


def live_key(corpus: str) -> dg.AssetKey:
    """Return the key of the live snapshot of a corpus."""
    return dg.AssetKey([corpus, "live"])


def training_key(corpus: str) -> dg.AssetKey:
    """Return the key of the training on a corpus."""
    return dg.AssetKey([corpus, "training"])


def op_name(key: dg.AssetKey) -> str:
    """Return the name of an asset's op, by which a run config names it."""
    return key.to_python_identifier()


def build_key(corpus: str) -> str:
    """Return the key of the build resource of a corpus."""
    return f"build_{identifier(corpus)}"


def job_name(kind: str, corpus: str, corpora: Sequence[Corpus]) -> str:
    """Return the name of a job of a corpus: that of the first corpus is its kind alone."""
    return kind if corpus == corpora[0].name else f"{kind}_{identifier(corpus)}"


def identifier(corpus: str) -> str:
    """Return the name of a corpus where Dagster takes no hyphens."""
    return corpus.replace("-", "_")
