"""Parameters of the stage verify."""

from pydantic import Field

from pipeline.core.params import Params


class VerifyParams(Params):
    """Limits of the proofs about a candidate snapshot. A limit at which its gate could not fail is refused."""

    min_bytes_per_token: float = Field(default=2.5, gt=0, le=16)
    """Least text a token must carry over the whole snapshot, in bytes."""
    max_unused_vocabulary_fraction: float = Field(default=0.7, ge=0, lt=1)
    """Largest share of vocabulary entries that may never occur, 0-1. A small slice uses few of a large vocabulary."""
    min_trained_fraction: float = Field(default=0.5, gt=0, le=1)
    """Least share of row slots whose target is trained, 0-1. The rest is padding and last tokens of pieces."""
    smoke_timeout_seconds: int = Field(default=300, ge=10, le=3600)
    """Time limit of the consumer smoke run, in seconds."""
