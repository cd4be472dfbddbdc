"""Fixtures of the folders whose code is tested with faults here."""

from tests.pipeline.conftest import sandbox
from tests.pipeline.stages.collect.conftest import delays, index, retry, surroundings, tar_gz

__all__ = ["delays", "index", "retry", "sandbox", "surroundings", "tar_gz"]
